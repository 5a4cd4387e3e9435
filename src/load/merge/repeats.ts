import { type RawBuilder, sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import type { LoadPass } from '../../domain/load.ts';
import type { SourceOptions } from '../../domain/source.ts';
import type { TaskClaim } from '../../domain/task.ts';
import {
  columnOf,
  countOf,
  type Database,
  findValue,
  firstRow,
  isTrue,
  selectWhere,
} from '../../postgres/database.ts';
import { holdTask } from '../../tasks/store.ts';
import { forgetPlannedRows } from '../plans/store.ts';
import { unchangedEvents } from './event-repeats.ts';

/**
 * SQL query that returns a row if the load may contain repeated keys that `upsert` has not noticed.
 * `upsert` notices a repeated key only if each chunk that contains the key writes the row. For
 * example, one chunk creates a company for a user, and another chunk finds the record of that
 * company unchanged and does not write it. If the load has a preset, this can also happen to users.
 */
const unresolved = sql`
  select 1
  from load_chunk_keys k
  where k.load_id = loads.load_id
    and (
      k.unchanged <> '{}'
      or loads.preset is not null
      or (
        k.entity = 'companies'
        and loads.entity = 'auto'
        and exists (select 1 from load_chunk_keys u where u.load_id = k.load_id and u.entity = 'users')
      )
    )`;

export interface ChunksDone {
  readonly pass: LoadPass;
  /**
   * True if several chunks may contain the same key, and at least one of them did not write the row
   * of the key. See `resolveRepeats`.
   */
  readonly hasRepeats: boolean;
  /** True if several chunks wrote the same key. See `countRestored`. */
  readonly hasRewritten: boolean;
  readonly source: SourceOptions;
}

/**
 * Checks whether the load may have repeated keys or events. Returns `null` if the load is not
 * running, or if some of its chunks are not done.
 */
export async function findRepeats(db: Database, loadId: number): Promise<ChunksDone | null> {
  const row = await selectWhere(db, 'loads', { loadId, status: 'processing' })
    .select(['pass', 'source_options as source'])
    .select([
      sql<boolean>`repeats_resolved_at is null
        and chunk_count > 1
        and (attempts > 1 or dry_run or exists (${unresolved}) or exists (${unchangedEvents(sql.ref('loads.load_id'))}))`.as(
        'has_repeats',
      ),
      sql<boolean>`exists (
        select 1 from load_chunk_keys k where k.load_id = loads.load_id and k.entity <> 'events' and k.repeated <> '{}'
      ) or exists (select 1 from load_replays r where r.load_id = loads.load_id)`.as('has_rewritten'),
    ])
    .whereRef('chunks_done', '=', 'chunk_count')
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    pass: row.pass as LoadPass,
    hasRepeats: row.has_repeats,
    hasRewritten: row.has_repeats || row.has_rewritten,
    source: row.source,
  };
}

/**
 * Finds keys that occur in several chunks if at least one of these chunks changed nothing and
 * therefore did not write the row of the key. Corrects the counts: each key counts once, as
 * inserted if the load created its row. The other records of the key count as superseded.
 *
 * A key must be replayed if its chunks did not take effect in file order. This is the case if an
 * earlier chunk wrote the key after a later chunk had found the key unchanged, or if two chunks
 * both stored that they were the first to write the key. After a retry, all repeated keys must be
 * replayed, because another load may have run before the retry. Stores the keys to replay. Holds
 * the task of the claim.
 */
export async function resolveRepeats(db: Database, claim: TaskClaim): Promise<void> {
  const loadId = claim.subjectId;
  await sql`set local work_mem = '64MB'`.execute(db);
  const surplus = (await haveRepeats(db, loadId)) ? await correctKinds(db, loadId) : null;
  await holdTask(db, claim);
  const s = { inserted: 0, updated: 0, unchanged: 0, ...surplus };
  await sql`
    update loads
    set
      rows_inserted = rows_inserted - ${s.inserted},
      rows_updated = rows_updated - ${s.updated},
      rows_unchanged = rows_unchanged - ${s.unchanged},
      rows_superseded = rows_superseded + ${s.inserted + s.updated + s.unchanged},
      repeats_resolved_at = now()
    where load_id = ${loadId}`.execute(db);
}

/**
 * Returns whether several chunks contain the same key, which is rare. Sorting the hashes takes a
 * third of the time of grouping them. PostgreSQL sorts plain numbers, because of `offset 0` and
 * because it reads one entity after the other. Sorting rows would take seven times as long.
 */
function haveRepeats(db: Database, loadId: number): Promise<boolean> {
  return isTrue(db)`
    select bool_or(repeats) as repeats
    from unnest(array['users', 'companies']) as profiles (entity)
    cross join lateral (
      select count(*) > count(distinct key_hash) as repeats
      from (
        select hash_of(hash) as key_hash
        from load_chunk_keys k, unnest(k.written || k.unchanged || k.repeated) hash
        where k.load_id = ${loadId} and k.entity = profiles.entity
        offset 0
      ) hashes
    ) of_entity`;
}

