import { sql } from 'kysely';
import { Interrupted } from '../domain/errors.ts';
import { requestExport } from '../export/request-export.ts';
import type { Database } from '../postgres/database.ts';
import { insertRunItem, readRunItems } from '../postgres/stores/schedule-run-items.ts';
import { holdRun, noteRange, type RunClaim } from '../postgres/stores/schedule-runs.ts';
import { readExportedUntil } from '../postgres/stores/schedules.ts';
import type { ScheduleContext } from './context.ts';
import { deliverExport, findParent } from './deliver-export.ts';
import { type ExportRange, resolveRange } from './range.ts';
import type { ScheduledExport } from './schedule.ts';

/** The run is given back for a while: its time has not come. */
export class NotYet extends Interrupted {
  readonly pauseMs: number;

  constructor(pauseMs: number) {
    super('the run waits for its time');
    this.pauseMs = pauseMs;
  }
}

const exportItem = 'export';

/** Asks for the export; once it is completed, copies its files if they are wanted elsewhere. */
export async function runExportRun(
  context: ScheduleContext,
  claim: RunClaim,
  work: ScheduledExport,
  timeZone: string,
  signal: AbortSignal,
): Promise<void> {
  const taken = (await readRunItems(context.db, claim.runId)).find(({ item }) => item === exportItem);
  if (taken?.jobId != null) {
    if (work.toDir !== null) await deliverExport(context, claim, taken.jobId, work.toDir, signal);
    return;
  }
  if (work.toDir !== null) findParent(context.schedules.exportRoots, work.toDir);
  const range = await findRange(context.db, claim, work, timeZone);
  // Nothing lies between: an earlier due time is done after a later one.
  if (range?.from != null && Date.parse(range.from) >= Date.parse(range.to)) return;
  if (range !== null) await requireSettled(context, range.to);
  const body =
    range === null
      ? work.body
      : { ...work.body, to: range.to, ...(range.from !== null && { from: range.from }) };
  await requestExport(context, claim.environmentId, body, null, {
    retentionDays: work.retentionDays,
    alongside: async (db, jobId) => {
      await holdRun(db, claim);
      await noteRange(db, claim, range?.from ?? null, range?.to ?? null);
      const item = { item: exportItem, version: null, jobId, isNew: true, error: null };
      await insertRunItem(db, claim.runId, item);
    },
  });
}

async function findRange(
  db: Database,
  claim: RunClaim,
  { range }: ScheduledExport,
  timeZone: string,
): Promise<ExportRange | null> {
  if (range === null) return null;
  return resolveRange(range, timeZone, claim.dueAt, await readExportedUntil(db, claim));
}

/**
 * What is stored under a moment before `to` must have been committed, or it would be in this export or in none. Records
 * are stored under the moment that their transaction began or that they came in, which is not long before.
 * @throws NotYet
 */
async function requireSettled({ db, schedules }: ScheduleContext, to: string): Promise<void> {
  const { rows } = await sql<{ early_ms: number; is_written: boolean }>`
    select
      extract(epoch from ${to}::timestamptz + ${schedules.commitLagMs} * interval '1 millisecond' - clock_timestamp())
        ::float8 * 1000 as early_ms,
      exists (
        select
        from pg_stat_activity
        where datname = current_database()
          and application_name like 'sluice %'
          and pid <> pg_backend_pid()
          and xact_start < ${to}::timestamptz
      ) as is_written`.execute(db);
  const [{ early_ms, is_written } = { early_ms: 0, is_written: false }] = rows;
  if (early_ms > 0) throw new NotYet(Math.ceil(early_ms));
  if (is_written) throw new NotYet(1_000);
}
