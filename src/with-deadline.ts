/**
 * Returns the outcome of the work; if that takes longer, what `late` returns or throws. The work itself goes on, since it may hang in
 * something that nobody can stop, and what becomes of it then concerns nobody.
 */
export async function withDeadline<T, L>(
  work: Promise<T>,
  deadlineMs: number,
  late: () => L,
): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs);
  });
  try {
    return await Promise.race([work, passed.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
