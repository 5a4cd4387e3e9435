import type pg from 'pg';
import { withTimeout } from '../watch-pool.ts';

const timeoutMs = 2_000;

/** What retention has made of the events, in all environments. */
export interface EventRetention {
  /** From the database, ever. */
  readonly eventsRemoved: number;
  readonly monthsDropped: number;
  /** In files. */
  readonly eventsArchived: number;
  readonly archiveFiles: number;
  readonly archiveBytes: number;
  /** When the latest pruning ended; null: there was none. */
  readonly prunedAt: Date | null;
  /** Why it did not do all that was to be done; null: it did. */
  readonly error: string | null;
  readonly failingSince: Date | null;
}

const statement = `
  with removed as (
    select
      coalesce(sum(events_removed), 0)::bigint as "eventsRemoved",
      count(*) filter (where is_whole and state = 'removed') as "monthsDropped"
    from sluice.event_retirements
  ),
  archived as (
    select
      coalesce(sum(row_count), 0)::bigint as "eventsArchived",
      count(*) as "archiveFiles",
      coalesce(sum(byte_count), 0)::bigint as "archiveBytes"
    from sluice.event_archives
    where state = 'stored'
  )
  select r.*, a.*, p.ended_at as "prunedAt", p.error, p.failing_since as "failingSince"
  from removed r
  cross join archived a
  left join sluice.event_prunings p on true`;

export async function readEventRetention(watch: pg.Pool | pg.ClientBase): Promise<EventRetention> {
  const { rows } = await watch.query<EventRetention>(withTimeout(statement, timeoutMs));
  const [row] = rows;
  if (row === undefined) throw new Error('a row was expected');
  return row;
}
