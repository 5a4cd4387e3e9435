import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';
import { inEventTables } from '../stores/retirements.ts';
import type { DeletionBatch, Settled } from './batch.ts';

/**
 * Removes up to `limit` events of the users, with the ids that callers gave them, and counts them to their users;
 * returns how many. One scan of events_user_idx per partition for all users of the batch.
 */
export function deleteEvents(db: Database, batch: DeletionBatch, limit: number): Promise<number> {
  return inEventTables(db, limit, (table, rest) => deleteEventsOf(db, batch, rest, table));
}

async function deleteEventsOf(
  db: Database,
  batch: DeletionBatch,
  limit: number,
  table: RawBuilder<unknown>,
): Promise<number> {
  const { deletionId, environmentId, ids } = batch;
  const { rows } = await sql<{ removed: number }>`
    with doomed as materialized (
      select inserted_at, event_id
      from ${table}
      where environment_id = ${environmentId} and user_id = any(${[...ids]}::text[])
      limit ${limit}
    ),
    removed as (
      delete from ${table} e
      using doomed d
      where e.environment_id = ${environmentId}
        and e.inserted_at = d.inserted_at
        and e.event_id = d.event_id
      returning e.user_id, e.event_id, e.inserted_at
    ),
    forgotten as (
      delete from event_ids k
      using removed r
      where k.environment_id = ${environmentId}
        and k.event_id = r.event_id
        and k.inserted_at = r.inserted_at
    ),
    counted as (
      select user_id, count(*) as events
      from removed
      group by user_id
    ),
    noted as (
      update deletion_ids i
      set events = i.events + c.events
      from counted c
      where i.deletion_id = ${deletionId} and i.id = c.user_id
    )
    select count(*) as removed
    from removed`.execute(db);
  return rows[0]?.removed ?? 0;
}

/** Removes the profiles, in key order as every writer, and settles the ids. */
export async function settleUsers(
  db: Database,
  { deletionId, environmentId, ids }: DeletionBatch,
): Promise<Settled> {
  const { rows } = await sql<Settled>`
    with doomed as materialized (
      select user_id
      from users
      where environment_id = ${environmentId} and user_id = any(${[...ids]}::text[])
      order by user_id
      for update
    ),
    removed as (
      delete from users u
      using doomed d
      where u.environment_id = ${environmentId} and u.user_id = d.user_id
      returning u.user_id
    ),
    settled as (
      update deletion_ids i
      set outcome = case
        when i.events > 0 or exists (select from removed r where r.user_id = i.id) then 'deleted'
        else 'not_found'
      end
      where i.deletion_id = ${deletionId} and i.id = any(${[...ids]}::text[]) and i.outcome is null
      returning i.outcome
    )
    select
      count(*) filter (where outcome = 'deleted') as deleted,
      count(*) filter (where outcome = 'not_found') as "notFound"
    from settled`.execute(db);
  return rows[0] ?? { deleted: 0, notFound: 0 };
}
