import type pg from 'pg';
import {
  type Failure,
  type LaneOverview,
  type Retry,
  type RunningExport,
  readFailures,
  readLanes,
  readRetries,
  readRunningExports,
} from '../postgres/stores/lane-overview.ts';
import { type Backlog, readBacklog } from '../postgres/stores/overview.ts';
import { type EventRetention, readEventRetention } from '../postgres/stores/retention.ts';
import { type LiveWorker, readLiveWorkers } from '../postgres/stores/workers.ts';

/** What the service is at, in all environments. */
export interface ServiceStatus {
  readonly workers: readonly LiveWorker[];
  readonly backlog: Backlog;
  readonly lanes: readonly LaneOverview[];
  readonly exports: readonly RunningExport[];
  /** Jobs that go on after an error; the oldest. */
  readonly retries: readonly Retry[];
  readonly retention: EventRetention;
  /** The latest, latest first. */
  readonly failures: readonly Failure[];
}

/** Each question has its deadline; throws if the database is away. `watch` comes from `createWatchPool`. */
export async function readStatus(watch: pg.Pool): Promise<ServiceStatus> {
  const [workers, backlog, lanes, exports, retries, retention, failures] = await Promise.all([
    readLiveWorkers(watch),
    readBacklog(watch),
    readLanes(watch),
    readRunningExports(watch),
    readRetries(watch),
    readEventRetention(watch),
    readFailures(watch),
  ]);
  return { workers, backlog, lanes, exports, retries, retention, failures };
}
