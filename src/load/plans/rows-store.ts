import { type RawBuilder, sql } from 'kysely';
import { MiB, PLANNED_ROWS_AT_A_TIME } from '../../base/limits.ts';
import { nextOf } from '../../base/pages.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { countOf, type Database, rowsOf } from '../../postgres/database.ts';
import { MAX_SAMPLE_PROPERTIES, MAX_SAMPLE_VALUE_CHARS, PLAN_SAMPLE_ROWS } from '../limits.ts';

const PLANNED_BYTES_AT_A_TIME = MiB;

/** Changed or removed row, with the properties that differ. Their values are truncated. */
export interface SampledRow {
  readonly entity: Entity;
  readonly key: string;
  /** JSON text. `after` is the JSON text `null` if the profile is removed. */
  readonly before: string;
  readonly after: string;
  readonly companyBefore: string | null;
  readonly companyAfter: string | null;
  readonly moreProperties: number;
}

export function readPlanSample(db: Database, loadId: number): Promise<SampledRow[]> {
  const shown = (side: 'before' | 'after') => {
    const value = sql`r.${sql.ref(side)} -> d.name`;
    const cut = sql`to_jsonb(left(r.${sql.ref(side)} ->> d.name, ${MAX_SAMPLE_VALUE_CHARS}) || '…')`;
    return sql`coalesce(
      jsonb_object_agg(d.name, case when length((${value})::text) > ${MAX_SAMPLE_VALUE_CHARS} then ${cut} else ${value} end)
        filter (where d.place <= ${MAX_SAMPLE_PROPERTIES} and ${value} is not null),
      '{}'
    )::text`;
  };
  return rowsOf<SampledRow>(db)`
    select
      r.entity, r.key, c.before, case when r.after is null then 'null' else c.after end as after,
      r.company_before as "companyBefore", r.company_after as "companyAfter",
      greatest(c.names - ${MAX_SAMPLE_PROPERTIES}, 0) as "moreProperties"
    from (
      select *
      from planned_rows
      where load_id = ${loadId} and not is_new
      order by entity desc, chunk_no, key
      limit ${PLAN_SAMPLE_ROWS}
    ) r
    cross join lateral (
      select ${shown('before')} as before, ${shown('after')} as after, count(*)::int as names
      from (
        select n.name, row_number() over (order by n.name) as place
        from jsonb_object_keys(r.before || coalesce(r.after, '{}')) n (name)
        where r.before -> n.name is distinct from r.after -> n.name
      ) d
    ) c
    order by r.entity desc, r.chunk_no, r.key`;
}

export interface PlannedPlace {
  readonly entity: Entity;
  readonly isNew: boolean;
  readonly chunkNo: number;
  readonly key: string;
}

export interface PlannedPage<T> {
  readonly rows: readonly T[];
  /** Place after which the next page begins. `null` on the last page. */
  readonly next: PlannedPlace | null;
}

export const firstPlannedPlace: PlannedPlace = { entity: 'companies', isNew: false, chunkNo: -1, key: '' };

/** PostgreSQL writes the lines of JSON, so that numbers keep all their digits. */
export async function readPlannedLines(
  db: Database,
  loadId: number,
  after: PlannedPlace,
): Promise<PlannedPage<string>> {
  const { rows } = await sql<Paged & { readonly line: string }>`
    select
      entity, is_new as "isNew", chunk_no as "chunkNo", key, more,
      json_build_object(
        'entity', entity, 'id', key, 'outcome', ${outcome},
        'before', before, 'after', after, 'company_before', company_before, 'company_after', company_after
      )::text as line
    from (${page(loadId, after)}) r
    order by entity, is_new, chunk_no, key`.execute(db);
  return { rows: rows.map(({ line }) => line), next: nextPlace(rows) };
}

/**
 * Difference in one property, or in `company_id`. `name` is `null` for a new row that has neither a
 * property nor a company.
 */
export interface PlannedValue {
  readonly entity: Entity;
  readonly key: string;
  readonly outcome: 'new' | 'changed' | 'removed';
  readonly name: string | null;
  /**
   * Value of the property: a string as plain text, any other value as JSON. `null` if there is no
   * value.
   */
  readonly before: string | null;
  readonly after: string | null;
}

export async function readPlannedValues(
  db: Database,
  loadId: number,
  after: PlannedPlace,
): Promise<PlannedPage<PlannedValue>> {
  const { rows } = await sql<Paged & PlannedValue>`
    select
      r.entity, r.is_new as "isNew", r.chunk_no as "chunkNo", r.key, r.more, ${outcome} as outcome,
      v.name, v.before, v.after
    from (${page(loadId, after)}) r
    left join lateral (
      select 1 as place, 'company_id' as name, r.company_before as before, r.company_after as after
      where r.company_before is distinct from r.company_after
      union all
      select 2, n.name, r.before ->> n.name, r.after ->> n.name
      from jsonb_object_keys(coalesce(r.before, '{}') || coalesce(r.after, '{}')) n (name)
      where r.before -> n.name is distinct from r.after -> n.name
    ) v on true
    order by r.entity, r.is_new, r.chunk_no, r.key, v.place, v.name`.execute(db);
  return { rows, next: nextPlace(rows) };
}

