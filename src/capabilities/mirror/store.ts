/*
 * Finds the profiles missing from a load's file, by hashes of the file's keys (`load_chunk_keys`).
 * A profile whose hash equals that of a key in the file counts as present. `load_missing` lists the
 * missing keys. The profiles themselves are not marked, because every load would then rewrite all
 * profiles.
 */
import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../base/errors.ts';
import { PLANNED_ROWS_AT_A_TIME } from '../../base/limits.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { GuardLimit } from '../../domain/guards.ts';
import { isKey } from '../../postgres/change-log.ts';
import { instantText } from '../../postgres/columns.ts';
import { countOf, type Database, isTrue, selectWhere } from '../../postgres/database.ts';
import { type KeptReason, type Mirrored, mirrorOf } from './api.ts';

/**
 * The decision of a mirror as JSON. `null` before the decision, and for loads that are not mirrors.
 */
export const mirrored = sql<Mirrored | null>`(
  select to_json(m) from (select profiles, missing, allowed, done, kept_because from load_mirrors k where k.load_id = loads.load_id) m
)`;

export interface MirrorScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly entity: Entity;
  /** Time when the file was received. Profiles written later are kept. */
  readonly fileAt: string;
  readonly fileCursor: string;
}

/**
 * `isLogged`: the log contains all changes since the file was received. `isDoubtful`: the load
 * refused records for a reason other than suppression. A profile that seems to be missing may be in
 * one of these records.
 */
export async function readMirror(db: Database, loadId: number) {
  const { source, environmentId, entity, fileAt, fileCursor, ...state } = await selectWhere(db, 'loads', {
    loadId,
  })
    .select(['environment_id as environmentId', 'entity', 'source_options as source'])
    .select(mirrored.as('decided'))
    .select(sql<string>`file_cursor::text`.as('fileCursor'))
    .select([instantText(cameAt).as('fileAt'), isLogged.as('isLogged')])
    .select(
      sql<boolean>`exists (
        select 1 from load_rejects r where r.load_id = loads.load_id and r.error_code <> 'suppressed'
      )`.as('isDoubtful'),
    )
    .executeTakeFirstOrThrow();
  const mirror = mirrorOf(source);
  if (mirror === null || entity === 'auto') throw new Fault(`load ${loadId} is no mirror`);
  const scope: MirrorScope = { environmentId, loadId, entity, fileAt, fileCursor };
  return { mirror, scope, ...state };
}

/**
 * Time when a load's file was first received. A load that reuses the file of another load has the
 * time of that load.
 */
const cameAt = sql`coalesce(
  (select n.file_at from load_lineage n where n.load_id = loads.load_id), loads.accepted_at
)`;

const isLogged = sql<boolean>`coalesce(
  (select complete_since <= pg_snapshot_xmin(loads.file_cursor)::text::bigint from change_log),
  false
)`;

/** Without the log of changes, a removal cannot be undone. */
export function keepsChanges(db: Database): Promise<boolean> {
  return isTrue(db)`select complete_since is not null from change_log`;
}

const idOf = (entity: Entity) => sql.ref(`p.${idColumn[entity]}`);

/**
 * True if the profile `p` was not written after the file was received. Ignores writes by loads that
 * were accepted before the file was received. A write of a single record counts even if it changed
 * nothing but `last_seen_at`.
 */
function isOlder({ environmentId, loadId, entity, fileAt, fileCursor }: MirrorScope): RawBuilder<boolean> {
  const isSince = (position: string) =>
    sql`sluice.is_since(${sql.ref(position)}, ${fileCursor}::pg_snapshot)`;
  const isEarlier = (load: string) => sql`coalesce((
    select l.accepted_at < ${fileAt}::timestamptz from loads l where l.load_id = ${sql.ref(load)}
  ), false)`;
  return sql<boolean>`(case
    when not ${isSince('p.position')} and p.last_seen_at < ${fileAt}::timestamptz then true
    when p.load_id is not distinct from ${loadId} or p.last_seen_at <> p.updated_at or not ${isEarlier('p.load_id')} then false
    else exists (
      select 1 from load_chunks k where k.load_id = p.load_id and p.position = any (k.positions)
    ) and not exists (
      select 1
      from changes c
      where c.environment_id = ${environmentId} and c.entity = ${entity} and ${isKey('c.key', idOf(entity))}
        and (
          (${isSince('c.position')} and not ${isEarlier('c.load_id')})
          or (${isSince('c.position_before')} and not ${isEarlier('c.load_before')})
        )
    )
  end)`;
}

/**
 * True if a later file was loaded and some of its records changed nothing. Loads do not write
 * profiles that they leave unchanged, so `isOlder` cannot tell that the later file contains them.
 */
const isOvertaken = ({ environmentId, loadId, entity, fileAt }: MirrorScope): RawBuilder<boolean> =>
  sql<boolean>`exists (
    select 1
    from loads
    where environment_id = ${environmentId} and load_id <> ${loadId} and ${cameAt} > ${fileAt}::timestamptz
      and entity in (${entity}, 'auto') and rows_unchanged > 0 and not dry_run
  )`;

