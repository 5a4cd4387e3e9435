import type { Overview } from '../api/overview.ts';
import { messageOf } from '../domain/errors.ts';
import { isDiskFull } from '../postgres/sqlstate.ts';
import { withDeadline } from '../timers.ts';

/** A finding is the outcome of one check. Both sentences are for a person, and hold no secret. */
export type Finding = Overview['findings']['items'][number];
export type FindingStatus = Finding['status'];

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found, advice: null };
}

export function warning(check: string, found: string, advice: string): Finding {
  return { check, status: 'warning', found, advice };
}

export function failed(check: string, found: string, advice: string): Finding {
  return { check, status: 'failed', found, advice };
}

export const roomAdvice = 'Make room on that disk; what waits for it goes on by itself.';

/** Something to look at. It may throw and it may hang: neither stops the others. */
export interface Check {
  readonly name: string;
  readonly deadlineMs: number;
  run(): Promise<readonly Finding[]>;
  /** Says what to do if it throws or is late. */
  readonly advice: string;
  /** Returns what to do about this error in particular, or null. */
  readonly advise?: (error: unknown) => string | null;
}

/** Runs them side by side; all their findings, in the order of the checks. Never throws. */
export async function runChecks(checks: readonly Check[]): Promise<Finding[]> {
  return (await Promise.all(checks.map(runCheck))).flat();
}

async function runCheck({ name, deadlineMs, run, advice, advise }: Check): Promise<readonly Finding[]> {
  const done = Promise.resolve()
    .then(run)
    .catch((error: unknown) => [
      failed(name, sentenceOf(error), isDiskFull(error) ? roomAdvice : (advise?.(error) ?? advice)),
    ]);
  return withDeadline(done, deadlineMs, () => [
    failed(name, `no answer within ${deadlineMs / 1000} s`, advice),
  ]);
}

/** Returns the message of an error in one line. */
export function sentenceOf(error: unknown): string {
  return messageOf(error).replace(/\s+/g, ' ').trim().slice(0, 300);
}
