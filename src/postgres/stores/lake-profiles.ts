/** The SQL of the tables of profiles in the lake: `users` and `companies`, in files of ranges of ids. */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../database.ts';

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

export async function listRanges(db: Database, table: ProfileTable): Promise<ProfileRange[]> {
  const { rows } = await sql<ProfileRange>`
    select ${rangeColumns} from (${ranges(table)}) f order by f.place`.execute(db);
  return rows;
}

/**
 * Lists the files whose profiles have changed since the last refresh. A profile that went is one fewer, whoever removed it: so this needs no
 * log of changes.
 */
export async function findChangedRanges(db: Database, table: ProfileTable): Promise<ProfileRange[]> {
  const { environmentId, name } = table;
  const { rows } = await sql<ProfileRange>`
    with files as materialized (${ranges(table)}),
    found as (
      select
        width_bucket(p.id, (select coalesce(array_agg(first_key order by place), '{}') from files where first_key is not null)) + 1 as place,
        count(*) as row_count,
        bool_or(is_since(p.position, t.cursor)) as is_changed
      from (
        select ${sql.ref(idColumn[name])} as id, position from ${sql.table(name)} where environment_id = ${environmentId}
      ) p
      cross join (select cursor from lake_tables where environment_id = ${environmentId} and name = ${name}) t
      group by 1
    )
    select ${rangeColumns}
    from files f
    left join found using (place)
    where found.row_count is distinct from f.row_count or found.is_changed
    order by f.place`.execute(db);
  return rows;
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
export async function readRevision(
  db: Database,
  { environmentId, name }: ProfileTable,
): Promise<number | null> {
  const { rows } = await sql<{ revision: number }>`
    select revision from lake_tables where environment_id = ${environmentId} and name = ${name}`.execute(db);
  return rows[0]?.revision ?? null;
}

/**
 * Makes files that were written of an earlier state worthless. With `expected`, only if the table is in that state; `cursor` is what a
 * refresh has seen. Returns false if nothing was done.
 */
export async function raiseRevision(
  db: Database,
  { environmentId, name }: ProfileTable,
  {
    expected = null,
    cursor = null,
  }: { readonly expected?: number | null; readonly cursor?: string | null } = {},
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update lake_tables
    set revision = revision + 1, cursor = coalesce(${cursor}::pg_snapshot, cursor)
    where environment_id = ${environmentId} and name = ${name} and revision = coalesce(${expected}::bigint, revision)`.execute(
    db,
  );
  return numAffectedRows === 1n;
}