/**
 * Stores the keys to replay and corrects the counts by kind. Returns by how much the counts of the
 * load are too high.
 */
function correctKinds(db: Database, loadId: number): Promise<Record<MergedOutcome, number> | null> {
  return firstRow<Record<MergedOutcome, number>>(db)`
    with concerned as (
      select
        k.entity, bool_or(l.attempts > 1) as is_retried, bool_or(l.preset is not null) as has_preset
      from load_chunk_keys k
      join loads l using (load_id)
      where load_id = ${loadId} and k.entity <> 'events'
      group by k.entity
      having bool_or(k.entity = 'companies' or k.unchanged <> '{}' or l.attempts > 1 or l.dry_run or l.preset is not null)
    ),
    ${repeatedKeys(loadId)},
    recorded as (
      insert into load_replays (load_id, entity, key_hash)
      select ${loadId}, entity, key_hash
      from repeated
      where out_of_order
      on conflict do nothing
    ),
    surplus_by_kind as (
      select
        case entity when 'users' then 'identify_user' else 'identify_company' end as kind,
        ${forMerged((name) => sql`sum(${sql.ref(name)} - (is_counted and final_outcome = ${sql.lit(name)})::int)::bigint as ${sql.ref(name)}`)}
      from repeated
      group by entity
    ),
    corrected as (
      update load_kinds k
      set ${forMerged(correction)}, rows_superseded = rows_superseded + ${surplusOfAll}
      from surplus_by_kind s
      where k.load_id = ${loadId} and k.kind = s.kind
    )
    select ${forMerged((name) => sql`coalesce(sum(${sql.ref(name)}), 0)::bigint as ${sql.ref(name)}`)}
    from surplus_by_kind`;
}

const merged = ['inserted', 'updated', 'unchanged'] as const;
type MergedOutcome = (typeof merged)[number];

function forMerged(write: (name: MergedOutcome) => RawBuilder<unknown>): RawBuilder<unknown> {
  return sql.join(merged.map(write));
}

const correction = (name: MergedOutcome) => {
  const column = sql.ref(`rows_${name}`);
  return sql`${column} = ${column} - ${sql.ref(`s.${name}`)}`;
};
const surplusOfAll = sql.join(
  merged.map((name) => sql.ref(`s.${name}`)),
  sql` + `,
);

/** CTEs with the keys of several chunks. The CTE `concerned` contains the entities to examine. */
const repeatedKeys = (loadId: number): RawBuilder<unknown> => sql`
    occurrences as (
      select k.entity, k.chunk_no, hash, 'wrote' as action, is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.written) hash
      where k.load_id = ${loadId}
      union all
      select k.entity, k.chunk_no, hash, 'kept', is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.unchanged) hash
      where k.load_id = ${loadId}
      union all
      select k.entity, k.chunk_no, hash, 'wrote again', is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.repeated) hash
      where k.load_id = ${loadId} and (k.entity = 'companies' or is_retried or has_preset)
    ),
    repeated as (
      select
        entity,
        hash_of(hash) as key_hash,
        bool_or(is_counted(hash)) as is_counted,
        count(*) filter (where action = 'wrote' and is_counted(hash) and is_new(hash)) as inserted,
        count(*) filter (where action = 'wrote' and is_counted(hash) and not is_new(hash)) as updated,
        count(*) filter (where action = 'kept' and is_counted(hash)) as unchanged,
        case when bool_or(is_new(hash)) then 'inserted' when bool_or(action <> 'kept') then 'updated' else 'unchanged' end as final_outcome,
        count(*) filter (where action = 'wrote') > 1
          or min(chunk_no) filter (where action = 'wrote') < max(chunk_no) filter (where action = 'kept' and not is_new(hash))
          or bool_or(is_retried) as out_of_order
      from occurrences
      group by entity, hash_of(hash)
      having count(*) > 1
    )`;

/**
 * Counts keys as unchanged if the load changed their profiles and then changed them back. If the
 * log of changes is missing, such keys still count as updated. Must be called after the replay, in
 * the transaction that ends the pass. Holds the task of the claim if it corrects the load.
 */
