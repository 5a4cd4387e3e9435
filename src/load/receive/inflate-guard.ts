import { inputError } from '../../domain/errors.ts';
import { INFLATE_RATIO_GRACE_BYTES, MAX_INFLATE_RATIO } from '../../domain/limits.ts';
import type { InflateGuard } from '../../formats/decompress.ts';

/** The bytes that a sender has sent so far. */
export interface Sent {
  readonly receivedBytes: number;
}

/** Guards against uploads that unpack without end: it bounds the total size, and the growth over all layers. */
export function inflateGuard(
  sent: Sent,
  maxInflatedBytes: number,
  maxRatio = MAX_INFLATE_RATIO,
): InflateGuard {
  let inflated = 0;
  return (bytes) => {
    inflated += bytes;
    if (inflated > maxInflatedBytes) {
      throw inputError('payload_too_large', `The upload unpacks to more than ${maxInflatedBytes} bytes`);
    }
    if (inflated > INFLATE_RATIO_GRACE_BYTES && inflated > sent.receivedBytes * maxRatio) {
      const message = `The upload unpacks to more than ${maxRatio} times its size`;
      throw inputError('payload_too_large', message);
    }
  };
}
