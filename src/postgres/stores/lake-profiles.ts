/** The SQL of the tables of profiles in the lake: `users` and `companies`, in files of ranges of ids. */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { changedBy, type Database, findValue, rowsOf } from '../database.ts';

export interface ProfileTable {
  readonly environmentId: number;
  readonly name: Entity;
}

/** A file of profiles, or what is to become one: it holds all ids from its first up to the first of the next. */
export interface ProfileRange {
  /** null: there is none yet. */
  readonly fileId: number | null;
  /** null: from the least id on. */
  readonly from: string | null;
  /** null: up to the greatest. */
  readonly to: string | null;
}

const ranges = ({ environmentId, name }: ProfileTable) => sql`
  select
    file_id,
    row_count,
    row_number() over by_key as place,
    case when lag(file_id) over by_key is not null then first_key end as first_key,
    lead(first_key) over by_key as next_key
  from lake_files
  where environment_id = ${environmentId} and table_name = ${name} and kind = 'data' and state = 'stored'
  window by_key as (order by first_key)`;

const rangeColumns = sql`f.file_id as "fileId", f.first_key as "from", f.next_key as "to"`;

export function listRanges(db: Database, table: ProfileTable): Promise<ProfileRange[]> {
  return rowsOf<ProfileRange>(db)`select ${rangeColumns} from (${ranges(table)}) f order by f.place`;
}

/**
 * Lists the files whose profiles have changed since the last refresh. A profile that went is one fewer, whoever removed it: so this needs no
 * log of changes. Profiles are counted by the index of ids and found by that of positions: the table itself is hardly read.
 */
export function findChangedRanges(db: Database, table: ProfileTable): Promise<ProfileRange[]> {
  const { environmentId, name } = table;
  const place = sql`width_bucket(p.${sql.ref(idColumn[name])}, (select coalesce(keys, '{}') from bounds)) + 1`;
  return rowsOf<ProfileRange>(db)`
    with files as materialized (${ranges(table)}),
    bounds as materialized (
      select array_agg(first_key order by place) filter (where first_key is not null) as keys from files
    ),
    seen as materialized (
      select cursor, pg_snapshot_xmin(cursor)::text::bigint as position
      from lake_tables
      where environment_id = ${environmentId} and name = ${name}
    ),
    counted as (
      select ${place} as place, count(*) as row_count
      from ${sql.table(name)} p
      where environment_id = ${environmentId}
      group by 1
    ),
    changed as (
      select distinct ${place} as place
      from ${sql.table(name)} p
      where environment_id = ${environmentId}
        and position >= (select position from seen)
        and is_since(position, (select cursor from seen))
    )
    select ${rangeColumns}
    from files f
    left join counted using (place)
    where counted.row_count is distinct from f.row_count or f.place in (select place from changed)
    order by f.place`;
}

/** The profiles of a range, as a source of rows. */
export function profilesIn(
  { environmentId, name }: ProfileTable,
  { from, to }: ProfileRange,
): RawBuilder<unknown> {
  const id = sql.ref(idColumn[name]);
  const bounds = [
    ...(from === null ? [] : [sql`${id} >= ${from}::text`]),
    ...(to === null ? [] : [sql`${id} < ${to}::text`]),
  ];
  return sql`(
    select * from ${sql.table(name)}
    where ${sql.join([sql`environment_id = ${sql.lit(environmentId)}`, ...bounds], sql` and `)}
  )`;
}

/** Returns the state of the table that files written now depend on; null if there is no such table. */
export function readRevision(db: Database, { environmentId, name }: ProfileTable): Promise<number | null> {
  return findValue<number>(db)`
    select revision from lake_tables where environment_id = ${environmentId} and name = ${name}`;
}

/**
 * Makes files that were written of an earlier state worthless. With `expected`, only if the table is in that state; `cursor` is what a
 * refresh has seen. Returns false if nothing was done.
 */
export async function raiseRevision(
  db: Database,
  { environmentId, name }: ProfileTable,
  state: { readonly expected?: number | null; readonly cursor?: string | null } = {},
): Promise<boolean> {
  const { expected = null, cursor = null } = state;
  const changed = await changedBy(db)`
    update lake_tables
    set revision = revision + 1, cursor = coalesce(${cursor}::pg_snapshot, cursor)
    where environment_id = ${environmentId} and name = ${name} and revision = coalesce(${expected}::bigint, revision)`;
  return changed === 1;
}
