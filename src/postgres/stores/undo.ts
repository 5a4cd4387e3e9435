import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { TransientError } from '../../domain/errors.ts';
import { type ChunkRange, type UndoOfLoads, undoneLoads } from '../../domain/load.ts';
import type { FileRef } from '../../files/file-store.ts';
import { camel } from '../columns.ts';
import type { Database } from '../database.ts';
import { isKey } from './change-log.ts';
import { insertChunks } from './loads.ts';
import { takeReceived } from './uploads.ts';

/*
 * Reads what loads changed from the log of changes: the reverse patch of an undo, whose file is written from the lines of these selects.
 * The line of a profile that the undone loads changed last and once is finished here (`{…}`): nearly all are, and it costs next to
 * nothing. Any other line has the whole log of the profile (`[…]`), and `walkBack` decides.
 */

/** A load that is to be undone. */
export type Undoable = Awaited<ReturnType<typeof readUndoable>>[number];

/** The environment's loads of these jobs, and the amendments of them. */
export async function readUndoable(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('loads as l')
    .leftJoin('loads as parent', 'parent.load_id', 'l.amends')
    .select(camel('l.load_id', 'l.job_id', 'l.status', 'l.filename', 'l.total_rows', 'l.dry_run'))
    .select(sql<boolean>`${isLogged(sql.ref('l.load_id'))}`.as('isLogged'))
    .where('l.environment_id', '=', environmentId)
    .where((eb) => eb.or([eb('l.job_id', 'in', jobIds), eb('parent.job_id', 'in', jobIds)]))
    .orderBy('l.load_id')
    .execute();
}

/** Tells whether all that a load wrote is in the log. Nothing is if that is off. */
const isLogged = (loadId: RawBuilder<unknown>) => sql<boolean>`not exists (
  select 1
  from load_chunks c
  cross join unnest(c.positions) position
  where c.load_id = ${loadId} and (position >= (select complete_since from change_log)) is not true
)`;

/** The loads that an undo undoes, for the selects below: text, because COPY takes no other parameters. */
export interface UndoSource {
  readonly environmentId: number;
  readonly loads: readonly number[];
  readonly properties: readonly string[] | null;
  /** The transactions in which their chunks were written. */
  readonly positions: readonly string[];
  /** Loads that were undone before, by an undo that was not undone itself. */
  readonly inactive: readonly number[];
  /** The first transaction of all of these. */
  readonly firstPosition: string;
  /** All undos of the environment; one that is not completed is not whole. */
  readonly undos: readonly UndoOfLoads[];
  /**
   * Files of undos that removed events. `back`: it is to be undone, and they come back. `again`: it was undone, and those that the loads
   * had added are at other positions now.
   */
  readonly eventFiles: readonly {
    readonly jobId: string;
    readonly ref: FileRef | null;
    readonly use: 'back' | 'again';
  }[];
  readonly isLogged: boolean;
  readonly hasEvents: boolean;
}

/** Returns `null` if the load is no undo. */
export async function readUndoSource(db: Database, loadId: number): Promise<UndoSource | null> {
  const { rows } = await sql<Omit<UndoSource, 'inactive' | 'firstPosition'>>`
    select
      u.environment_id as "environmentId",
      to_json(u.undoes) as loads,
      u.undo_properties as properties,
      (
        select coalesce(array_agg(p::text), '{}')
        from load_chunks c
        cross join unnest(c.positions) p
        where c.load_id = any(u.undoes)
      ) as positions,
      (
        select coalesce(json_agg(json_build_object(
          'loadId', o.load_id, 'undoes', o.undoes,
          'isWhole', o.status = 'completed' and not o.dry_run and o.undo_properties is null
        )), '[]')
        from loads o
        where o.environment_id = u.environment_id and o.undoes is not null
      ) as undos,
      (
        select coalesce(json_agg(json_build_object(
          'jobId', o.job_id, 'ref', o.file_ref, 'use', case when o.load_id = any(u.undoes) then 'back' else 'again' end
        )), '[]')
        from loads o
        where o.environment_id = u.environment_id
          and o.undoes is not null
          and (o.load_id = any(u.undoes) or (o.undone_by is not null and o.undoes && u.undoes))
          and exists (
            select 1
            from load_kinds k
            where k.load_id = o.load_id and k.kind not in ('identify_user', 'identify_company', 'unknown') and k.rows_removed > 0
          )
      ) as "eventFiles",
      (select bool_and(${isLogged(sql.ref('id'))}) from unnest(u.undoes) id) as "isLogged",
      exists (
        select 1
        from load_kinds k
        where k.load_id = any(u.undoes) and k.kind not in ('identify_user', 'identify_company', 'unknown') and k.rows_inserted > 0
      ) as "hasEvents"
    from loads u
    where u.load_id = ${loadId} and u.undoes is not null`.execute(db);
  const [source] = rows;
  if (source === undefined) return null;
  const { undos, loads } = source;
  const undone = undoneLoads(
    undos.filter(({ isWhole }) => isWhole),
    loads,
  );
  const inactive = [...undone.keys()].filter((load) => !loads.includes(load));
  const { rows: positions } = await sql<{ first: string }>`
    select coalesce(min(p), 0)::text as first
    from load_chunks c
    cross join unnest(c.positions) p
    where c.load_id = any(${[...loads, ...inactive]}::bigint[])`.execute(db);
  return { ...source, inactive, firstPosition: positions[0]?.first ?? '0' };
}

