import { type RawBuilder, sql } from 'kysely';
import {
  MAX_PLAN_PROPERTIES,
  MAX_SAMPLE_PROPERTIES,
  MAX_SAMPLE_VALUE_CHARS,
  PLAN_SAMPLE_ROWS,
  PLANNED_BYTES_AT_A_TIME,
  PLANNED_ROWS_AT_A_TIME,
} from '../../base/limits.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { PlannedEvents, PlannedProperty, PlanSummary, ValueChanges } from '../../domain/load.ts';
import { countOf, type Database, rowsOf, updateWhere } from '../../postgres/database.ts';
import { sumsOf } from './plan-batch.ts';

/*
 * Plans: what a load would change, row by row (`planned_rows`), and their summary (`load_plans.plan`). Chunks add to them
 * (`merge/plan-batch.ts`); here they are put right where keys stand in several chunks, summed up, shown, compared with what is stored now,
 * and forgotten. One file, though a long one: all of it reads and writes the same rows.
 */

/** Corrections in `planned_chunks`: what is taken back, which counts as less, what stands in its place, and what comes behind all chunks. */
const takenBack = -1;
const putRight = -2;
const addedBehind = -3;
const signed = (count: RawBuilder<unknown>) =>
  sql`sum(case chunk_no when ${takenBack} then -1 else 1 end * ${count})::bigint`;

/** Notes the moment from which a plan sees what is stored, and forgets an earlier plan of the load. */
export async function beginPlan(db: Database, loadId: number): Promise<void> {
  await sql`
    insert into load_plans (load_id, planned_at, plan_cursor)
    values (${loadId}, now(), sluice.current_cursor()::pg_snapshot)
    on conflict (load_id) do update set
      planned_at = excluded.planned_at,
      plan_cursor = excluded.plan_cursor,
      plan = null,
      plan_ended_at = null,
      on_drift = null,
      applied_at = null`.execute(db);
}

/** Sums `rows`, a query of planned rows, by entity. */
const addSums = (loadId: number, chunkNo: number, rows: string) => sql`
  insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, rows_removed, properties)
  select ${loadId}, ${chunkNo}, entity, ${sumsOf(sql`(select * from ${sql.table(rows)} r where r.entity = s.entity)`)}
  from ${sql.table(rows)} s
  group by entity`;

/**
 * Takes the rows back whose keys are noted for replay: `replanIncoming` writes them anew. Call it in the transaction that notes
 * them.
 */
export async function takeBackRepeated(db: Database, loadId: number): Promise<void> {
  await sql`
    with gone as (
      delete from planned_rows r
      where r.load_id = ${loadId}
        and not r.is_repeated
        and (
          select true
          from load_replays l
          where l.load_id = ${loadId} and l.entity = r.entity and l.key_hash = hashtextextended(r.key, 0) & -4
        )
      returning r.*
    )
    ${addSums(loadId, takenBack, 'gone')}`.execute(db);
}

/**
 * Completes the rows of a plan once those of all keys are right, with those that `added` inserts, and writes its summary. Call it in the transaction that also holds the
 * fence; once only.
 */
export async function summarisePlan(
  db: Database,
  loadId: number,
  counts: Pick<PlanSummary, 'counts' | 'countsByKind'>,
  added: readonly RawBuilder<unknown>[],
): Promise<void> {
  await sql`
    with repeated as (
      select * from planned_rows where load_id = ${loadId} and is_repeated
    )
    ${addSums(loadId, putRight, 'repeated')}`.execute(db);
  for (const rows of added)
    await sql`with added as (${rows}) ${addSums(loadId, addedBehind, 'added')}`.execute(db);
  await planNamedCompanies(db, loadId);
  const summary: PlanSummary = { ...counts, ...(await readChanges(db, loadId)) };
  await updateWhere(db, 'load_plans', { loadId })
    .set({ plan: JSON.stringify(summary), plan_ended_at: sql`now()` })
    .execute();
  await forgetSums(db, loadId);
}

