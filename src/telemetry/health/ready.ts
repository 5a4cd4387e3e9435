import type { Logger } from 'pino';
import { withDeadline } from '../../base/timers.ts';

const parts = ['database', 'queue', 'storage'] as const;
type Part = (typeof parts)[number];

/** `degraded`: the queue alone is away. Loads are accepted all the same, and found in the ledger when it is back. */
type HealthStatus = 'ready' | 'degraded' | 'not_ready';

export interface HealthReport {
  readonly status: HealthStatus;
  readonly parts: Readonly<Record<Part, 'ok' | 'away'>>;
}

/** Throws, or hangs, if the part is away; null where the part is as well as the database. */
export type HealthChecks = Readonly<Record<Part, (() => Promise<unknown>) | null>>;

export interface Health {
  /** Looks at every part, within two seconds whatever hangs. Never throws. */
  check(): Promise<HealthReport>;
}

/** Less for the queue: a prober that gives us a second must still hear that we serve without it. */
const deadlinesMs: Readonly<Record<Part, number>> = { database: 1_500, queue: 700, storage: 1_500 };

/** Tells of each part whether it answers, and the log, once per change, why not. */
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
      const found = answers as HealthReport['parts'];
      if (database === 'away' || storage === 'away') return { status: 'not_ready', parts: found };
      return { status: found.queue === 'away' ? 'degraded' : 'ready', parts: found };
    },
  };
}

const nothing = async (): Promise<void> => undefined;

/** An answer is the outcome of a question that may go unanswered. */
export type Answer<T> = { readonly value: T } | { readonly error: unknown };

export interface ProbeOptions {
  readonly deadlineMs: number;
  /** Returns how long an answer, or a failure, serves those who come later; by default not at all. */
  readonly keepMs?: (tookMs: number, failed: boolean) => number;
}

/** Asks one question at a time, however many wait for the answer, so that something that hangs is asked once. Never throws. */
export function createProbe<T>(
  ask: () => Promise<T>,
  { deadlineMs, keepMs = () => 0 }: ProbeOptions,
): () => Promise<Answer<T>> {
  let outstanding: Promise<Answer<T>> | null = null;
  let kept: { readonly answer: Answer<T>; readonly until: number } | null = null;

  const start = async (): Promise<Answer<T>> => {
    const startedAt = performance.now();
    const answer = await ask().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const now = performance.now();
    kept = { answer, until: now + keepMs(now - startedAt, 'error' in answer) };
    outstanding = null;
    return answer;
  };

  return async () => {
    if (kept !== null && performance.now() < kept.until) return kept.answer;
    outstanding ??= start();
    return withDeadline(outstanding, deadlineMs, () => ({
      error: new Error(`no answer within ${deadlineMs} ms`),
    }));
  };
}
