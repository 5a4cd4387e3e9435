export const deletionTypes = ['delete_users', 'delete_companies'] as const;

/** queued → processing → completed | failed. Not cancelled, since half is worse than none. */
const deletionStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export type DeletionStatus = (typeof deletionStatuses)[number];

/** `not_found`: neither a profile nor references existed. */
export const deletionOutcomes = ['pending', 'deleted', 'not_found'] as const;
export type DeletionOutcome = (typeof deletionOutcomes)[number];

export interface IdOutcome {
  readonly position: number;
  readonly id: string;
  readonly outcome: DeletionOutcome;
  /** Removed events of a user, or events changed for a company. */
  readonly events: number;
  readonly users: number;
}
