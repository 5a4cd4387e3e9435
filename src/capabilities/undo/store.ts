import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../base/errors.ts';
import { MAX_COUNTED_REJECTS } from '../../base/limits.ts';
import type { LoadStatus } from '../../domain/load.ts';
import { camel } from '../../postgres/columns.ts';
import { type Database, isTrue, selectWhere } from '../../postgres/database.ts';

export const MAX_SHOWN_UNDONE = 100;
export const MAX_SHOWN_LATER_LOADS = 20;

export type Undoable = Awaited<ReturnType<typeof readUndoable>>[number];

export async function readUndoable(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('loads as l')
    .select(camel('l.load_id', 'l.job_id', 'l.type', 'l.status', 'l.filename', 'l.total_rows', 'l.dry_run'))
    .select([sql<boolean>`${isLogged(sql.ref('l.load_id'))}`.as('isLogged')])
    .where('l.environment_id', '=', environmentId)
    .where('l.job_id', 'in', jobIds)
    .orderBy('l.load_id')
    .execute();
}

/**
 * True if the log contains all changes by a load. If changes are not logged, true only for loads
 * that have written nothing.
 */
const isLogged = (loadId: RawBuilder<unknown>) => sql<boolean>`not exists (
  select 1
  from load_chunks c
  cross join unnest(c.positions) position
  where c.load_id = ${loadId} and (position >= (select complete_since from change_log)) is not true
)`;

/**
 * True if the log contains all changes by the loads, and no record of these loads has been pruned.
 */
const areLogged = (loadIds: RawBuilder<unknown>) => sql<boolean>`(
  select bool_and(${isLogged(sql.ref('id'))} and exists (select 1 from loads l where l.load_id = id))
  from unnest(${loadIds}) id
)`;

export interface UndoSource {
  readonly environmentId: number;
  readonly isLogged: boolean;
  /** Excludes loads that another undo has already undone. */
  readonly loads: readonly number[];
  /** Loads that this undo or an earlier one undoes, with the transactions of their chunks. */
  readonly allUndone: ReadonlyMap<number, readonly string[]>;
  /**
   * The loads in `allUndone`, and also the earlier undos. Changes made by these loads and undos are
   * ignored.
   */
  readonly ignoredAuthors: ReadonlySet<number>;
  /** Earlier undos that ran after the first of `loads`. */
  readonly undos: readonly number[];
  /**
   * Loads that `undos` undid. Earlier states of a profile may contain values that these loads
   * wrote.
   */
  readonly loadsOfUndos: readonly number[];
}

interface Undo {
  readonly loadId: number;
  readonly undoes: readonly number[];
  readonly lane: number;
}

export async function readUndoSource(db: Database, loadId: number): Promise<UndoSource> {
  const { rows } = await sql<
    Pick<UndoSource, 'environmentId' | 'isLogged'> &
      Pick<Undo, 'undoes'> & { readonly earlier: readonly Undo[] }
  >`
    select
      u.environment_id as "environmentId",
      to_json(n.undoes) as undoes,
      ${areLogged(sql.ref('n.undoes'))} as "isLogged",
      (
        select coalesce(json_agg(json_build_object(
          'loadId', o.load_id, 'undoes', e.undoes, 'lane', o.lane_position
        )), '[]')
        from load_undos e
        join loads o using (load_id)
        where o.environment_id = u.environment_id and o.load_id <> u.load_id
          and o.status = 'completed' and not o.dry_run and ${areLogged(sql.ref('e.undoes'))}
      ) as earlier
    from load_undos n
    join loads u using (load_id)
    where u.load_id = ${loadId}`.execute(db);
  const [undo] = rows;
  if (undo === undefined) throw new Fault(`load ${loadId} undoes nothing`);
  const { environmentId, isLogged, undoes, earlier } = undo;
  const undone = new Set(earlier.flatMap((each) => each.undoes));
  const loads = undoes.filter((load) => !undone.has(load));
  const all = [...new Set([...undone, ...undoes])];
  const { rows: allUndone } = await sql<{ loadId: number; lane: number; positions: readonly string[] }>`
    select
      load_id as "loadId", case when attempts = 1 then lane_position else 0 end as lane,
      array(select p::text from load_chunks c cross join unnest(c.positions) p where c.load_id = loads.load_id) as positions
    from loads
    where load_id = any(${all})`.execute(db);
  const began = Math.min(...allUndone.flatMap(({ loadId: id, lane }) => (loads.includes(id) ? [lane] : [])));
  const later = earlier.filter(({ lane }) => lane > began);
  return {
    environmentId,
    isLogged,
    loads,
    allUndone: new Map(allUndone.map((load) => [load.loadId, load.positions])),
    ignoredAuthors: new Set([...all, ...earlier.map((each) => each.loadId)]),
    undos: later.map((each) => each.loadId),
    loadsOfUndos: later.flatMap((each) => each.undoes),
  };
}

