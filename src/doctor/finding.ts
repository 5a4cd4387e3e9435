/** `warning`: it works, and somebody should know. `failed`: it does not, or will not for long. */
export const verdicts = ['ok', 'warning', 'failed'] as const;
export type Verdict = (typeof verdicts)[number];

/** What one look at one thing came to. Both sentences are for a person, and hold no secret. */
export interface Finding {
  /** What was looked at, such as `postgres version`. */
  readonly check: string;
  readonly verdict: Verdict;
  readonly found: string;
  /** What to do; null if there is nothing to do. */
  readonly advice: string | null;
}

export function ok(check: string, found: string): Finding {
  return { check, verdict: 'ok', found, advice: null };
}

export function warning(check: string, found: string, advice: string): Finding {
  return { check, verdict: 'warning', found, advice };
}

export function failed(check: string, found: string, advice: string): Finding {
  return { check, verdict: 'failed', found, advice };
}
