import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely';
import type pg from 'pg';
import type { Database } from '../database.ts';

/**
 * Makes the session's table of what a transaction has counted of events that left `sluice.events`, by questions to which the transaction
 * gives numbers. Nobody else sees it, and it is empty once the transaction ends: there is nothing that a deletion would have to find.
 */
export async function openColdCounts(client: pg.ClientBase): Promise<void> {
  await client.query(`
    create temporary table if not exists cold_counts (
      question integer not null,
      key text collate "C" not null,
      events bigint not null
    ) on commit delete rows;
    create index if not exists cold_counts_idx on cold_counts (question, key)`);
}

/** Selects what was counted for a question, as events of users. */
export const coldUsers = (question: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`select key as user_id, events from cold_counts where question = ${question}`;

interface Counted {
  readonly keys: readonly string[];
  readonly events: readonly number[];
  /** The properties of the events, if `holds` asks about them. */
  readonly metadata: readonly string[];
}

/**
 * Adds events to a question: those for which `holds`, a condition on `segment_event.metadata`. A key may have several rows; changing the one
 * that is there would leave a dead row each time.
 */
export async function addColdCounts(
  db: Database,
  question: number,
  { keys, events, metadata }: Counted,
  holds: Expression<SqlBool> = sql`true`,
): Promise<void> {
  await sql`
    insert into cold_counts (question, key, events)
    select ${question}::integer, key, sum(events)
    from (
      select key, events, metadata::jsonb as metadata
      from unnest(${keys}::text[], ${events}::bigint[], ${metadata}::text[]) as given (key, events, metadata)
    ) as segment_event
    where ${holds}
    group by key`.execute(db);
}

/** Lets the planner know how many there are. */
export async function analyzeColdCounts(db: Database): Promise<void> {
  await sql`analyze cold_counts`.execute(db);
}
