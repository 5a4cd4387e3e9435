/* What `GET /v1/overview` answers. */

export interface Minute {
  readonly minute: string;
  readonly records: number;
  readonly refused: number;
  readonly rows: number;
}

export interface LaneItem {
  readonly position: number;
  readonly job_id: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string | null;
  readonly done: number;
  readonly total: number;
  readonly start_time: string;
}

export interface OverviewHealth {
  readonly status: 'ready' | 'degraded' | 'not_ready';
  readonly parts: Readonly<Record<string, 'ok' | 'away'>>;
}

export interface OverviewFindings {
  readonly warnings: number;
  readonly failed: number;
  readonly items: readonly {
    readonly check: string;
    readonly status: 'ok' | 'warning' | 'failed';
    readonly found: string;
    readonly advice: string | null;
  }[];
  readonly is_known: boolean;
}

export interface FailingTask {
  readonly task: string;
  readonly job_id: string | null;
  readonly part: number;
  readonly failures: number;
  readonly losses: number;
  readonly last_error: string | null;
  readonly next_try_at: string | null;
}

export interface Work {
  readonly waiting: number;
  readonly running: number;
  readonly postponed: number;
  readonly failing: readonly FailingTask[];
}

/** Null for those whose business the server is not. */
export interface Queue {
  readonly lives_in: 'postgres' | 'redis';
  readonly is_known: boolean;
  readonly queues: readonly {
    readonly name: string;
    readonly waiting: number;
    readonly active: number;
    readonly delayed: number;
    readonly failed: number;
  }[];
}

export interface Need {
  readonly kind: string;
  readonly status: 'failed' | 'warning';
  readonly count: number;
  /** The job or the schedule, if it is one. */
  readonly subject: string | null;
  readonly says: string;
}

export interface Overview {
  readonly needs: readonly Need[];
  readonly server: string;
  readonly health: OverviewHealth;
  readonly findings: OverviewFindings;
  readonly minutes: readonly Minute[];
  readonly queued: number;
  readonly processing: number;
  readonly failed_24h: number;
  readonly unaccounted: number;
  readonly work: Work;
  readonly queue: Queue | null;
  readonly lane: readonly LaneItem[];
}

/** Of the live view. */
export interface RunningJob {
  readonly job_id: string;
  readonly completed_rows: number;
  readonly total_rows: number;
}
