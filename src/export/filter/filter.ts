import type { Expression, RawBuilder, SqlBool } from 'kysely';
import type { ExportRequest } from '../../domain/export.ts';

/** Whether a row of sluice.users, under the alias given, is in a segment. */
export type SegmentTest = (usersAlias: string) => Expression<SqlBool>;

/** Which rows an export holds. */
export interface Filter {
  readonly environmentId: number;
  readonly request: ExportRequest;
  /** Null: no segment is asked for. */
  readonly segment: SegmentTest | null;
  readonly excludedSegments: readonly SegmentTest[];
  /** What events are read from, with the columns of `sluice.events`, which it is by default. */
  readonly events?: RawBuilder<unknown>;
}