const outcome = sql`case when r.is_new then 'new' when r.after is null then 'removed' else 'changed' end`;

/** Rows after a place, limited in number and bytes. `more` is true if further rows follow. */
const page = (loadId: number, { entity, isNew, chunkNo, key }: PlannedPlace): RawBuilder<unknown> => sql`
  select *, count(*) over () < found as more
  from (
    select
      *,
      count(*) over () as found,
      row_number() over in_order as place,
      sum(bytes) over in_order - bytes as bytes_before
    from (
      select *, coalesce(pg_column_size(before), 0) + coalesce(pg_column_size(after), 0) as bytes
      from planned_rows
      where load_id = ${loadId}
        and (entity, is_new, chunk_no, key) > (${entity}, ${isNew}::boolean, ${chunkNo}::int, ${key} collate "C")
      order by entity, is_new, chunk_no, key
      limit ${PLANNED_ROWS_AT_A_TIME + 1}
    ) candidates
    window in_order as (order by entity, is_new, chunk_no, key)
  ) measured
  where place <= ${PLANNED_ROWS_AT_A_TIME} and bytes_before < ${PLANNED_BYTES_AT_A_TIME}`;

interface Paged extends PlannedPlace {
  readonly more: boolean;
}

function nextPlace(rows: readonly Paged[]): PlannedPlace | null {
  const hasMore = rows.at(-1)?.more === true;
  return nextOf(rows, hasMore, ({ entity, isNew, chunkNo, key }) => ({ entity, isNew, chunkNo, key }));
}

interface Plan {
  readonly loadId: number;
  readonly environmentId: number;
  /** Cursor in the log of changes at the start of planning. */
  readonly since: string;
}

/**
 * Counts profiles that have been changed or removed since planning. For profiles that the load
 * would not change, the plan contains only hashes of their keys. If the log of changes does not go
 * back as far as the planning, all profiles are compared.
 */
export async function countDrift(db: Database, loadId: number): Promise<number> {
  const plan = await db
    .selectFrom('loads')
    .innerJoin('load_plans', 'load_plans.load_id', 'loads.load_id')
    .select(['loads.load_id as loadId', 'environment_id as environmentId', 'plan_cursor as since'])
    .where('loads.load_id', '=', loadId)
    .executeTakeFirstOrThrow();
  return countOf(db)`
    select count(*) as drifted
    from (
      ${drifted(plan, 'users', sql`or p.company_id is distinct from r.company_before`)}
      union
      ${drifted(plan, 'companies')}
    ) drifted`;
}

/**
 * SQL query for the keys of profiles that no longer match the plan. The cursor is a query
 * parameter, because PostgreSQL can then use a BRIN index to find rows that were written later.
 */
function drifted(
  { loadId, environmentId, since }: Plan,
  entity: Entity,
  orElse = sql``,
): RawBuilder<unknown> {
  const [table, id] = [sql.table(entity), sql.ref(`p.${idColumn[entity]}`)];
  const hashIn = (key: RawBuilder<unknown>, hashes: RawBuilder<unknown>) => sql`
    key_hash(${key}) in (
      select hash_of(hash)
      from load_chunk_keys k, unnest(${hashes}) hash
      where k.load_id = ${loadId} and k.entity = ${entity}
    )`;
  return sql`
    select r.entity, r.key
    from planned_rows r
    where r.load_id = ${loadId} and r.entity = ${entity}
      and coalesce(
        (
          select r.is_new or ${differs} ${orElse}
          from ${table} p
          where p.environment_id = ${environmentId} and ${id} = r.key
        ),
        not r.is_new
      )
    union
    select ${entity}, ${id}
    from ${table} p
    where p.environment_id = ${environmentId} and is_since(p.position, ${since}::pg_snapshot)
      and ${hashIn(id, sql`k.unchanged`)}
    union
    select ${entity}, key
    from changes
    where environment_id = ${environmentId} and entity = ${entity} and removed and is_since(position, ${since}::pg_snapshot)
      and ${hashIn(sql`key`, sql`k.written || k.unchanged`)}
    union
    select ${entity}, hash::text
    from load_chunk_keys k
    cross join unnest(k.unchanged) hash
    where k.load_id = ${loadId} and k.entity = ${entity}
      and (select pg_snapshot_xmin(${since}::pg_snapshot)::text::bigint >= complete_since from change_log) is not true
      and hash_of(hash) not in (select key_hash(${id}) from ${table} p where p.environment_id = ${environmentId})`;
}

const differs = sql`p.metadata is distinct from r.before`;
