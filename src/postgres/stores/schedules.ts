import { sql } from 'kysely';
import type pg from 'pg';
import { MAX_SCHEDULES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { withTimeout } from '../pool.ts';

/* Schedules as the workers remember them: up to when they were seen to, what they have loaded and exported, how they fare. */

/** The progress of a schedule. */
export interface Considered {
  /** Up to when its due times have been. */
  readonly until: Date;
  /** Since when nothing is due of it; null: it is not paused. */
  readonly pausedAt: Date | null;
}

/** By environment id and name. */
export async function readConsidered(db: Database): Promise<Map<string, Considered>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['environment_id', 'schedule_name', 'considered_until', 'paused_at'])
    .execute();
  return new Map(
    rows.map((row) => [
      scheduleKey(row.environment_id, row.schedule_name),
      { until: row.considered_until, pausedAt: row.paused_at },
    ]),
  );
}

/** Since when each paused schedule of the environment is so, by name. */
export async function readPauses(db: Database, environmentId: number): Promise<ReadonlyMap<string, Date>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['schedule_name', 'paused_at'])
    .where('environment_id', '=', environmentId)
    .execute();
  return new Map(
    rows.flatMap((row) => (row.paused_at === null ? [] : [[row.schedule_name, row.paused_at] as const])),
  );
}

/** Pauses it, or lets it go on: what was due meanwhile is not made up. Does nothing if it is so already. */
export async function setPaused(
  db: Database,
  environmentId: number,
  name: string,
  isPaused: boolean,
  now: Date,
): Promise<void> {
  await db
    .updateTable('schedules')
    .set(
      isPaused
        ? { paused_at: now }
        : { paused_at: null, considered_until: sql<Date>`greatest(considered_until, ${now})` },
    )
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .where('paused_at', isPaused ? 'is' : 'is not', null)
    .execute();
}

export function scheduleKey(environmentId: number, name: string): string {
  return `${environmentId}/${name}`;
}

/** Notes that a schedule is there, and that nothing before `now` is asked of it. Does nothing if it is known. */
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

/** Holds the schedule until the transaction ends: nobody else sees to its due times. */
export async function lockSchedule(db: Database, environmentId: number, name: string): Promise<Considered> {
  const row = await db
    .selectFrom('schedules')
    .select(['considered_until', 'paused_at'])
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return { until: row.considered_until, pausedAt: row.paused_at };
}

export async function markConsidered(
  db: Database,
  environmentId: number,
  name: string,
  until: Date,
): Promise<void> {
  await db
    .updateTable('schedules')
    .set({ considered_until: until })
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .where('considered_until', '<', until)
    .execute();
}

/** The version of each item that was loaded last. */
export async function readMemory(
  db: Database,
  { environmentId, name }: { readonly environmentId: number; readonly name: string },
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('schedule_memory')
    .select(['item', 'version'])
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
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

const timeoutMs = 5_000;
/** Among so many of the latest runs of each schedule its last success is looked for: it must not cost more the more is kept. */
const runsLookedAt = 1_000;
/** Workers note every half minute that they see to a schedule; one that falls this far behind the others is in no file any more. */
const forgottenAfterMinutes = 10;

/** The health of a schedule; those of one name in several environments are taken together. */
export interface ScheduleFigures {
  readonly name: string;
  /** Since the last run that did not fail ended. If none is found, since the first one looked at was due: it is at least as long. */
  readonly secondsSinceSuccess: number;
  /** The last run that ended, and was not skipped, failed. */
  readonly failing: boolean;
}

/** Runs of the last 24 hours, of all schedules, by how they ended. */
export type RecentRuns = Readonly<
  Record<'completed' | 'completed_with_rejects' | 'unchanged' | 'skipped' | 'failed', number>
>;

export interface SchedulesOverview {
  /** Schedules in force that have had a run. */
  readonly schedules: readonly ScheduleFigures[];
  readonly recent: RecentRuns;
}

const schedulesStatement = `
  with in_force as (
    select environment_id, schedule_name
    from schedules
    where considered_until > (
      select max(considered_until) - interval '${forgottenAfterMinutes} min' from schedules
    )
  ),
  fared as (
    select
      s.schedule_name,
      max(r.ended_at) filter (where r.status in ('completed', 'completed_with_rejects', 'unchanged')) as succeeded_at,
      min(r.due_at) as first_due_at,
      (array_agg(r.status order by r.ended_at desc) filter (where r.status not in ('queued', 'waiting', 'skipped')))[1]
        as last_status
    from in_force s
    cross join lateral (
      select status, due_at, ended_at
      from schedule_runs
      where environment_id = s.environment_id and schedule_name = s.schedule_name
      order by due_at desc
      limit ${runsLookedAt}
    ) r
    group by s.environment_id, s.schedule_name
  )
  select
    schedule_name as name,
    greatest(extract(epoch from now() - min(coalesce(succeeded_at, first_due_at))), 0)::float8 as "secondsSinceSuccess",
    coalesce(bool_or(last_status = 'failed'), false) as failing
  from fared
  group by schedule_name
  order by schedule_name
  limit ${MAX_SCHEDULES}`;

/* Read through schedule_runs_ended_idx. */
const recentStatement = `
  select
    count(*) filter (where status = 'completed') as completed,
    count(*) filter (where status = 'completed_with_rejects') as completed_with_rejects,
    count(*) filter (where status = 'unchanged') as unchanged,
    count(*) filter (where status = 'skipped') as skipped,
    count(*) filter (where status = 'failed') as failed
  from schedule_runs
  where ended_at > now() - interval '24 hours'`;

export async function readSchedules(watch: pg.Pool): Promise<SchedulesOverview> {
  const schedules = await watch.query<ScheduleFigures>(withTimeout(schedulesStatement, timeoutMs));
  const { rows } = await watch.query<RecentRuns>(withTimeout(recentStatement, timeoutMs));
  const [recent] = rows;
  if (recent === undefined) throw new Error('a row was expected');
  return { schedules: schedules.rows, recent };
}