export async function countRestored(db: Database, claim: TaskClaim, pass: LoadPass): Promise<void> {
  const loadId = claim.subjectId;
  if (pass === 'load' && !(await isTrue(db)`select exists (${rewritten(loadId)}) as some`)) return;
  const restored = pass === 'load' ? restoredByLoad(loadId) : takenFromPlan(loadId);
  // Without this setting, PostgreSQL compares every pair of keys, because it expects the arrays to
  // contain only a few hashes.
  await sql`set local enable_nestloop = off`.execute(db);
  const keys = await countOf(db)`
    with restored as (${restored}),
    counted as (
      select m.entity, m.key_hash
      from restored r
      join (
        select k.entity, hash, hash_of(hash) as key_hash
        from load_chunk_keys k, unnest(k.written || k.unchanged || k.repeated) hash
        where k.load_id = ${loadId}
      ) m on m.entity = r.entity and m.key_hash = key_hash(r.key)
      group by m.entity, m.key_hash
      having bool_or(is_counted(hash)) and not bool_or(is_new(hash))
    ),
    by_kind as (
      update load_kinds k
      set rows_updated = rows_updated - s.keys, rows_unchanged = rows_unchanged + s.keys
      from (select entity, count(*) as keys from counted group by entity) s
      where k.load_id = ${loadId}
        and k.kind = case s.entity when 'users' then 'identify_user' else 'identify_company' end
    )
    select count(*) from counted`;
  await sql`reset enable_nestloop`.execute(db);
  if (keys > 0) {
    await holdTask(db, claim);
    await sql`
      update loads
      set rows_updated = rows_updated - ${keys}, rows_unchanged = rows_unchanged + ${keys}
      where load_id = ${loadId}`.execute(db);
  }
  if (pass === 'dry_run') await forgetPlannedRows(db, [loadId]);
}

const rewritten = (loadId: number): RawBuilder<unknown> => sql`
  select k.entity, hash_of(hash) as key_hash from load_chunk_keys k, unnest(k.repeated) hash where k.load_id = ${loadId}
  union
  select entity, key_hash from load_replays where load_id = ${loadId}`;

/** Keys that several chunks wrote, and whose profiles are now the same as before the load. */
const restoredByLoad = (loadId: number): RawBuilder<unknown> => sql`
  select f.entity, f.key
  from (
    select distinct on (c.entity, c.key)
      c.entity::text as entity, c.environment_id, c.key, c.before, c.company_before
    from (${rewritten(loadId)}) rewritten
    join changes c
      on c.entity::text = rewritten.entity and key_hash(c.key) = rewritten.key_hash
    where c.load_id = ${loadId}
      and c.environment_id = (select environment_id from loads where load_id = ${loadId})
      and c.position >= (select min(position) from load_chunks, unnest(positions) position where load_id = ${loadId})
    order by c.entity, c.key, c.seq
  ) f
  where case f.entity
    when 'users' then exists (
      select 1
      from users u
      where u.environment_id = f.environment_id and u.user_id = f.key and u.metadata = f.before
        and u.company_id is not distinct from f.company_before
    )
    else exists (
      select 1
      from companies o
      where o.environment_id = f.environment_id and o.company_id = f.key and o.metadata = f.before
    )
  end`;

/** Deletes rows of a plan whose profile would be the same before and after the load. */
const takenFromPlan = (loadId: number): RawBuilder<unknown> => sql`
  delete from planned_rows
  where load_id = ${loadId} and is_repeated
    and (before, company_before) is not distinct from (after, company_after)
  returning entity, key`;

export function chunksToReplay(db: Database, loadId: number): Promise<number[]> {
  return columnOf<number>(db)`
    select k.chunk_no as "chunkNo"
    from load_chunk_keys k
    where k.load_id = ${loadId}
      and exists (
        select 1
        from unnest(k.written || k.unchanged || k.repeated) hash
        join load_replays r on r.load_id = k.load_id and r.entity = k.entity and r.key_hash = hash_of(hash)
      )
    group by k.chunk_no
    order by k.chunk_no`;
}

/** Returns the number of rows of the batch whose keys need a replay. */
export async function keepReplayed(db: Database, loadId: number, entity: Entity): Promise<number> {
  const table = sql.table(entity === 'users' ? 'incoming_users' : 'incoming_companies');
  await sql`
    delete from ${table} i
    where key_hash(i.key) not in (
      select key_hash from load_replays where load_id = ${loadId} and entity = ${entity}
    )`.execute(db);
  return (await findValue<number>(db)`select count(*)::int as left from ${table}`) ?? 0;
}

/**
 * Deletes the hashes of keys and the data for replays, which only running loads and retries need.
 */
export async function forgetRepeats(db: Database, loadIds: readonly number[]): Promise<void> {
  await sql`delete from load_chunk_keys where load_id = any(${[...loadIds]}::bigint[])`.execute(db);
  await forgetReplays(db, loadIds);
}

/** Deletes the data for replays, but keeps the hashes of keys. */
export async function forgetReplays(db: Database, loadIds: readonly number[]): Promise<void> {
  for (const table of ['load_replays', 'load_event_replays'])
    await sql`delete from ${sql.table(table)} where load_id = any(${[...loadIds]}::bigint[])`.execute(db);
}
