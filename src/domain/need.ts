/* A need is something that a person must attend to. The overview, the console and `sluice status` show the same sentences. */
import { plural } from './wording.ts';

/** The kinds of needs, and the status of each. `failed`: something does not work. */
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
  /** The job or schedule that it is about; `null` if there are several, or it has no name. */
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
  readonly refusedInboxFiles: number;
  readonly inboxFilesWithRejects: number;
  readonly skippedRuns: number;
  readonly deadDeliveries: number;
}

export interface FailingSchedule {
  readonly name: string;
  readonly since: Date;
  readonly reason: string;
}

const reasonCharacters = 120;
const shownNames = 3;
const lately = 'in the last 24 hours';

export function describeNeeds(
  counts: NeedCounts,
  failing: readonly FailingSchedule[],
  { unaccounted = 0, now = new Date() }: { readonly unaccounted?: number; readonly now?: Date } = {},
): Need[] {
  const { failedJobs, refusedRecords, refusedJobs, refusedInboxFiles, inboxFilesWithRejects } = counts;
  const { deadDeliveries, skippedRuns } = counts;
  const since = failing.reduce<Date | null>(
    (first, each) => (first === null || each.since < first ? each.since : first),
    null,
  );
  const [only] = failing.length === 1 ? failing : [];
  const inLoads = refusedJobs > 1 ? `, in ${plural(refusedJobs, 'load')}` : '';
  const verb = (count: number, one: string, many: string) => (count === 1 ? one : many);
  const found: readonly (readonly [kind: NeedKind, count: number, says: string, subject?: string | null])[] =
    [
      [
        'records_unaccounted',
        unaccounted,
        `${plural(unaccounted, 'record has', 'records have')} no known outcome`,
      ],
      ['schedules_failing', failing.length, describeFailing(failing, since, now), only?.name],
      ['jobs_failed', failedJobs, `${plural(failedJobs, 'job')} failed ${lately}`, counts.failedJob],
      [
        'inbox_files_refused',
        refusedInboxFiles,
        `${plural(refusedInboxFiles, 'file')} of the inbox ${verb(refusedInboxFiles, 'was', 'were')} refused ${lately}`,
      ],
      ['deliveries_dead', deadDeliveries, `${plural(deadDeliveries, 'notification')} could not be delivered`],
      [
        'loads_held',
        counts.heldLoads,
        `${plural(counts.heldLoads, 'load is', 'loads are')} held: load anyway, or discard`,
        counts.heldJob,
      ],
      [
        'records_refused',
        refusedRecords,
        `${plural(refusedRecords, 'record was refused', 'records were refused')}${inLoads}`,
        counts.refusedJob,
      ],
      [
        'inbox_files_with_rejects',
        inboxFilesWithRejects,
        `${plural(inboxFilesWithRejects, 'file')} of the inbox ${verb(inboxFilesWithRejects, 'has', 'have')} refused records`,
      ],
      [
        'runs_skipped',
        skippedRuns,
        `${plural(skippedRuns, 'scheduled run was', 'scheduled runs were')} skipped ${lately}`,
      ],
    ];
  return found
    .filter(([, count]) => count > 0)
    .map(([kind, count, says, subject = null]) => {
      return { kind, count, subject, since: kind === 'schedules_failing' ? since : null, says };
    });
}

export function renderNeed({ kind, count, subject, since, says }: Need) {
  return { kind, status: needKinds[kind], count, subject, since: since?.toISOString() ?? null, says };
}

function describeFailing(failing: readonly FailingSchedule[], since: Date | null, now: Date): string {
  const [first] = failing;
  if (first === undefined || since === null) return '';
  const length = describeLength(now.getTime() - since.getTime());
  if (failing.length > 1) {
    const names = failing.map(({ name }) => name).slice(0, shownNames);
    const more = failing.length > shownNames ? ', …' : '';
    return `${plural(failing.length, 'schedule')} fail: ${names.join(', ')}${more}`;
  }
  return `Schedule ${first.name} has failed for ${length}: ${first.reason.slice(0, reasonCharacters).toWellFormed()}`;
}

const minuteMs = 60_000;

/** Returns a duration in its largest whole unit, such as "25 minutes". */
function describeLength(ms: number): string {
  const minutes = Math.floor(ms / minuteMs);
  if (minutes < 1) return 'less than a minute';
  if (minutes < 120) return plural(minutes, 'minute');
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? plural(hours, 'hour') : plural(Math.floor(hours / 24), 'day');
}
