import { TransientError } from '../domain/errors.ts';

/** Waits for an answer that may never come: a database that is frozen breaks no connection. */
export async function inTime<T>(answer: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TransientError('the database does not answer')), deadlineMs);
  });
  // Whatever becomes of it later is nobody's concern any more.
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
