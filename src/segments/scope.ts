/** What a segment is asked of: one environment, at one moment. */
export interface SegmentScope {
  readonly environmentId: number;
  /** The moment that days are counted back from. One for all statements that are to agree. */
  readonly now: Date;
}

export interface UserScope extends SegmentScope {
  /** What the query calls sluice.users. */
  readonly user: string;
}