/** Forgets what chunks have added to the summary of a plan. */
async function forgetSums(db: Database, loadId: number): Promise<void> {
  await sql`delete from planned_chunks where load_id = ${loadId}`.execute(db);
  await sql`delete from planned_events where load_id = ${loadId}`.execute(db);
}

/** Forgets a plan that is made anew. */
export async function forgetPlan(db: Database, loadId: number): Promise<void> {
  await forgetSums(db, loadId);
  await forgetPlannedRows(db, [loadId]);
}

/**
 * Companies that users name, and no record of their own or of a user describes: made without properties. Some of them share a number of
 * a chunk, since rows are read by it.
 */
async function planNamedCompanies(db: Database, loadId: number): Promise<void> {
  await rowsOf(db)`
    with made as (
      insert into planned_rows (load_id, chunk_no, is_new, entity, key, after)
      select
        l.load_id,
        l.chunk_count + (row_number() over () / ${PLANNED_ROWS_AT_A_TIME})::int,
        true,
        'companies',
        named.company,
        '{}'::jsonb
      from loads l
      cross join (
        select company from planned_chunks, unnest(companies) company where load_id = ${loadId}
        except
        select key from planned_rows where load_id = ${loadId} and entity = 'companies'
      ) named
      where l.load_id = ${loadId}
        and (
          select true from companies c where c.environment_id = l.environment_id and c.company_id = named.company
        ) is null
      returning 1
    )
    insert into planned_chunks (load_id, chunk_no, entity, rows_new)
    select ${loadId}, ${putRight}, 'companies', count(*)
    from made
    having count(*) > 0
    on conflict (load_id, chunk_no, entity) do update set rows_new = planned_chunks.rows_new + excluded.rows_new`;
}

interface Summed extends PlannedProperty {
  readonly names: number;
  readonly all: ValueChanges;
}

async function readChanges(
  db: Database,
  loadId: number,
): Promise<Omit<PlanSummary, 'counts' | 'countsByKind'>> {
  const { rows: counted } = await sql<PlanSummary['profiles'][Entity] & { entity: Entity }>`
    select
      entity, ${signed(sql`rows_new`)} as new, ${signed(sql`rows_changed`)} as changed, ${signed(sql`rows_removed`)} as removed
    from planned_chunks
    where load_id = ${loadId}
    group by entity`.execute(db);
  const rows = await sumProperties(db, loadId);
  const profiles = (entity: Entity) => {
    const found = counted.find((each) => each.entity === entity);
    return { new: found?.new ?? 0, changed: found?.changed ?? 0, removed: found?.removed ?? 0 };
  };
  const [first] = rows;
  return {
    profiles: { users: profiles('users'), companies: profiles('companies') },
    values: first?.all ?? { appear: 0, change: 0, go: 0, retype: 0 },
    properties: rows.map(({ names: _, all: __, ...property }) => property),
    morePropertyNames: (first?.names ?? 0) - rows.length,
    events: await sumEvents(db, loadId),
  };
}

async function sumEvents(db: Database, loadId: number): Promise<PlannedEvents> {
  const rows = await rowsOf<{ name: string | null; day: string | null; count: number; found: number }>(db)`
    select name, day, count, found
    from (
      select
        event_name as name, day::text, sum(events)::bigint as count,
        count(*) over (partition by day is null) as found,
        row_number() over (partition by day is null order by day desc, sum(events) desc, event_name) as place
      from planned_events
      where load_id = ${loadId}
      group by event_name, day
      having sum(events) <> 0
    ) summed
    where place <= ${MAX_PLAN_PROPERTIES}
    order by day, place`;
  const names = rows.flatMap(({ name, count }) => (name === null ? [] : [{ name, count }]));
  const days = rows.flatMap(({ day, count }) => (day === null ? [] : [{ day, count }]));
  const beyond = (shown: readonly object[], row = rows[0]) => (row?.found ?? 0) - shown.length;
  return { names, moreNames: beyond(names, rows.at(-1)), days, earlierDays: beyond(days) };
}

