import { sql } from 'kysely';
import type { TaskClaim } from '../../domain/task.ts';
import {
  type Database,
  deleteWhere,
  isTrue,
  prepared,
  rowsOf,
  selectWhere,
  updateWhere,
} from '../../postgres/database.ts';
import { isOwn } from '../../tasks/store.ts';
import { hasOpenRun } from './run-store.ts';

/*
 * Schedules: their definitions, the time up to which runs were created, the versions of sources
 * that were loaded, and the cursors of exports. A schedule that is deleted while a run is open
 * keeps its name, but does not have a definition.
 */

export interface StoredSchedule {
  readonly environmentId: number;
  readonly environment: string;
  readonly definition: object;
  readonly until: Date;
  readonly pausedAt: Date | null;
}

export function listSchedules(
  db: Database,
  environmentId: number | null,
  name: string | null = null,
): Promise<StoredSchedule[]> {
  return selectSchedules(prepared(db), environmentId, name)
    .orderBy('e.name')
    .orderBy('s.schedule_name')
    .execute();
}

/** True if there is a schedule, even a deleted one that has an open run. */
export function hasSchedules(db: Database): Promise<boolean> {
  return isTrue(prepared(db))`select exists (select 1 from schedules) as "hasSchedules"`;
}

/** While the schedule is locked, no other process creates runs for its due times. */
export async function lockSchedule(
  db: Database,
  environmentId: number,
  name: string,
): Promise<StoredSchedule | null> {
  const [row] = await selectSchedules(db, environmentId, name).forUpdate('s').execute();
  return row ?? null;
}

function selectSchedules(db: Database, environmentId: number | null, name: string | null) {
  let query = db
    .selectFrom('schedules as s')
    .innerJoin('environments as e', 'e.environment_id', 's.environment_id')
    .select(['s.environment_id as environmentId', 'e.name as environment', 's.definition'])
    .select(['considered_until as until', 'paused_at as pausedAt'])
    .where('s.definition', 'is not', null)
    .$narrowType<{ definition: object }>();
  if (environmentId !== null) query = query.where('s.environment_id', '=', environmentId);
  if (name !== null) query = query.where('s.schedule_name', '=', name);
  return query;
}

/** Due times that pass during a pause get no runs. Returns false if nothing changes. */
export async function setPaused(
  db: Database,
  environmentId: number,
  name: string,
  isPaused: boolean,
  now: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await updateWhere(db, 'schedules', { environmentId, scheduleName: name })
    .set(
      isPaused
        ? { paused_at: now }
        : { paused_at: null, considered_until: sql<Date>`greatest(considered_until, ${now})` },
    )
    .where('definition', 'is not', null)
    .where('paused_at', isPaused ? 'is' : 'is not', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** The definition applies from `now`. Earlier due times get no runs. */
export async function saveSchedule(
  db: Database,
  environmentId: number,
  definition: { readonly name: string },
  now: Date,
): Promise<void> {
  const values = { definition: JSON.stringify(definition), considered_until: now };
  await db
    .insertInto('schedules')
    .values({ environment_id: environmentId, schedule_name: definition.name, ...values })
    .onConflict((conflict) =>
      conflict.columns(['environment_id', 'schedule_name']).doUpdateSet({
        definition: values.definition,
        considered_until: sql<Date>`greatest(schedules.considered_until, ${now})`,
      }),
    )
    .execute();
}

/**
 * Deletes the schedule. If a run is open, deletes only the definition, and the run ends as usual.
 * Returns false if the schedule does not exist. Must be called in a transaction.
 */
export async function deleteSchedule(db: Database, environmentId: number, name: string): Promise<boolean> {
  const key = { environmentId, scheduleName: name };
  const row = await updateWhere(db, 'schedules', key)
    .set({ definition: null, paused_at: null })
    .where('definition', 'is not', null)
    .returning('schedule_name')
    .executeTakeFirst();
  if (row === undefined) return false;
  if (await hasOpenRun(db, environmentId, name)) return true;
  await deleteWhere(db, 'schedule_runs', key).execute();
  await deleteWhere(db, 'schedules', key).execute();
  return true;
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
  const rows = await rowsOf<{ item: string; version: string }>(db)`
    select item, version from schedule_memory where environment_id = ${environmentId} and schedule_name = ${name}`;
  return new Map(rows.map((row) => [row.item, row.version]));
}

export async function remember(
  db: Database,
  environmentId: number,
  name: string,
  item: string,
  version: string,
): Promise<void> {
  await sql`
    insert into schedule_memory (environment_id, schedule_name, item, version)
    values (${environmentId}, ${name}, ${item}, ${version})
    on conflict (environment_id, schedule_name, item) do update
    set version = excluded.version, loaded_at = excluded.loaded_at`.execute(db);
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

/** Stores the folder to which the export was copied. Does nothing if the claim is lost. */
export async function setDeliveredTo(db: Database, claim: TaskClaim, folder: string): Promise<void> {
  await updateWhere(db, 'schedule_runs', { runId: claim.subjectId })
    .set({ delivered_to: folder })
    .where((eb) => eb.exists(eb.selectFrom('tasks').select('task_id').where(isOwn(claim))))
    .execute();
}
