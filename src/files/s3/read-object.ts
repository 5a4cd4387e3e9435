import { setTimeout as delay } from 'node:timers/promises';
import { TransientError } from '../../domain/errors.ts';
import { S3_ATTEMPTS } from '../../domain/limits.ts';
import type { OpenObject, S3Bucket } from './bucket.ts';

const pauseMs = 200;

/**
 * The bytes [start, end) of an object, or from `start` to its end. An answer that breaks off, or of which nothing comes for
 * a while (because the network stalls, or because whoever reads takes his time), is taken up where it ended.
 */
export async function* readObject(
  bucket: S3Bucket,
  key: string,
  start: number,
  end: number | null,
): AsyncGenerator<Buffer> {
  let at = start;
  let last = end;
  for (let failures = 0; last === null || at < last; ) {
    const stop = new AbortController();
    const { body, bytes } = await bucket.open(key, at, last, stop.signal);
    last ??= at + bytes;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        at += chunk.length;
        failures = 0;
        yield chunk;
      }
      if (at < last) throw new Error(`${last - at} bytes are missing`);
    } catch (error) {
      if (++failures >= S3_ATTEMPTS) throw brokenOff(error);
      await delay(pauseMs * failures);
    } finally {
      discard(body, stop);
    }
  }
}

/** Exactly the bytes [start, end). */
export async function readExactly(
  bucket: S3Bucket,
  key: string,
  start: number,
  end: number,
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  let filled = 0;
  for await (const chunk of readObject(bucket, key, start, end)) filled += chunk.copy(bytes, filled);
  return bytes;
}

/** Its connection is of no use if there is something left on it. */
function discard(body: OpenObject['body'], stop: AbortController): void {
  if (body.readableEnded) return;
  body.on('error', () => undefined);
  body.destroy();
  stop.abort();
}

function brokenOff(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new TransientError(`S3 storage, reading a file: the answer broke off again and again: ${reason}`, {
    cause,
  });
}
