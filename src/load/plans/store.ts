import { type RawBuilder, sql } from 'kysely';
import { PLANNED_ROWS_AT_A_TIME } from '../../base/limits.ts';
import type { Entity } from '../../domain/entity.ts';
import type { PlannedEvents, PlannedProperty, PlanSummary, ValueChanges } from '../../domain/load.ts';
import { type Database, rowsOf, updateWhere } from '../../postgres/database.ts';
import { MAX_PLAN_PROPERTIES } from '../limits.ts';
import { sumsOf } from './plan-batch.ts';

/*
 * A plan consists of the changes that a load would make, row by row (`planned_rows`), and a summary
 * (`load_plans.plan`). `plan-batch.ts` adds the rows of each chunk. This file corrects the rows of
 * keys that several chunks contain, writes the summaries, and deletes plans.
 */

/**
 * `planned_chunks` contains counts for each chunk. The negative chunk numbers mark the counts of
 * removed rows, of the rows that replace them, and of rows that capabilities added. The counts of
 * removed rows are subtracted.
 */
const removedRows = -1;
const replacedRows = -2;
const capabilityRows = -3;
const signed = (count: RawBuilder<unknown>) =>
  sql`sum(case chunk_no when ${removedRows} then -1 else 1 end * ${count})::bigint`;

/** Begins a plan, and deletes the results of an earlier plan of the load. */
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

const addSums = (loadId: number, chunkNo: number, rows: string) => sql`
  insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, rows_removed, properties)
  select ${loadId}, ${chunkNo}, entity, ${sumsOf(sql`(select * from ${sql.table(rows)} r where r.entity = s.entity)`)}
  from ${sql.table(rows)} s
  group by entity`;

/**
 * Deletes the planned rows of keys that will be replayed. The replay inserts these rows again (see
 * `replanIncoming`). Must be called in the transaction that stores the keys.
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
          where l.load_id = ${loadId} and l.entity = r.entity and l.key_hash = key_hash(r.key)
        )
      returning r.*
    )
    ${addSums(loadId, removedRows, 'gone')}`.execute(db);
}

/**
 * Writes the summary of a plan. `added` are queries for the rows that capabilities have added to
 * the plan. Must be called once, after all rows have been corrected, in the transaction that renews
 * the claim.
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
    ${addSums(loadId, replacedRows, 'repeated')}`.execute(db);
  for (const rows of added)
    await sql`with added as (${rows}) ${addSums(loadId, capabilityRows, 'added')}`.execute(db);
  await planNamedCompanies(db, loadId);
  const summary: PlanSummary = { ...counts, ...(await readChanges(db, loadId)) };
  await updateWhere(db, 'load_plans', { loadId })
    .set({ plan: JSON.stringify(summary), plan_ended_at: sql`now()` })
    .execute();
  await forgetSums(db, loadId);
}

async function forgetSums(db: Database, loadId: number): Promise<void> {
  await sql`delete from planned_chunks where load_id = ${loadId}`.execute(db);
  await sql`delete from planned_events where load_id = ${loadId}`.execute(db);
}

export async function forgetPlan(db: Database, loadId: number): Promise<void> {
  await forgetSums(db, loadId);
  await forgetPlannedRows(db, [loadId]);
}

/**
 * Adds rows for companies to which only users refer. These companies have no properties. Rows are
 * read chunk by chunk, so these rows also need chunk numbers. Their numbers follow the chunk
 * numbers of the file, and several companies have the same number.
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
    select ${loadId}, ${replacedRows}, 'companies', count(*)
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
    const sums = counted.find((each) => each.entity === entity);
    return { new: sums?.new ?? 0, changed: sums?.changed ?? 0, removed: sums?.removed ?? 0 };
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

/**
 * Returns at most MAX_PLAN_PROPERTIES rows. Each row also contains the totals of all properties.
 */
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

/**
 * The rows expire with the file of the load. The summaries remain, because they identify no
 * profile.
 */
export async function forgetPlannedRows(db: Database, loadIds: readonly number[]): Promise<void> {
  await sql`delete from planned_rows where load_id = any(${[...loadIds]}::bigint[])`.execute(db);
}
