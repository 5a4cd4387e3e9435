import type pg from 'pg';
import { kindOfEntity } from '../domain/entity.ts';
import { type Database, isTrue, queryRows, readQuery, rowOf, runQuery } from '../postgres/database.ts';
import type { Guard } from '../postgres/uses.ts';

export interface EventRow {
  readonly environmentId: number;
  readonly eventId: string;
  /** True if only one event of the user may have this id. */
  readonly once: boolean;
  readonly eventName: string;
  readonly isPageView: boolean;
  readonly userId: string;
  /** Company of the event. `null` for the company of its user, '' for no company. */
  readonly companyId: string | null;
  readonly insertedAt: string | null;
  readonly metadata: string;
}

const insertEvents = readQuery('insert-events');
const insertEventsOnce = readQuery('insert-events-once');

/** Adds all events or none. Skips events that have already been added. */
export async function writeEvents(
  connection: pg.Pool | pg.PoolClient,
  events: readonly EventRow[],
  guard: Guard,
): Promise<void> {
  const distinct = events.some(({ once }) => once) ? firstOfEach(events) : null;
  const list = `[${(distinct ?? events).map(eventText).join(',')}]`;
  const query = guard.compose(distinct === null ? insertEvents : insertEventsOnce);
  await runQuery(connection, query, [list, guard.environments, guard.uses]);
}

function firstOfEach(events: readonly EventRow[]): EventRow[] {
  const keys = new Set<string>();
  return events.filter(({ once, environmentId, userId, eventId }) => {
    if (!once) return true;
    const key = JSON.stringify([environmentId, userId, eventId]);
    return !keys.has(key) && keys.add(key);
  });
}

function eventText(row: EventRow): string {
  const company = row.companyId === null ? '' : `,"c":${JSON.stringify(row.companyId)}`;
  const time = row.insertedAt === null ? '' : `,"t":"${row.insertedAt}"`;
  const once = row.once ? ',"d":true' : '';
  const view = row.isPageView ? ',"v":true' : '';
  const ids = `"i":${JSON.stringify(row.eventId)},"n":${JSON.stringify(row.eventName)},"u":${JSON.stringify(row.userId)}`;
  return `{"e":${row.environmentId},${ids}${company}${time}${once}${view},"p":${row.metadata}}`;
}

/** How long before the start of a month its partition is created, in milliseconds. */
const aheadMs = 3 * 24 * 60 * 60 * 1000;

/** Creates monthly partitions of `sluice.events` and remembers them. */
export class EventPartitions {
  readonly #known = new Set<number>();

  /**
   * Creates the partitions for `instants` (milliseconds since 1970), the current time, and the time
   * `aheadMs` from now.
   */
  async ensure(connection: pg.Pool | pg.PoolClient, instants: readonly number[]): Promise<void> {
    const now = Date.now();
    let missing: Map<number, number> | null = null;
    for (const instant of [now, now + aheadMs, ...instants]) {
      const month = monthOf(instant);
      if (this.#known.has(month)) continue;
      missing ??= new Map();
      missing.set(month, instant);
    }
    if (missing === null) return;
    for (const [month, instant] of missing) {
      await connection.query('select sluice.ensure_events_partition(to_timestamp($1))', [instant / 1000]);
      this.#known.add(month);
    }
  }

  forget(): void {
    this.#known.clear();
  }
}

function monthOf(instant: number): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

export async function countStoredEvents(
  db: Database,
  environmentId: number,
  rows: string,
): Promise<{ readonly rows: number; readonly same: number; readonly dated: 0 }> {
  const counts = await rowOf<{ rows: number; same: number }>(db)`
    select
      count(*)::int as rows,
      count(*) filter (
        where (e.event_type, e.event_name, e.source, e.metadata) = (r.event_type, r.event_name, r.source, r.metadata)
          and e.company_id is not distinct from r.company_id
      )::int as same
    from json_to_recordset(${rows}::json) as r (
      event_id text, event_type text, event_name text, user_id text, company_id text, source text, inserted_at timestamptz, metadata jsonb
    )
    left join events e
      on e.environment_id = ${environmentId} and e.user_id = r.user_id
        and e.inserted_at = r.inserted_at and e.event_id = r.event_id
    where r.event_type not in (${kindOfEntity.users}, ${kindOfEntity.companies})`;
  return { ...counts, dated: 0 };
}

interface EventPosition {
  readonly at: string;
  readonly id: string;
}

interface ReadEvent extends EventPosition {
  readonly json: string;
}

interface UserEventsQuery {
  readonly userId: string;
  /** Inclusive start. `null` for no start. */
  readonly from: string | null;
  /** Exclusive end. `null` for no end. */
  readonly to: string | null;
  readonly eventName: string | null;
  /** Last event of the previous page. `null` for the first page. */
  readonly before: EventPosition | null;
  readonly limit: number;
  /** Maximum size of the page as JSON, in bytes. Only the last event may exceed the limit. */
  readonly bytes: number;
}

const userEvents = readQuery('read-user-events');

export async function readUserEvents(
  connection: pg.Pool | pg.PoolClient,
  environmentId: number,
  query: UserEventsQuery,
): Promise<{ readonly events: readonly ReadEvent[]; readonly more: boolean }> {
  const { userId, from, to, eventName, limit, bytes } = query;
  // The first page begins at the instant `to` but excludes its events: no id sorts before ''.
  const before = query.before ?? { at: to ?? 'infinity', id: '' };
  const rows = await queryRows<ReadEvent & { found: number }>(connection, userEvents, [
    ...[environmentId, userId, from ?? '-infinity', before.at, before.id, eventName],
    ...[limit + 1, bytes],
  ]);
  const events = rows.slice(0, limit);
  return { events, more: (rows[0]?.found ?? 0) > events.length };
}

/** True if the user has a profile or an event. The first event may arrive before the profile. */
export function isUserKnown(db: Database, environmentId: number, userId: string): Promise<boolean> {
  return isTrue(db)`
    select
      exists (select 1 from users where environment_id = ${environmentId} and user_id = ${userId})
      or exists (select 1 from events where environment_id = ${environmentId} and user_id = ${userId}) as known`;
}
