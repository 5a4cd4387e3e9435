/** What came of a question that may go unanswered. */
export type Answer<T> = { readonly value: T } | { readonly error: unknown };

export interface ProbeOptions {
  /** Who asks waits no longer than this. */
  readonly deadlineMs: number;
  /** How long an answer, or a failure, serves those who come later; default: not at all. */
  readonly keepMs?: (tookMs: number, failed: boolean) => number;
}

/**
 * Asks one question at a time: whoever comes while an answer is outstanding waits for the same one. So something that
 * hangs is asked once, however many want to know and however often. Never throws.
 */
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
    return inTime(outstanding, deadlineMs);
  };
}

async function inTime<T>(answer: Promise<Answer<T>>, deadlineMs: number): Promise<Answer<T>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Answer<T>>((resolve) => {
    timer = setTimeout(() => resolve({ error: new Error(`no answer within ${deadlineMs} ms`) }), deadlineMs);
  });
  const first = await Promise.race([answer, late]);
  clearTimeout(timer);
  return first;
}
