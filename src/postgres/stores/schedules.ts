import { sql } from 'kysely';
import type { TaskClaim } from '../../domain/task.ts';
import { type Database, deleteWhere, rowsOf, selectWhere, updateWhere } from '../database.ts';
import { hasOpenRun } from './schedule-runs.ts';
import { isOwn } from './tasks.ts';

/*
 * Schedules as the workers remember them: up to when they were seen to, what they have loaded and exported, how they fare; and the
 * definitions of those that the API keeps.
 */

export interface Considered {
  readonly until: Date;
  readonly pausedAt: Date | null;
}

const consideredColumns = ['considered_until as until', 'paused_at as pausedAt'] as const;

export async function readConsidered(db: Database): Promise<Map<string, Considered>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['environment_id', 'schedule_name', ...consideredColumns])
    .execute();
  return new Map(rows.map((row) => [scheduleKey(row.environment_id, row.schedule_name), row]));
}

/** Pauses a schedule, or lets it go on; what was due meanwhile is not made up. */
export async function setPaused(
  db: Database,
  environmentId: number,
  name: string,
  isPaused: boolean,
  now: Date,
): Promise<void> {
  await updateWhere(db, 'schedules', { environmentId, scheduleName: name })
    .set(
      isPaused
        ? { paused_at: now }
        : { paused_at: null, considered_until: sql<Date>`greatest(considered_until, ${now})` },
    )
    .where('paused_at', isPaused ? 'is' : 'is not', null)
    .execute();
}

export function scheduleKey(environmentId: number, name: string): string {
  return `${environmentId}/${name}`;
}

/** Reads the schedules that the API keeps, of one environment or of all, sorted by name. */
export function readMade(
  db: Database,
  environmentId: number | null,
): Promise<{ readonly environment: string; readonly definition: object }[]> {
  return rowsOf<{ environment: string; definition: object }>(db)`
    select e.name as environment, s.definition
    from schedules s
    join environments e using (environment_id)
    where s.definition is not null and (${environmentId}::int is null or s.environment_id = ${environmentId})
    order by e.name, s.schedule_name`;
}

/**
 * Keeps the definition of a schedule: a new one, or else one in place of another. It counts from `now` on: earlier due times are not
 * made up. Returns false if there is a definition already, or none.
 */
export async function keepMade(
  db: Database,
  environmentId: number,
  definition: { readonly name: string },
  { isNew, now }: { readonly isNew: boolean; readonly now: Date },
): Promise<boolean> {
  if (isNew) await addSchedule(db, environmentId, definition.name, now);
  const kept = await updateWhere(db, 'schedules', { environmentId, scheduleName: definition.name })
    .set({
      definition: JSON.stringify(definition),
      considered_until: sql<Date>`greatest(considered_until, ${now})`,
      ...(isNew && { paused_at: null }),
    })
    .where('definition', isNew ? 'is' : 'is not', null)
    .returning('schedule_name')
    .executeTakeFirst();
  return kept !== undefined;
}

/**
 * Deletes a schedule that the API keeps, with its history and memory; with an open run only its definition, and the run ends as it is.
 * Returns false if there is none. Call it inside a transaction.
 */
export async function deleteMade(db: Database, environmentId: number, name: string): Promise<boolean> {
  const its = { environmentId, scheduleName: name };
  const dropped = await updateWhere(db, 'schedules', its)
    .set({ definition: null, paused_at: null })
    .where('definition', 'is not', null)
    .returning('schedule_name')
    .executeTakeFirst();
  if (dropped === undefined) return false;
  if (await hasOpenRun(db, environmentId, name)) return true;
  await deleteWhere(db, 'schedule_runs', its).execute();
  await deleteWhere(db, 'schedules', its).execute();
  return true;
}

/** Adds a schedule, of which nothing before `now` is due. Does nothing if it is known. */
export async function addSchedule(
  db: Database,
  environmentId: number,
  name: string,
  now: Date,
): Promise<void> {
  await db
    .insertInto('schedules')
    .values({ environment_id: environmentId, schedule_name: name, considered_until: now })
    .onConflict((conflict) => conflict.columns(['environment_id', 'schedule_name']).doNothing())
    .execute();
}

/**
 * Locks the schedule, so that nobody else considers its due times until the transaction ends; `null` if there is none. `definition` is
 * the one that the API keeps.
 */
export async function lockSchedule(
  db: Database,
  environmentId: number,
  name: string,
): Promise<(Considered & { readonly definition: object | null }) | null> {
  const row = await selectWhere(db, 'schedules', { environmentId, scheduleName: name })
    .select([...consideredColumns, 'definition'])
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

export async function markConsidered(
  db: Database,
  environmentId: number,
  name: string,
  until: Date,
): Promise<void> {
  await updateWhere(db, 'schedules', { environmentId, scheduleName: name })
    .set({ considered_until: until })
    .where('considered_until', '<', until)
    .execute();
}

export async function readMemory(
  db: Database,
  { environmentId, name }: { readonly environmentId: number; readonly name: string },
): Promise<ReadonlyMap<string, string>> {
  const rows = await selectWhere(db, 'schedule_memory', { environmentId, scheduleName: name })
    .select(['item', 'version'])
    .execute();
  return new Map(rows.map((row) => [row.item, row.version]));
}

export async function remember(
  db: Database,
  environmentId: number,
  name: string,
  item: string,
  version: string,
): Promise<void> {
  await db
    .insertInto('schedule_memory')
    .values({ environment_id: environmentId, schedule_name: name, item, version })
    .onConflict((conflict) =>
      conflict
        .columns(['environment_id', 'schedule_name', 'item'])
        .doUpdateSet({ version, loaded_at: sql<Date>`excluded.loaded_at` }),
    )
    .execute();
}

export async function readCursor(
  db: Database,
  { environmentId, name }: { readonly environmentId: number; readonly name: string },
): Promise<string | null> {
  const row = await selectWhere(db, 'schedules', { environmentId, scheduleName: name })
    .select('cursor')
    .executeTakeFirst();
  return row?.cursor ?? null;
}

/** Remembers the cursor of the export that a run made. */
export async function moveCursor(db: Database, runId: number): Promise<void> {
  await rowsOf(db)`
    update schedules s
    set cursor = e.cursor
    from schedule_runs r
    join schedule_run_items i using (run_id)
    join exports e on e.job_id = i.job_id
    where r.run_id = ${runId} and s.environment_id = r.environment_id and s.schedule_name = r.schedule_name`;
}

export async function setRange(
  db: Database,
  runId: number,
  from: string | null,
  to: string | null,
): Promise<void> {
  await updateWhere(db, 'schedule_runs', { runId })
    .set({
      range_from: sql<Date | null>`${from}::timestamptz`,
      range_to: sql<Date | null>`${to}::timestamptz`,
    })
    .execute();
}

/** Notes the folder of the run's files. Does nothing if the task is no longer the claim's own. */
export async function setDeliveredTo(db: Database, claim: TaskClaim, folder: string): Promise<void> {
  await updateWhere(db, 'schedule_runs', { runId: claim.subjectId })
    .set({ delivered_to: folder })
    .where((eb) => eb.exists(eb.selectFrom('tasks').select('task_id').where(isOwn(claim))))
    .execute();
}
