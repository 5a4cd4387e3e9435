import { messageOf } from '../../base/errors.ts';
import { withDeadline } from '../../base/timers.ts';

export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly found: string;
  readonly advice: string | null;
}

export const ok = (check: string, found: string): Finding => ({ check, status: 'ok', found, advice: null });
export const warning = (check: string, found: string, advice: string): Finding => {
  return { check, status: 'warning', found, advice };
};
export const failed = (check: string, found: string, advice: string): Finding => {
  return { check, status: 'failed', found, advice };
};

export interface Check {
  readonly name: string;
  readonly deadlineMs: number;
  readonly run: () => Promise<readonly Finding[]>;
  /** Returns advice for a check that throws or takes too long. */
  readonly advise: (error: unknown) => string;
}

/** Returns the findings in the order of the checks. Never throws. */
export async function runChecks(checks: readonly Check[]): Promise<Finding[]> {
  const runs = checks.map(({ name, deadlineMs, run, advise }) => {
    const fail = (error: unknown): Finding[] => {
      const sentence = messageOf(error).replace(/\s+/g, ' ').trim().slice(0, 300);
      return [failed(name, sentence, advise(error))];
    };
    const late = (): Finding[] => fail(new Error(`no answer within ${deadlineMs / 1000} s`));
    return withDeadline(Promise.resolve().then(run).catch(fail), deadlineMs, late);
  });
  return (await Promise.all(runs)).flat();
}
