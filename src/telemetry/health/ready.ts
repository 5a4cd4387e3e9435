import type { Logger } from 'pino';
import { withDeadline } from '../../base/timers.ts';

const parts = ['database', 'queue', 'storage'] as const;
type Part = (typeof parts)[number];

/**
 * `degraded`: only the queue is unavailable. Accepted loads start from the ledger once the queue is
 * back.
 */
type HealthStatus = 'ready' | 'degraded' | 'not_ready';

export interface HealthReport {
  readonly status: HealthStatus;
  readonly parts: Readonly<Record<Part, 'ok' | 'away'>>;
}

/**
 * A check throws or hangs if its part is unavailable. A part that is inside the database has no
 * check of its own (`null`).
 */
type HealthChecks = Readonly<Record<Part, (() => Promise<unknown>) | null>>;

export interface Health {
  /** Checks all parts, in at most two seconds. Never throws. */
  check(): Promise<HealthReport>;
}

/**
 * If the queue hangs, a prober that waits for one second still gets the states of the other parts.
 */
const deadlinesMs: Readonly<Record<Part, number>> = { database: 1_500, queue: 700, storage: 1_500 };

/** Logs each change once, with the reason. */
export function createHealth(checks: HealthChecks, log: Logger): Health {
  const ask = Object.fromEntries(
    parts.map((part) => [part, createProbe(checks[part] ?? nothing, { deadlineMs: deadlinesMs[part] })]),
  ) as Record<Part, () => Promise<Answer<unknown>>>;
  const awaySince = new Map<Part, number>();

  const look = async (part: Part): Promise<'ok' | 'away'> => {
    const answer = await ask[part]();
    note(part, answer);
    return 'error' in answer ? 'away' : 'ok';
  };

  const note = (part: Part, answer: Answer<unknown>): void => {
    const since = awaySince.get(part);
    if ('error' in answer && since === undefined) {
      awaySince.set(part, performance.now());
      log.warn({ part, err: answer.error }, `the ${part} is away`);
    } else if (!('error' in answer) && since !== undefined) {
      awaySince.delete(part);
      log.info({ part, away_ms: Math.round(performance.now() - since) }, `the ${part} is back`);
    }
  };

  return {
    async check() {
      const [database, queue, storage] = await Promise.all(parts.map(look));
      const answers = { database, queue: checks.queue === null ? database : queue, storage };
      const states = answers as HealthReport['parts'];
      if (database === 'away' || storage === 'away') return { status: 'not_ready', parts: states };
      return { status: states.queue === 'away' ? 'degraded' : 'ready', parts: states };
    },
  };
}

const nothing = async (): Promise<void> => undefined;

export type Answer<T> = { readonly value: T } | { readonly error: unknown };

export interface ProbeOptions {
  readonly deadlineMs: number;
  /** Milliseconds for which a result or error is reused. Default: 0. */
  readonly keepMs?: (tookMs: number, failed: boolean) => number;
}

/**
 * Returns a function that calls `ask` and never throws. Concurrent callers share one call, so a
 * part that hangs is called once.
 */
export function createProbe<T>(
  ask: () => Promise<T>,
  { deadlineMs, keepMs = () => 0 }: ProbeOptions,
): () => Promise<Answer<T>> {
  let outstanding: Promise<Answer<T>> | null = null;
  let cached: { readonly answer: Answer<T>; readonly until: number } | null = null;

  const start = async (): Promise<Answer<T>> => {
    const startedAt = performance.now();
    const answer = await ask().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const now = performance.now();
    cached = { answer, until: now + keepMs(now - startedAt, 'error' in answer) };
    outstanding = null;
    return answer;
  };

  return async () => {
    if (cached !== null && performance.now() < cached.until) return cached.answer;
    outstanding ??= start();
    return withDeadline(outstanding, deadlineMs, () => ({
      error: new Error(`no answer within ${deadlineMs} ms`),
    }));
  };
}
