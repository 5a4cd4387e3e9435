import { type RawBuilder, sql } from 'kysely';
import { MAX_PREVIEWED_ROWS } from '../base/limits.ts';
import { type Entity, idColumn } from '../domain/entity.ts';
import { isKey } from '../postgres/change-log.ts';
import { changedBy, columnOf, countOf, type Database, rowOf, rowsOf } from '../postgres/database.ts';
import { eventTable } from '../postgres/retention.ts';
import { inEventTables, isSameEvent, lockTables, removeDoomed } from '../postgres/retirements.ts';

export interface DeletionBatch {
  readonly deletionId: number;
  readonly environmentId: number;
  readonly ids: readonly string[];
}

export interface DeletionPreview {
  readonly profiles: number;
  readonly unknown: number;
  /**
   * Number of events that the deletion would remove or, for companies, separate from their company.
   * At most MAX_PREVIEWED_ROWS.
   */
  readonly events: number;
  readonly users: number;
  /** False if counting stopped at MAX_PREVIEWED_ROWS. */
  readonly isComplete: boolean;
}

export async function previewDeletion(
  db: Database,
  entity: Entity,
  environmentId: number,
  ids: readonly string[],
): Promise<DeletionPreview> {
  const id = sql.ref(idColumn[entity]);
  const idList = sql`${[...ids]}::text[]`;
  const eventIds = sql`select ${id} as id from events
    where environment_id = ${environmentId} and ${id} = any(${idList})`;
  const members =
    entity === 'companies'
      ? sql`select company_id as id from users
          where environment_id = ${environmentId} and company_id = any(${idList})`
      : sql`select null::text as id where false`;
  const countById = (met: RawBuilder<unknown>) => sql`
    select id, count(*) as rows
    from (select * from (${met}) met limit ${MAX_PREVIEWED_ROWS + 1}) counted
    group by id`;
  const { profiles, unknown, events, users } = await rowOf<Omit<DeletionPreview, 'isComplete'>>(db)`
    with named as materialized (${countById(eventIds)}),
    members as materialized (${countById(members)}),
    found as (
      select ${id} as id from ${sql.table(entity)}
      where environment_id = ${environmentId} and ${id} = any(${idList})
    )
    select
      (select count(*) from found) as profiles,
      (
        select count(*)
        from unnest(${idList}) as asked (id)
        where not exists (select 1 from found f where f.id = asked.id)
          and not exists (select 1 from named n where n.id = asked.id)
          and not exists (select 1 from members m where m.id = asked.id)
          and not exists (
            select 1
            from changes c
            where c.environment_id = ${environmentId} and c.entity = ${entity} and ${isKey('c.key', sql`asked.id`)}
              and c.before is not null
          )
      ) as unknown,
      (select coalesce(sum(rows), 0)::bigint from named) as events,
      (select coalesce(sum(rows), 0)::bigint from members) as users`;
  return {
    profiles,
    unknown,
    events: Math.min(events, MAX_PREVIEWED_ROWS),
    users: Math.min(users, MAX_PREVIEWED_ROWS),
    isComplete: Math.max(events, users) <= MAX_PREVIEWED_ROWS,
  };
}

/** Removes up to `limit` events of users, with one index scan per partition. */
export function deleteEvents(
  db: Database,
  { deletionId, environmentId, ids }: DeletionBatch,
  limit: number,
): Promise<number> {
  return inEventTables(db, limit, async (table, rest) => {
    await setErasing(db);
    return countOf(db)`
      with doomed as materialized (
        select user_id, inserted_at, event_id
        from ${table}
        where environment_id = ${environmentId} and user_id = any(${[...ids]}::text[])
        limit ${rest}
      ),
      ${removeDoomed(table, environmentId)},
      ${recordCounts(deletionId, 'removed', 'user_id', 'events')}
      select count(*) as removed
      from removed`;
  });
}

/**
 * Deletes the events of users, or removes companies from events. Changes only events in archived
 * tables that still exist.
 */
export async function eraseUndropped(
  db: Database,
  entity: Entity,
  { environmentId, ids }: Pick<DeletionBatch, 'environmentId' | 'ids'>,
  limit: number,
): Promise<number> {
  let changed = 0;
  for (const { table } of await lockTables(db, 'archived')) {
    const events = eventTable(table);
    const isOf = sql`environment_id = ${environmentId} and ${sql.ref(idColumn[entity])} = any(${[...ids]}::text[])`;
    const erase =
      entity === 'users' ? sql`delete from ${events}` : sql`update ${events} set company_id = null`;
    changed += await changedBy(db)`
      ${erase}
      where ctid = any(array(select ctid from ${events} where ${isOf} limit ${limit - changed}))`;
  }
  return changed;
}

/** Prevents the triggers on profiles from copying the removed rows to the change log. */
async function setErasing(db: Database): Promise<void> {
  await sql`select set_config('sluice.erases', 'on', true)`.execute(db);
}

/**
 * Returns the CTE `noted`. For each id of the deletion, it counts the rows in `from`, and adds the
 * count to the column `counter`. The column `id` of `from` contains the id.
 */
function recordCounts(
  deletionId: number,
  from: string,
  id: string,
  counter: 'events' | 'users',
): RawBuilder<unknown> {
  return sql`noted as (
      update deletion_ids i
      set ${sql.ref(counter)} = i.${sql.ref(counter)} + c.count
      from (select ${sql.ref(id)} as id, count(*) as count from ${sql.ref(from)} group by 1) c
      where i.deletion_id = ${deletionId} and i.id = c.id
    )`;
}

/**
 * Removes the profiles and their versions in the change log. Like all writers, locks profiles in
 * key order to prevent deadlocks.
 */
