/** The worker has no time left: what is not done is to be given back. Never aborted: all the time in the world. */
export type Hurry = AbortSignal;

/** For those who are not in a hurry. */
export const noHurry: Hurry = new AbortController().signal;

/**
 * What the work comes to, unless there is no time left before: then it throws the reason. The work itself goes on, since it
 * may hang in something that nobody can stop; the caller sees to it that it cannot commit any more.
 */
export async function untilHurry<T>(hurry: Hurry, work: () => Promise<T>): Promise<T> {
  hurry.throwIfAborted();
  let stop: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    stop = () => reject(hurry.reason as Error);
    hurry.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    hurry.removeEventListener('abort', stop);
  }
}
