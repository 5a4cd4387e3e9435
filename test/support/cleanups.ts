/** What is to be undone when a test or a test file has ended, last first; `setup.ts` does it. */
const cleanups: Record<'test' | 'file', (() => unknown)[]> = { test: [], file: [] };

export function cleanUpAfter(end: 'test' | 'file', cleanup: () => unknown): void {
  cleanups[end].push(cleanup);
}

export async function cleanUp(end: 'test' | 'file'): Promise<void> {
  for (const cleanup of cleanups[end].splice(0).reverse()) await cleanup();
}
