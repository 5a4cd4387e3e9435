/** The SQL that reads events back as JSON text: their numbers keep every digit. */
import { sql } from 'kysely';
import { type Database, queryRows, readQuery } from '../database.ts';
import type { Reader } from '../reader.ts';
import { instantText } from './read-profiles.ts';

/** Where an event stands among those of its user. */
export interface EventPosition {
  /** Instant with its microseconds. */
  readonly at: string;
  readonly id: string;
}

export interface ReadEvent extends EventPosition {
  readonly json: string;
}

export interface UserEventsQuery {
  readonly userId: string;
  /** Instant, included; null: from the beginning. */
  readonly from: string | null;
  /** Instant, excluded; null: to the last. */
  readonly to: string | null;
  readonly eventName: string | null;
  /** The last event of the page before; null: this is the first page. */
  readonly before: EventPosition | null;
  readonly limit: number;
  /** Of JSON; the last event may be beyond it. */
  readonly bytes: number;
}

const userEvents = readQuery('read-user-events');

/** Newest first. `more`: there are others that match. */
export async function readUserEvents(
  { pool }: Pick<Reader, 'pool'>,
  environmentId: number,
  query: UserEventsQuery,
): Promise<{ readonly events: readonly ReadEvent[]; readonly more: boolean }> {
  const { userId, from, to, eventName, limit, bytes } = query;
  // No id is lower than an empty one: what is before it lies before its instant.
  const before = query.before ?? { at: to ?? 'infinity', id: '' };
  const rows = await queryRows<ReadEvent & { found: number }>(pool, userEvents, [
    ...[environmentId, userId, from ?? '-infinity', before.at, before.id, eventName],
    ...[limit + 1, bytes],
  ]);
  const events = rows.slice(0, limit);
  return { events, more: (rows[0]?.found ?? 0) > events.length };
}

/** Whether anything is stored of a user: a profile, or an event. Events may come before the profile does. */
export async function isUserKnown(db: Database, environmentId: number, userId: string): Promise<boolean> {
  const { rows } = await sql<{ known: boolean }>`
    select
      exists (select 1 from users where environment_id = ${environmentId} and user_id = ${userId})
      or exists (select 1 from events where environment_id = ${environmentId} and user_id = ${userId}) as known`.execute(
    db,
  );
  return rows[0]?.known === true;
}

/**
 * Up to when events of the environment may be in archives, which only exports read; null: none are. A month on its way there
 * counts, whoever's events it holds.
 */
export async function findArchivedUntil(db: Database, environmentId: number): Promise<string | null> {
  const { rows } = await sql<{ until: string | null }>`
    select ${instantText(sql`greatest(
      (select max(last_at) from event_archives where environment_id = ${environmentId} and state = 'stored'),
      (
        select max((month + interval '1 month') at time zone 'UTC')
        from event_retirements
        where state = 'retired' and archives
      )
    )`)} as until`.execute(db);
  return rows[0]?.until ?? null;
}

export interface LatestEventsQuery {
  readonly userId: string | null;
  readonly eventName: string | null;
  /** Only those that happened within so many milliseconds before now; null: whenever. */
  readonly withinMs: number | null;
  readonly limit: number;
}

/** The latest events of an environment that have happened by now, the oldest of them first. */
export async function readLatestEvents(
  db: Database,
  environmentId: number,
  { userId, eventName, withinMs, limit }: LatestEventsQuery,
): Promise<ReadEvent[]> {
  const conditions = [
    sql`environment_id = ${environmentId} and inserted_at <= now()`,
    ...(withinMs === null ? [] : [sql`inserted_at >= now() - make_interval(secs => ${withinMs / 1_000})`]),
    ...(userId === null ? [] : [sql`user_id = ${userId}`]),
    ...(eventName === null ? [] : [sql`event_name = ${eventName}`]),
  ];
  const at = instantText(sql.ref('page.inserted_at'));
  const { rows } = await sql<ReadEvent>`
    select ${at} as at, page.event_id as id, row_to_json(shown)::text as json
    from (
      select event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata
      from events
      where ${sql.join(conditions, sql` and `)}
      order by inserted_at desc, event_id desc, user_id desc
      limit ${limit}
    ) page
    cross join lateral (
      select
        page.event_id, page.event_type, page.event_name, page.user_id, page.company_id, page.source,
        ${at} as inserted_at,
        page.metadata
    ) shown
    order by page.inserted_at, page.event_id, page.user_id`.execute(db);
  return rows;
}