/**
 * Stores the missing profiles in `load_missing`. Stores none if `kept` is set, if `isOvertaken` is
 * true, or if more profiles are missing than `limit` allows.
 */
export async function listMissing(
  db: Database,
  scope: MirrorScope,
  limit: GuardLimit,
  kept: KeptReason | null,
): Promise<void> {
  const { environmentId, loadId, entity } = scope;
  const [table, id] = [sql.table(entity), idOf(entity)];
  await sql`set local work_mem = '64MB'`.execute(db);
  await sql`
    with held as materialized (
      select hash_of(hash) as hash
      from load_chunk_keys k, unnest(k.written || k.unchanged || k.repeated) hash
      where k.load_id = ${loadId} and k.entity = ${entity}
    ),
    absent as materialized (
      select p.*
      from ${table} p
      where p.environment_id = ${environmentId} and not exists (select 1 from held where hash = key_hash(${id}))
    ),
    missing as materialized (
      select ${id} as key from absent p where ${isOlder(scope)}
    ),
    made as materialized (
      select distinct hash_of(hash) as hash
      from load_chunk_keys k, unnest(k.written) hash
      where k.load_id = ${loadId} and k.entity = ${entity} and is_new(hash)
    ),
    counted as materialized (
      select
        profiles,
        (select count(*) from missing) as missing,
        ${'count' in limit ? sql`${limit.count}::bigint` : sql`floor(profiles * ${limit.percent}::numeric / 100)::bigint`} as allowed
      from (
        select count(*) filter (where m.hash is null) as profiles
        from ${table} p
        left join made m on m.hash = key_hash(${id})
        where p.environment_id = ${environmentId}
      ) s
    ),
    decided as materialized (
      select
        *,
        coalesce(
          ${kept}::text,
          case when missing > 0 and ${isOvertaken(scope)} then 'newer_file' when missing > allowed then 'too_many' end
        ) as kept_because
      from counted
    ),
    listed as (
      insert into load_missing (load_id, key) select ${loadId}, key from missing where (select kept_because is null from decided)
    )
    insert into load_mirrors (load_id, profiles, missing, allowed, kept_because)
    select ${loadId}, profiles, missing, allowed, kept_because from decided`.execute(db);
}

/**
 * Removes the next `limit` listed profiles, in the order of their keys, if that is still allowed.
 * Returns the number of profiles processed.
 */
export async function workOffMissing(db: Database, scope: MirrorScope, limit: number): Promise<number> {
  const { environmentId, loadId, entity } = scope;
  const [table, id] = [sql.table(entity), idOf(entity)];
  return countOf(db)`
    with some_keys as materialized (
      select key from load_missing where load_id = ${loadId} order by key limit ${limit}
    ),
    doomed as materialized (
      select ${id} as key
      from ${table} p
      where p.environment_id = ${environmentId} and ${id} = any (array(select key from some_keys))
        and ${isOlder(scope)} and not ${isOvertaken(scope)}
      order by ${id}
      for update of p
    ),
    done as (
      delete from ${table} p
      using doomed d
      where p.environment_id = ${environmentId} and ${id} = d.key
      returning 1
    ),
    gone as (
      delete from load_missing m using some_keys s where m.load_id = ${loadId} and m.key = s.key
    )
    update load_mirrors
    set done = load_mirrors.done + (select count(*) from done)
    where load_id = ${loadId}
    returning (select count(*)::int from some_keys) as listed`;
}

/**
 * Returns a statement that adds the missing profiles to the plan, after the rows of the load's
 * chunks. The statement returns the added rows.
 */
export async function plannedMissing(db: Database, loadId: number): Promise<RawBuilder<unknown>> {
  const { environmentId, entity } = (await readMirror(db, loadId)).scope;
  const company = entity === 'users' ? sql`p.company_id` : sql`null`;
  return sql`
    insert into planned_rows (load_id, chunk_no, is_new, entity, key, before, company_before, after, company_after)
    select
      ${loadId},
      l.chunk_count + (row_number() over (order by m.key) / ${PLANNED_ROWS_AT_A_TIME})::int,
      false, ${entity}, m.key, p.metadata, ${company},
      null, null
    from load_missing m
    join loads l using (load_id)
    join ${sql.table(entity)} p on p.environment_id = ${environmentId} and ${idOf(entity)} = m.key
    where m.load_id = ${loadId}
    returning *`;
}

/**
 * Deletes all entries of the load, even entries that no slice has processed. A plan has such
 * entries.
 */
export async function forgetMissing(db: Database, loadId: number): Promise<void> {
  await sql`delete from load_missing where load_id = ${loadId}`.execute(db);
}

export async function forgetMirror(db: Database, loadId: number): Promise<void> {
  await forgetMissing(db, loadId);
  await sql`delete from load_mirrors where load_id = ${loadId}`.execute(db);
}
