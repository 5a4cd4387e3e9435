import { sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import { MAX_PLAN_PROPERTIES, PLANNED_ROWS_AT_A_TIME } from '../../domain/limits.ts';
import type { PlannedProperty, PlanSummary, ValueChanges } from '../../domain/load.ts';
import type { Database } from '../database.ts';
import { changesByName } from '../merge/plan-batch.ts';

/*
 * Plans: what a load would change, row by row (`planned_rows`), and their summary (`loads.plan`). Chunks add to them
 * (`merge/plan-batch.ts`); here they are put right where keys stand in several chunks, summed up, read and forgotten.
 */

/** Corrections in `planned_chunks`: what is taken back, and what stands in its place. */
const takenBack = -1;
const putRight = -2;

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
      returning r.entity, r.before, r.after
    ),
    kinds as (
      select entity, count(*) filter (where before is null) as rows_new, count(before) as rows_changed
      from gone
      group by entity
    )
    insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, properties)
    select
      ${loadId},
      ${takenBack},
      entity,
      -rows_new,
      -rows_changed,
      (
        select coalesce(jsonb_object_agg(p.key, jsonb_build_array(${negated(0)}, ${negated(1)}, ${negated(2)}, ${negated(3)})), '{}')
        from jsonb_each((${changesByName(sql`(select * from gone where gone.entity = kinds.entity)`, bothNames)})) p
      )
    from kinds`.execute(db);
}

const negated = (at: number) => sql`-(p.value ->> ${sql.lit(at)})::bigint`;
const bothNames = sql`coalesce(c.before, '{}') || c.after`;

/**
 * Completes the rows of a plan once those of all keys are right, and writes its summary. Call it in the transaction that also holds the
 * fence; once only.
 */
export async function summarisePlan(
  db: Database,
  loadId: number,
  counts: Pick<PlanSummary, 'counts' | 'countsByKind'>,
): Promise<void> {
  // Records of a key that contradict each other may leave it as it was.
  await sql`
    delete from planned_rows
    where load_id = ${loadId} and is_repeated and before = after and company_before is not distinct from company_after`.execute(
    db,
  );
  await sql`
    insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, properties)
    select
      ${loadId}, ${putRight}, entity, count(*) filter (where is_new), count(*) filter (where not is_new),
      (${changesByName(sql`(select * from planned_rows r where r.load_id = ${loadId} and r.is_repeated and r.entity = planned_rows.entity)`, bothNames)})
    from planned_rows
    where load_id = ${loadId} and is_repeated
    group by entity`.execute(db);
  await planNamedCompanies(db, loadId);
  const summary: PlanSummary = { ...counts, ...(await readChanges(db, loadId)) };
  await db
    .updateTable('loads')
    .set({ plan: JSON.stringify(summary), plan_ended_at: sql`now()` })
    .where('load_id', '=', loadId)
    .execute();
  await db.deleteFrom('planned_chunks').where('load_id', '=', loadId).execute();
}

/**
 * Companies that users name, and no record of their own or of a user describes: made without properties. Some of them share a number of
 * a chunk, since rows are read by it.
 */
async function planNamedCompanies(db: Database, loadId: number): Promise<void> {
  await sql`
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
    on conflict (load_id, chunk_no, entity) do update set rows_new = planned_chunks.rows_new + excluded.rows_new`.execute(
    db,
  );
}

interface Summed extends PlannedProperty {
  readonly names: number;
  readonly all: ValueChanges;
}

async function readChanges(
  db: Database,
  loadId: number,
): Promise<Omit<PlanSummary, 'counts' | 'countsByKind'>> {
  const { rows: counted } = await sql<{ entity: Entity; new: number; changed: number }>`
    select entity, sum(rows_new)::bigint as new, sum(rows_changed)::bigint as changed
    from planned_chunks
    where load_id = ${loadId}
    group by entity`.execute(db);
  const rows = await sumProperties(db, loadId);
  const profiles = (entity: Entity) => {
    const found = counted.find((each) => each.entity === entity);
    return { new: found?.new ?? 0, changed: found?.changed ?? 0 };
  };
  const [first] = rows;
  return {
    profiles: { users: profiles('users'), companies: profiles('companies') },
    values: first?.all ?? { appear: 0, change: 0, go: 0, retype: 0 },
    properties: rows.map(({ names: _, all: __, ...property }) => property),
    morePropertyNames: (first?.names ?? 0) - rows.length,
  };
}

/** Sums the changes of values by property, up to MAX_PLAN_PROPERTIES, and with each row those of all (`names`, `all`). */
async function sumProperties(db: Database, loadId: number): Promise<readonly Summed[]> {
  const { rows } = await sql<Summed>`
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
          sum((p.value ->> 0)::bigint)::bigint as appear,
          sum((p.value ->> 1)::bigint)::bigint as change,
          sum((p.value ->> 2)::bigint)::bigint as go,
          sum((p.value ->> 3)::bigint)::bigint as retype
        from planned_chunks k
        cross join jsonb_each(k.properties) p
        where k.load_id = ${loadId}
        group by k.entity, p.key
      ) by_name
      where appear + change + go > 0
      order by appear + change + go desc, entity desc, name
      limit ${MAX_PLAN_PROPERTIES}
    ) summed
    order by appear + change + go desc, entity desc, name`.execute(db);
  return rows;
}

/** The rows of plans; their summaries name no profile, and stay. They go before the file does: what has no file has no rows. */
export async function forgetPlannedRows(db: Database, loadIds: readonly number[]): Promise<void> {
  await db.deleteFrom('planned_rows').where('load_id', 'in', loadIds).execute();
}
