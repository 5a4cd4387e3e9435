import { type RawBuilder, sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import {
  MAX_SAMPLE_PROPERTIES,
  MAX_SAMPLE_VALUE_CHARS,
  PLAN_SAMPLE_ROWS,
  PLANNED_BYTES_AT_A_TIME,
  PLANNED_ROWS_AT_A_TIME,
} from '../../domain/limits.ts';
import type { Database } from '../database.ts';

/* The rows of plans: as they are shown, a few or page by page, and compared with what is stored now. */

/** A row that changes, as the summary shows it: of its properties only those that differ, and these cut. */
export interface SampledRow {
  readonly entity: Entity;
  readonly key: string;
  /** JSON. */
  readonly before: string;
  readonly after: string;
  readonly companyBefore: string | null;
  readonly companyAfter: string | null;
  /** Properties that differ and are not shown. */
  readonly moreProperties: number;
}

/** Some rows that change, users first. */
export async function readPlanSample(db: Database, loadId: number): Promise<SampledRow[]> {
  const shown = (side: 'before' | 'after') => {
    const value = sql`r.${sql.ref(side)} -> d.name`;
    const cut = sql`to_jsonb(left(r.${sql.ref(side)} ->> d.name, ${MAX_SAMPLE_VALUE_CHARS}) || '…')`;
    return sql`coalesce(
      jsonb_object_agg(d.name, case when length((${value})::text) > ${MAX_SAMPLE_VALUE_CHARS} then ${cut} else ${value} end)
        filter (where d.place <= ${MAX_SAMPLE_PROPERTIES} and ${value} is not null),
      '{}'
    )::text`;
  };
  const { rows } = await sql<SampledRow>`
    select
      r.entity, r.key, c.before, c.after,
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
        from jsonb_object_keys(r.before || r.after) n (name)
        where r.before -> n.name is distinct from r.after -> n.name
      ) d
    ) c
    order by r.entity desc, r.chunk_no, r.key`.execute(db);
  return rows;
}

/** The end of a page of rows. */
export interface PlannedPlace {
  readonly entity: Entity;
  readonly isNew: boolean;
  readonly chunkNo: number;
  readonly key: string;
}

export interface PlannedPage<T> {
  readonly rows: readonly T[];
  /** `null`: there are no more. */
  readonly next: PlannedPlace | null;
}

export const firstPlannedPlace: PlannedPlace = { entity: 'companies', isNew: false, chunkNo: -1, key: '' };

/** Reads planned rows as lines of JSON, whose numbers keep all their digits. */
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

/** A difference in a planned row: a property, or `company_id`. `name` is `null` if the row is new and has neither. */
export interface PlannedValue {
  readonly entity: Entity;
  readonly key: string;
  readonly outcome: 'new' | 'changed';
  readonly name: string | null;
  /** Text of strings, of others JSON; null: there is none. */
  readonly before: string | null;
  readonly after: string | null;
}

/** The values that differ, by row. */
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
      from jsonb_object_keys(coalesce(r.before, '{}') || r.after) n (name)
      where r.before -> n.name is distinct from r.after -> n.name
    ) v on true
    order by r.entity, r.is_new, r.chunk_no, r.key, v.place, v.name`.execute(db);
  return { rows, next: nextPlace(rows) };
}

const outcome = sql`case when is_new then 'new' else 'changed' end`;

/** Rows after a place, up to the bounds. `more`: others follow. */
const page = (loadId: number, { entity, isNew, chunkNo, key }: PlannedPlace): RawBuilder<unknown> => sql`
  select *, count(*) over () < found as more
  from (
    select
      *,
      count(*) over () as found,
      row_number() over in_order as place,
      sum(bytes) over in_order - bytes as bytes_before
    from (
      select *, coalesce(pg_column_size(before), 0) + pg_column_size(after) as bytes
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
  const last = rows.at(-1);
  if (last === undefined || !last.more) return null;
  const { entity, isNew, chunkNo, key } = last;
  return { entity, isNew, chunkNo, key };
}

/**
 * Counts the profiles that differ from what the plan of the load found: among those that it would write, and among those that it found
 * unchanged. Of the latter the plan keeps hashes of the keys; they are searched among what was updated since by transactions that had
 * not ended when the plan began.
 */
export async function countDrift(db: Database, loadId: number): Promise<number> {
  const { rows } = await sql<{ drifted: number }>`
    with plan as materialized (
      select environment_id, plan_since, plan_horizon
      from loads
      where load_id = ${loadId}
    ),
    of_users as (
      select r.key
      from planned_rows r
      where r.load_id = ${loadId} and r.entity = 'users'
        and coalesce(
          (
            select r.is_new or ${differs} or p.company_id is distinct from r.company_before
            from users p
            where p.environment_id = (select environment_id from plan) and p.user_id = r.key
          ),
          not r.is_new
        )
      union
      select p.user_id
      from users p
      where ${writtenSince} and ${isUnchanged(loadId, 'users', 'user_id')}
    ),
    of_companies as (
      select r.key
      from planned_rows r
      where r.load_id = ${loadId} and r.entity = 'companies'
        and coalesce(
          (
            select r.is_new or ${differs}
            from companies p
            where p.environment_id = (select environment_id from plan) and p.company_id = r.key
          ),
          not r.is_new
        )
      union
      select p.company_id
      from companies p
      where ${writtenSince} and ${isUnchanged(loadId, 'companies', 'company_id')}
    )
    select (select count(*) from of_users) + (select count(*) from of_companies) as drifted`.execute(db);
  return rows[0]?.drifted ?? 0;
}

const differs = sql`
  p.metadata is distinct from r.before
  or (r.seen_before is not null and (p.times is distinct from r.times_before or p.last_seen_at <> r.seen_before))`;

/** xmin has 32 bits: it stands for the last transaction of that number. */
const writtenSince = sql`
  p.environment_id = (select environment_id from plan)
  and p.updated_at >= (select plan_since from plan)
  and (
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    - ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint - p.xmin::text::bigint) & 4294967295)
  ) >= (select plan_horizon::text::bigint from plan)`;

const isUnchanged = (loadId: number, entity: string, id: string) => sql`
  hashtextextended(p.${sql.ref(id)}, 0) & -4 in (
    select hash & -4
    from load_chunk_keys k, unnest(k.unchanged) hash
    where k.load_id = ${loadId} and k.entity = ${entity}
  )`;