/** Lines for the profiles that the loads changed or removed. */
export function changedProfiles(entity: Entity, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, byLoads } = parameters(source);
  // Changes by loads that were undone before may be covered by these: then it is not so simple.
  const earlier = parameters({ ...source, loads: source.inactive }).byLoads;
  const isTheirs = sql`(${byLoads(sql`load_id`)} or ${madeByLoads(entity, source, sql`load_before`, sql`position_before`)})`;
  const isAlone = sql`
    c.is_first and c.is_last and not c.removed and c.position = p.position and c.is_theirs and c.is_old`;
  const company = entity === 'users' ? sql`coalesce(to_json(c.company_before)::text, 'null')` : sql`'null'`;
  const finished = sql`
    '{"entity":"${sql.raw(entity)}","id":' || to_json(c.key)::text || ',"position":' || p.position
      || ',"company":' || ${company} || ',"metadata":' || c.before::text || '}'`;
  return sql`
    select case when ${source.properties === null ? isAlone : sql`false`} then ${finished} else ${whole(entity, source, sql`c.key`)} end
    from (
      select
        key, position, removed, before, company_before,
        coalesce(${byLoads(sql`load_id`)}, false) as is_theirs,
        (${madeByLoads(entity, source, sql`load_before`, sql`position_before`)} or ${earlier(sql`load_before`)}) is not true as is_old,
        bool_or(coalesce(${isTheirs}, false)) over of_profile as is_concerned,
        lag(key) over in_order is distinct from key as is_first,
        lead(key) over in_order is distinct from key as is_last
      from changes
      where environment_id = ${environment} and entity = ${sql.lit(entity)} and position >= ${first}
        and (${isTheirs} or ${earlier(sql`load_id`)} or ${earlier(sql`load_before`)})
      window in_order as (order by key, seq), of_profile as (partition by key)
    ) c
    left join ${profile(entity, environment)} on p.key = c.key
    where c.is_first and c.is_concerned
    order by c.key`;
}

/** Lines for the profiles that the loads made and that nobody is known to have changed since. */
export function madeProfiles(entity: Entity, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, positions } = parameters(source);
  const isAlone =
    source.properties === null && entity === 'users'
      ? sql`p.position in (select unnest(${positions}))`
      : sql`false`;
  return sql`
    select case when ${isAlone}
      then '{"entity":"${sql.raw(entity)}","id":' || to_json(p.key)::text || ',"position":' || p.position || ',"removed":true}'
      else ${whole(entity, source, sql`p.key`)}
    end
    from ${profile(entity, environment)}
    where p.position >= ${first}
      and ${madeByLoads(entity, source, sql`p.made`, sql`p.position`)}
      and not exists (${changesByLoads(entity, sql`p.key`, source)})
    order by p.key`;
}

/** Tells whether the loads wrote a state. A company that only users name bears no load: it came with them. */
function madeByLoads(
  entity: Entity,
  source: UndoSource,
  load: RawBuilder<unknown>,
  position: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const { byLoads, positions } = parameters(source);
  if (entity === 'users') return byLoads(load);
  return sql`(${byLoads(load)} or (${load} is null and ${position} in (select unnest(${positions}))))`;
}

/** The changes of a profile that tell that the loads wrote it. */
function changesByLoads(entity: Entity, key: RawBuilder<unknown>, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, byLoads } = parameters(source);
  return sql`
    select 1
    from changes t
    where t.environment_id = ${environment} and t.entity = ${sql.lit(entity)} and ${isKey('t.key', key)} and t.position >= ${first}
      and (${byLoads(sql`t.load_id`)} or ${madeByLoads(entity, source, sql`t.load_before`, sql`t.position_before`)})`;
}

