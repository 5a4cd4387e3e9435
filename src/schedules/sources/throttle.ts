import { setTimeout as delay } from 'node:timers/promises';

/** The same bytes, no faster than `bytesPerSecond` on the whole. */
export async function* throttle(
  source: AsyncIterable<Uint8Array>,
  bytesPerSecond: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const startedAt = performance.now();
  let passed = 0;
  const slice = Math.max(1_024, Math.floor(bytesPerSecond / 4));
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += slice) {
      const part = bytes.subarray(at, at + slice);
      passed += part.length;
      const aheadMs = (passed * 1000) / bytesPerSecond - (performance.now() - startedAt);
      if (aheadMs > 1) await delay(aheadMs, undefined, { signal });
      yield part;
    }
  }
}
