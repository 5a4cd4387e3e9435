import { sql } from 'kysely';
import type { TestSystem } from '../servers/system.ts';

export interface StoredEvent {
  readonly environment: number;
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  /** Time of the event, in ISO 8601 with microseconds. */
  readonly at: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly named: boolean;
}

/** Returns the beginning of the month `count` months ago, in milliseconds since 1970. */
export function monthsAgo(count: number, now = new Date()): number {
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count, 1);
}

/** Returns the month as partitions are named after it, such as `2026_03`. */
export function monthName(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7).replace('-', '_');
}

/**
 * Returns the end of the month that contains the event. The event's retention period starts then.
 */
export function endOfMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** Returns an instant between `from` and `to`, with microseconds. */
export function instantBetween(from: number, to: number, random: number): string {
  const micros = Math.floor(from * 1000 + random * (to - from) * 1000);
  const whole = Math.floor(micros / 1_000_000);
  return `${new Date(whole * 1000).toISOString().slice(0, 19)}.${String(micros % 1_000_000).padStart(6, '0')}Z`;
}

/** Stores events, as if each event had arrived at its time `at`. */
export async function insertEvents(
  { system }: Pick<TestSystem, 'system'>,
  events: readonly StoredEvent[],
): Promise<void> {
  const months = new Map(events.map(({ at }) => [at.slice(0, 7), at]));
  for (const at of months.values())
    await sql`select ensure_events_partition(${at}::timestamptz)`.execute(system.db);
  await sql`
    with given as (
      select *
      from json_to_recordset(${JSON.stringify(events)}) as g (environment integer, id text, name text, "user" text,
        company text, at timestamptz, metadata jsonb, named boolean)
    ),
    ids as (
      insert into event_ids (environment_id, event_id, user_id, inserted_at)
      select environment, id, "user", at from given where named
    )
    insert into events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
    select environment, id, name, "user", company, 'backend-http', at, metadata
    from given`.execute(system.db);
}

/**
 * Returns the keys `environment/id` of all stored events, and the same keys of all rows in
 * `event_ids`.
 */
export async function heldEvents({ system }: Pick<TestSystem, 'system'>) {
  const readKeys = async (table: 'events' | 'event_ids') => {
    const { rows } = await sql<{ key: string }>`
      select environment_id || '/' || event_id as key
      from ${sql.table(table)}
      order by 1`.execute(system.db);
    return rows.map(({ key }) => key);
  };
  return { events: await readKeys('events'), ids: await readKeys('event_ids') };
}

/** Includes detached partitions. */
export async function eventTables({ system }: Pick<TestSystem, 'system'>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name
    from pg_class
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' and relname ~ '^(retired_)?events_[0-9]'
    order by 1`.execute(system.db);
  return rows.map(({ name }) => name);
}
