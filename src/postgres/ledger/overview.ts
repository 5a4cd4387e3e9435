import type pg from 'pg';
import { withTimeout } from '../watch-pool.ts';

/** How long we wait for an answer; the server gives up by itself too (`createWatchPool`). */
const backlogTimeoutMs = 2_000;
const rowsTimeoutMs = 5_000;

/** What is to be done now. */
export interface Backlog {
  readonly queuedLoads: number;
  readonly processingLoads: number;
  readonly pendingChunks: number;
  readonly runningChunks: number;
  /** Since the longest waiting load was accepted; 0 if none waits. */
  readonly oldestWaitingSeconds: number;
  /** Notifications that are still to be delivered. */
  readonly pendingNotifications: number;
  /** Notifications that were given up, of those that are kept. */
  readonly deadNotifications: number;
}

/*
 * Costs what is unfinished, not what is kept: the loads come from loads_lane_idx, and only the chunks of those that run
 * (one load per environment) are looked at, through load_chunks_open_idx. Notifications have an index per state.
 */
const backlogStatement = `
  select
    count(*) filter (where l.status = 'queued') as "queuedLoads",
    count(*) filter (where l.status = 'processing') as "processingLoads",
    coalesce(sum(l.chunk_count - l.chunks_done - r.running), 0)::bigint as "pendingChunks",
    coalesce(sum(r.running), 0)::bigint as "runningChunks",
    coalesce(
      extract(epoch from now() - min(l.accepted_at) filter (where l.status = 'queued')),
      0
    )::float8 as "oldestWaitingSeconds",
    (select count(*) from notification_deliveries where state = 'pending') as "pendingNotifications",
    (select count(*) from notification_deliveries where state = 'dead') as "deadNotifications"
  from loads l
  cross join lateral (
    select count(*) as running
    from load_chunks c
    where l.status = 'processing' and c.load_id = l.load_id and c.state = 'running'
  ) r
  where l.status in ('queued', 'processing')`;

export async function readBacklog(watch: pg.Pool): Promise<Backlog> {
  const { rows } = await watch.query<Backlog>(withTimeout(backlogStatement, backlogTimeoutMs));
  return only(rows);
}

/** Rows of the loads of one entity, dry runs aside. */
export interface LoadRows {
  readonly entity: string;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
  /** Completed loads whose counts do not add up, or that read another number of records than was received. */
  readonly differences: number;
}

/* Reads every load that is kept, some 0.6 s for a million: ask for it seldom. */
const rowsStatement = `
  select
    entity,
    coalesce(sum(rows_inserted) filter (where not dry_run), 0)::bigint as inserted,
    coalesce(sum(rows_updated) filter (where not dry_run), 0)::bigint as updated,
    coalesce(sum(rows_unchanged) filter (where not dry_run), 0)::bigint as unchanged,
    coalesce(sum(rows_superseded) filter (where not dry_run), 0)::bigint as superseded,
    coalesce(sum(rows_rejected) filter (where not dry_run), 0)::bigint as rejected,
    count(*) filter (
      where status = 'completed'
        and (
          rows_read <> total_rows
          or rows_read <> rows_inserted + rows_updated + rows_unchanged + rows_superseded + rows_rejected
        )
    ) as differences
  from loads
  group by entity`;

export async function readLoadRows(watch: pg.Pool): Promise<LoadRows[]> {
  const { rows } = await watch.query<LoadRows>(withTimeout(rowsStatement, rowsTimeoutMs));
  return rows;
}

function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error('a row was expected');
  return row;
}