/** Sums the changes of values by property, up to MAX_PLAN_PROPERTIES, and with each row those of all (`names`, `all`). */
function sumProperties(db: Database, loadId: number): Promise<readonly Summed[]> {
  return rowsOf<Summed>(db)`
    select
      summed.*,
      not exists (
        select 1
        from properties p
        join loads l using (environment_id)
        where l.load_id = ${loadId} and p.entity = summed.entity and p.key = summed.name
      ) as "isNew"
    from (
      select
        *,
        count(*) over () as names,
        json_build_object(
          'appear', sum(appear) over (), 'change', sum(change) over (), 'go', sum(go) over (), 'retype', sum(retype) over ()
        ) as all
      from (
        select
          k.entity,
          p.key as name,
          ${signed(sql`(p.value ->> 0)::bigint`)} as appear,
          ${signed(sql`(p.value ->> 1)::bigint`)} as change,
          ${signed(sql`(p.value ->> 2)::bigint`)} as go,
          ${signed(sql`(p.value ->> 3)::bigint`)} as retype
        from planned_chunks k
        cross join jsonb_each(k.properties) p
        where k.load_id = ${loadId}
        group by k.entity, p.key
      ) by_name
      where appear + change + go > 0
      order by appear + change + go desc, entity desc, name
      limit ${MAX_PLAN_PROPERTIES}
    ) summed
    order by appear + change + go desc, entity desc, name`;
}

/** The rows of plans; their summaries name no profile, and stay. They go before the file does: what has no file has no rows. */
export async function forgetPlannedRows(db: Database, loadIds: readonly number[]): Promise<void> {
  await db.deleteFrom('planned_rows').where('load_id', 'in', loadIds).execute();
}

/** A row that changes or goes, as the summary shows it: of its properties only those that differ, and these cut. */
export interface SampledRow {
  readonly entity: Entity;
  readonly key: string;
  /** JSON; `null` after a removal. */
  readonly before: string;
  readonly after: string;
  readonly companyBefore: string | null;
  readonly companyAfter: string | null;
  /** Properties that differ and are not shown. */
  readonly moreProperties: number;
}

/** Some rows that change, users first. */
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
  readonly outcome: 'new' | 'changed' | 'removed';
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
      from jsonb_object_keys(coalesce(r.before, '{}') || coalesce(r.after, '{}')) n (name)
      where r.before -> n.name is distinct from r.after -> n.name
    ) v on true
    order by r.entity, r.is_new, r.chunk_no, r.key, v.place, v.name`.execute(db);
  return { rows, next: nextPlace(rows) };
}

const outcome = sql`case when r.is_new then 'new' when r.after is null then 'removed' else 'changed' end`;

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
  const last = rows.at(-1);
  if (last === undefined || !last.more) return null;
  const { entity, isNew, chunkNo, key } = last;
  return { entity, isNew, chunkNo, key };
}

interface Plan {
  readonly loadId: number;
  readonly environmentId: number;
  /** The cursor of its beginning. */
  readonly since: string;
}

/**
 * Counts the profiles that differ from what the plan of the load found: among those that it would write, those that it found as its file
 * leaves them, and those that were removed since. Of the latter two it has hashes of the keys. If the log does not tell what was removed,
 * all profiles are looked through.
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

/** The cursor is a parameter and no column, so that block ranges tell what came after it. */
function drifted(
  { loadId, environmentId, since }: Plan,
  entity: Entity,
  orElse = sql``,
): RawBuilder<unknown> {
  const [table, id] = [sql.table(entity), sql.ref(`p.${idColumn[entity]}`)];
  const hashIn = (key: RawBuilder<unknown>, hashes: RawBuilder<unknown>) => sql`
    hashtextextended(${key}, 0) & -4 in (
      select hash & -4
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
      and hash & -4 not in (select hashtextextended(${id}, 0) & -4 from ${table} p where p.environment_id = ${environmentId})`;
}

const differs = sql`p.metadata is distinct from r.before`;