export async function removeProfiles(
  db: Database,
  entity: Entity,
  batch: DeletionBatch,
): Promise<{ readonly deleted: number; readonly notFound: number }> {
  const { deletionId, environmentId, ids } = batch;
  const profiles = sql.table(entity);
  const id = sql.ref(idColumn[entity]);
  await setErasing(db);
  const removed = await sql<{ id: string }>`
    with doomed as materialized (
      select ${id} as id
      from ${profiles}
      where environment_id = ${environmentId} and ${id} = any(${[...ids]}::text[])
      order by ${id}
      for update
    )
    delete from ${profiles} p
    using doomed d
    where p.environment_id = ${environmentId} and p.${id} = d.id
    returning d.id`.execute(db);
  // The locks guarantee that earlier writers have ended, so this statement also removes the
  // versions that those writers wrote.
  await eraseImages(db, entity, batch, null);
  return rowOf<{ deleted: number; notFound: number }>(db)`
    with finished as (
      update deletion_ids i
      set outcome = case
        when i.events > 0 or i.users > 0 or i.id = any(${removed.rows.map((row) => row.id)}::text[]) or exists (
          select 1
          from changes c
          where c.environment_id = ${environmentId} and c.entity = ${entity} and ${isKey('c.key', sql`i.id`)} and c.before is null
            and c.at >= (select started_at from deletions where deletion_id = ${deletionId})
        ) then 'deleted'
        else 'not_found'
      end
      where i.deletion_id = ${deletionId} and i.id = any(${[...ids]}::text[]) and i.outcome is null
      returning i.outcome
    )
    select
      count(*) filter (where outcome = 'deleted') as deleted,
      count(*) filter (where outcome = 'not_found') as "notFound"
    from finished`;
}

/**
 * Removes versions of profiles from the change log. If `limit` is `null`, all versions are removed.
 * Otherwise, `limit` versions are removed, or none if there are fewer. Leaves an empty row per
 * profile, so that exports of changes report the removal.
 */
export async function eraseImages(
  db: Database,
  entity: Entity,
  { environmentId, ids }: DeletionBatch,
  limit: number | null,
): Promise<number> {
  const isOf = (id: RawBuilder<unknown>) =>
    sql`c.environment_id = ${environmentId} and c.entity = ${entity} and ${isKey('c.key', id)}`;
  return countOf(db)`
    with found as materialized (
      select c.key, c.tableoid, c.ctid
      from unnest(${[...ids]}::text[]) given (id)
      join changes c on ${isOf(sql`given.id`)}
      where c.before is not null
      limit ${limit}
    ),
    doomed as materialized (
      select * from found where ${limit}::int is null or (select count(*) from found) = ${limit}
    ),
    erased as (
      delete from changes c
      using doomed d
      where c.tableoid = d.tableoid and c.ctid = d.ctid
      returning c.key
    ),
    marked as (
      insert into changes (position, position_before, environment_id, entity, key, removed)
      select current_position(), current_position(), ${environmentId}, ${entity}, d.key, true
      from (select distinct key from doomed) d
      where not exists (
        select 1
        from changes c
        where ${isOf(sql`d.key`)} and c.before is null and c.position = current_position()
      )
    )
    select count(*) as erased
    from erased`;
}

/** Reads the whole change log, because no index contains the company. */
export async function eraseCompanies(
  db: Database,
  environmentId: number,
  ids: readonly string[],
): Promise<void> {
  await rowsOf(db)`
    update changes
    set company_before = null
    where environment_id = ${environmentId} and entity = 'users' and company_before = any(${[...ids]}::text[])`;
}

/**
 * Removes the companies from up to `limit` users, in key order. Sets `updated_at`, so that older
 * records no longer change these users.
 */
export async function releaseUsers(
  db: Database,
  { deletionId, environmentId, ids }: DeletionBatch,
  limit: number,
): Promise<number> {
  return countOf(db)`
    with members as materialized (
      select user_id, company_id
      from users
      where environment_id = ${environmentId} and company_id = any(${[...ids]}::text[])
      order by user_id
      limit ${limit}
      for update
    ),
    released as (
      update users u
      set
        company_id = null,
        updated_at = now()
      from members m
      where u.environment_id = ${environmentId} and u.user_id = m.user_id
      returning m.company_id
    ),
    ${recordCounts(deletionId, 'released', 'company_id', 'users')}
    select count(*) as released
    from released`;
}

export function releaseEvents(
  db: Database,
  { deletionId, environmentId, ids }: DeletionBatch,
  limit: number,
): Promise<number> {
  return inEventTables(db, limit, async (table, rest) => {
    const { released } = await rowOf<{ released: number }>(db)`
      with doomed as materialized (
        select user_id, inserted_at, event_id, company_id
        from ${table}
        where environment_id = ${environmentId} and company_id = any(${[...ids]}::text[])
        limit ${rest}
      ),
      released as (
        update ${table} e
        set company_id = null
        from doomed d
        where e.environment_id = ${environmentId} and ${isSameEvent}
        returning d.company_id, d.inserted_at
      ),
      ${recordCounts(deletionId, 'released', 'company_id', 'events')},
      months as (
        select distinct date_trunc('month', inserted_at at time zone 'UTC')::date as month from released
      )
      select
        (select count(*) from released) as released,
        (
          select event_months_changed(array_agg(${environmentId}::int), array_agg(month), true)
          from months
          having count(*) > 0
        )`;
    return released;
  });
}

/** Omits a company that a record has created again: references to it may be newer. */
export function withoutProfile(
  db: Database,
  environmentId: number,
  ids: readonly string[],
): Promise<string[]> {
  return columnOf<string>(db)`
    select id
    from unnest(${[...ids]}::text[]) given (id)
    where not exists (
      select 1
      from companies c
      where c.environment_id = ${environmentId} and c.company_id = given.id
    )`;
}
