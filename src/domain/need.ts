// A need requires a person's attention. The overview, the console and `sluice status` show it.
import { plural } from '../base/wording.ts';

/** Severity, in the order in which needs are shown. */
export const needKinds = {
  records_unaccounted: 'failed',
  schedules_failing: 'failed',
  jobs_failed: 'failed',
  inbox_files_refused: 'failed',
  deliveries_dead: 'failed',
  loads_held: 'warning',
  records_refused: 'warning',
  inbox_files_with_rejects: 'warning',
  runs_skipped: 'warning',
} as const;
export type NeedKind = keyof typeof needKinds;

export interface Need {
  readonly kind: NeedKind;
  readonly count: number;
  /** Name of the job or other thing. `null` if there are several, or if it has no name. */
  readonly subject: string | null;
  readonly since: Date | null;
  readonly says: string;
}

export interface NeedCounts {
  readonly failedJobs: number;
  readonly failedJob: string | null;
  readonly heldLoads: number;
  readonly heldJob: string | null;
  readonly refusedRecords: number;
  readonly refusedJobs: number;
  readonly refusedJob: string | null;
  /** Number of records without a known outcome. Missing if they were not counted. */
  readonly unaccounted?: number;
}

export type FoundNeed = Pick<Need, 'kind' | 'count' | 'says'> & Partial<Need>;

export function describeNeeds({ unaccounted = 0, ...counts }: NeedCounts): FoundNeed[] {
  const { failedJobs, heldLoads, refusedRecords, refusedJobs } = counts;
  const says = {
    unaccounted: `${plural(unaccounted, 'record has', 'records have')} no known outcome`,
    failed: `${plural(failedJobs, 'job')} failed in the last 24 hours`,
    held: `${plural(heldLoads, 'load is', 'loads are')} held: load anyway, or discard`,
    refused: plural(refusedRecords, 'record was refused', 'records were refused'),
  };
  const inLoads = refusedJobs > 1 ? `, in ${plural(refusedJobs, 'load')}` : '';
  return [
    { kind: 'records_unaccounted', count: unaccounted, says: says.unaccounted },
    { kind: 'jobs_failed', count: failedJobs, subject: counts.failedJob, says: says.failed },
    { kind: 'loads_held', count: heldLoads, subject: counts.heldJob, says: says.held },
    {
      kind: 'records_refused',
      count: refusedRecords,
      subject: counts.refusedJob,
      says: says.refused + inLoads,
    },
  ];
}

export function sortNeeds(needs: readonly FoundNeed[]): Need[] {
  const kinds = Object.keys(needKinds);
  return needs
    .filter(({ count }) => count > 0)
    .map(({ kind, count, subject = null, since = null, says }) => ({ kind, count, subject, since, says }))
    .sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
}

export function renderNeed({ kind, count, subject, since, says }: Need) {
  return { kind, status: needKinds[kind], count, subject, since: since?.toISOString() ?? null, says };
}