export function isUndoPossible(db: Database): Promise<boolean> {
  return isTrue(db)`select complete_since is not null from change_log`;
}

/** `wasRunning` is true if work on the load had started. */
export function readStopped(db: Database, loadId: number) {
  return selectWhere(db, 'loads', { loadId })
    .select(camel('job_id', 'environment_id', 'request_id', 'filename', 'origin', 'origin_name'))
    .select([sql<boolean>`work_started_at is not null`.as('wasRunning')])
    .executeTakeFirstOrThrow();
}

export async function takePlace(db: Database, undoId: number, loadId: number): Promise<void> {
  await sql`
    update loads set lane_position = (select l.lane_position from loads l where l.load_id = ${loadId})
    where load_id = ${undoId}`.execute(db);
}

/** Must be called in the transaction that queues the undo. */
export async function insertUndo(db: Database, loadId: number, undoes: readonly number[]): Promise<void> {
  await sql`insert into load_undos (load_id, undoes) values (${loadId}, ${[...undoes]})`.execute(db);
}

export async function markUndone(db: Database, loadId: number): Promise<void> {
  await sql`
    insert into load_lineage (load_id, taken_back_by)
    select unnest(undoes), load_id
    from load_undos
    where load_id = ${loadId}
    order by 1
    on conflict (load_id) do update set taken_back_by = excluded.taken_back_by`.execute(db);
}

/** Plans do not count. Until an undo with a guard writes, it is a dry run, but it does count. */
export const isToBeUndone = sql<boolean>`exists (
  select 1
  from load_undos
  join loads u using (load_id)
  where load_undos.undoes @> array[loads.load_id]
    and u.status in ('queued', 'processing')
    and u.pass <> 'plan'
)`;

/**
 * The last undo of a load, not counting plans. `kept` counts the profiles that were not fully
 * restored.
 */
export interface LatestUndo {
  readonly jobId: string;
  readonly status: LoadStatus;
  readonly failure: string | null;
  readonly kept: number;
}

export const latestUndo = sql<LatestUndo | null>`(
  select json_build_object(
    'jobId', u.job_id, 'status', u.status, 'failure', u.failure_message, 'kept', u.rows_rejected
  )
  from load_undos
  join loads u using (load_id)
  where load_undos.undoes @> array[loads.load_id] and u.pass <> 'plan'
  order by u.load_id desc
  limit 1
)`;

const jobsOf = (condition: RawBuilder<unknown>, limit: number) => sql<readonly string[] | null>`(
  select json_agg(o.job_id)
  from (
    select o.job_id, o.load_id
    from loads o
    where o.environment_id = loads.environment_id and ${condition}
    order by o.load_id
    limit ${sql.lit(limit)}
  ) o
)`;

const ownUndoes = sql`(select undoes from load_undos where load_id = loads.load_id)::bigint[]`;

export const undoneJobs = jobsOf(sql`o.load_id = any(${ownUndoes})`, MAX_SHOWN_UNDONE);

export const undoneByJob = sql<string>`(
  select u.job_id from load_lineage n join loads u on u.load_id = n.taken_back_by where n.load_id = loads.load_id
)`;

export interface UndoFacts {
  readonly eventsGone: number;
  readonly laterLoads: readonly string[];
  readonly failed: number;
}

export const undoFacts = sql<UndoFacts>`json_build_object(
  'eventsGone', case when loads.chunks_done < loads.chunk_count then 0 else greatest(0, (
    select coalesce(sum(case when k.load_id = loads.load_id then -k.rows_removed - k.rows_unchanged else k.rows_inserted end), 0)
    from load_kinds k
    where (k.load_id = loads.load_id or k.load_id = any(${ownUndoes}))
      and k.kind not in ('identify_user', 'identify_company', 'unknown')
  )) end,
  'laterLoads', coalesce(${jobsOf(
    sql`o.ended_at > (select min(l.started_at) from loads l where l.load_id = any(${ownUndoes}))
      and o.started_at < coalesce(loads.started_at, now())
      and o.load_id <> all(${ownUndoes}) and not o.own_file and o.status = 'completed' and not o.dry_run
      and o.rows_unchanged > 0`,
    MAX_SHOWN_LATER_LOADS,
  )}, '[]'),
  'failed', (
    select count(*) filter (where error_code <> 'changed_since')
    from (
      select error_code from load_rejects r where r.load_id = loads.load_id
      order by row_number
      limit ${sql.lit(MAX_COUNTED_REJECTS)}
    ) first
  )
)`;
