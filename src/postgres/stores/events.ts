import { sql } from 'kysely';
import type pg from 'pg';
import type { Database } from '../database.ts';
import { readQuery, runQuery } from '../database.ts';

export interface EventRow {
  readonly environmentId: number;
  readonly eventId: string;
  /** The id is the caller's: an event of the user that bears it is added once. Ours are new every time. */
  readonly once: boolean;
  readonly eventName: string;
  readonly userId: string;
  /** null: the company the user belongs to; '': none. */
  readonly companyId: string | null;
  /** Instant as Postgres reads it; null: now. */
  readonly insertedAt: string | null;
  /** A JSON object. */
  readonly metadata: string;
}

const insertEvents = readQuery('insert-events');
const insertEventsOnce = readQuery('insert-events-once');

/** Adds events, all or nothing; those that were added before are passed over. */
export async function writeEvents(
  connection: pg.Pool | pg.PoolClient,
  events: readonly EventRow[],
): Promise<void> {
  const distinct = events.some(({ once }) => once) ? firstOfEach(events) : null;
  const list = `[${(distinct ?? events).map(eventText).join(',')}]`;
  await runQuery(connection, distinct === null ? insertEvents : insertEventsOnce, [list]);
}

function firstOfEach(events: readonly EventRow[]): EventRow[] {
  const met = new Set<string>();
  return events.filter(({ once, environmentId, userId, eventId }) => {
    if (!once) return true;
    const key = JSON.stringify([environmentId, userId, eventId]);
    return !met.has(key) && met.add(key);
  });
}

function eventText(row: EventRow): string {
  const company = row.companyId === null ? '' : `,"c":${JSON.stringify(row.companyId)}`;
  const time = row.insertedAt === null ? '' : `,"t":"${row.insertedAt}"`;
  const once = row.once ? ',"d":true' : '';
  const ids = `"i":${JSON.stringify(row.eventId)},"n":${JSON.stringify(row.eventName)},"u":${JSON.stringify(row.userId)}`;
  return `{"e":${row.environmentId},${ids}${company}${time}${once},"p":${row.metadata}}`;
}

/** The next month's partition is there this long before it is needed. */
const aheadMs = 3 * 24 * 60 * 60 * 1000;

/** Makes the months of `sluice.events` as they are needed; remembers those that are there. */
export class EventPartitions {
  readonly #known = new Set<number>();

  /** Returns when the months of these instants (milliseconds since 1970), of now and of the days to come have a partition. */
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

  /** After a partition turned out to be gone. */
  forget(): void {
    this.#known.clear();
  }
}

function monthOf(instant: number): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** How many of the rows of an export, a JSON array of them, are stored as they say. */
export async function countStoredEvents(
  db: Database,
  environmentId: number,
  rows: string,
): Promise<{ readonly rows: number; readonly same: number; readonly dated: 0 }> {
  const found = await sql<{ rows: number; same: number }>`
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
        and e.inserted_at = r.inserted_at and e.event_id = r.event_id`.execute(db);
  const { rows: all = 0, same = 0 } = found.rows[0] ?? {};
  return { rows: all, same, dated: 0 };
}