const profile = (entity: Entity, environment: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
  select ${sql.ref(idColumn[entity])} as key, position, metadata, load_id as made,
    ${entity === 'users' ? sql`company_id` : sql`null::text`} as company
  from ${sql.table(entity)}
  where environment_id = ${environment}
) p`;

/** The profile `p` with its whole log, as a `LoggedProfile` after a bracket. */
function whole(entity: Entity, source: UndoSource, key: RawBuilder<unknown>): RawBuilder<unknown> {
  const { environment, byLoads, positions, loads } = parameters(source);
  const made = (load: RawBuilder<unknown>, position: RawBuilder<unknown>) =>
    entity === 'users'
      ? load
      : sql`case when ${madeByLoads(entity, source, load, position)} then coalesce(${load}, (${loads})[1]) else ${load} end`;
  const others =
    entity === 'users'
      ? sql`false`
      : sql`exists (
          select 1
          from users m
          where m.environment_id = ${environment} and m.company_id = ${key}
            and (${byLoads(sql`m.load_id`)} is not true or m.position not in (select unnest(${positions})))
            and not exists (${changesByLoads('users', sql`m.user_id`, source)})
        )`;
  return sql`
    '[' || jsonb_build_object(
      'entity', '${sql.raw(entity)}',
      'id', ${key},
      'others', ${others},
      'now', case when p.key is not null then jsonb_build_object(
        'position', p.position, 'made', ${made(sql`p.made`, sql`p.position`)},
        'company', p.company, 'properties', sluice.texts(p.metadata)
      ) end,
      'log', (
        select jsonb_agg(
          jsonb_build_object(
            'by', l.load_id, 'made', ${made(sql`l.load_before`, sql`l.position_before`)}, 'removed', l.removed,
            'company', l.company_before, 'properties', sluice.texts(l.before), 'firstSeen', l.first_seen_before
          )
          order by l.seq
        )
        from changes l
        where l.environment_id = ${environment} and l.entity = ${sql.lit(entity)} and ${isKey('l.key', key)}
      )
    )::text`;
}

/** Lines for the events that the loads added. */
export function addedEvents(source: UndoSource): RawBuilder<unknown> {
  const { environment, positions } = parameters(source);
  return sql`
    select
      '{"entity":"events","removed":true,"from":' || e.position || ',' || substr(json_build_object(
        'id', e.event_id, 'user', e.user_id, 'at', e.inserted_at, 'type', e.event_type, 'name', e.event_name,
        'company', e.company_id, 'source', e.source, 'once', i.event_id is not null, 'metadata', e.metadata
      )::text, 2)
    from events e
    left join event_ids i
      on i.environment_id = e.environment_id and i.event_id = e.event_id and i.user_id = e.user_id
        and i.inserted_at = e.inserted_at
    where e.environment_id = ${environment} and e.position = any(${positions})`;
}

function parameters({ environmentId, loads, positions, firstPosition }: UndoSource) {
  const given = sql`${`{${loads.join()}}`}::bigint[]`;
  return {
    environment: sql`${String(environmentId)}::integer`,
    first: sql`${firstPosition}::bigint`,
    loads: given,
    byLoads: (column: RawBuilder<unknown>) => sql`(${column} = any(${given}))`,
    positions: sql`${`{${positions.join()}}`}::bigint[]`,
  };
}

/** A reverse patch that was written. */
export interface WrittenFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  readonly rows: number;
  readonly chunks: readonly ChunkRange[];
}

/**
 * Gives an undo the file that was written for it. One that it had is left to the sweep of received files.
 * Throws `TransientError` if the new one was swept already.
 */
export async function attachPatch(
  db: Database,
  loadId: number,
  { chunks, ...file }: WrittenFile,
): Promise<void> {
  if (!(await takeReceived(db, file.ref))) throw new TransientError('the file waited too long for its load');
  await sql`
    insert into received_files (file_ref)
    select file_ref from loads where load_id = ${loadId} and file_ref is not null`.execute(db);
  await db.deleteFrom('load_chunks').where('load_id', '=', loadId).execute();
  await db
    .updateTable('loads')
    .set({
      file_ref: file.ref,
      file_size: file.bytes,
      sha256: Buffer.from(file.sha256, 'hex'),
      total_rows: file.rows,
      chunk_count: chunks.length,
      chunks_done: 0,
    })
    .where('load_id', '=', loadId)
    .execute();
  await insertChunks(db, loadId, chunks);
}
