import { createHash } from 'node:crypto';
import { inputError } from '../../base/errors.ts';
import { READ_BYTES } from '../../base/limits.ts';

const UPLOAD_RATE_WINDOW_MS = 10_000;

export interface ReceiveLimits {
  readonly maxUploadBytes: number;
  readonly maxInflatedBytes: number;
  /**
   * Minimum rate of an upload. The rate is checked each time this process has waited for bytes for
   * another UPLOAD_RATE_WINDOW_MS in total. 0 allows any rate.
   */
  readonly minBytesPerSecond: number;
  /** Maximum time in which no byte arrives. */
  readonly stallMs: number;
}

export interface ReceiveClock {
  now(): number;
}

export class UploadRate {
  readonly #minBytesPerSecond: number;
  #waitedMs = 0;
  #bytes = 0;

  constructor(minBytesPerSecond: number) {
    this.#minBytesPerSecond = minBytesPerSecond;
  }

  /** @throws InputError `upload_too_slow` */
  note(waitedMs: number, bytes: number): void {
    this.#waitedMs += waitedMs;
    this.#bytes += bytes;
    if (this.#waitedMs < UPLOAD_RATE_WINDOW_MS) return;
    const rate = (this.#bytes * 1000) / this.#waitedMs;
    if (rate < this.#minBytesPerSecond) {
      const details = `${Math.floor(rate)} bytes a second; at least ${this.#minBytesPerSecond} are expected`;
      throw inputError('upload_too_slow', 'The upload is too slow', details);
    }
    this.#waitedMs = 0;
    this.#bytes = 0;
  }
}

/**
 * Counts and hashes the sent bytes, checks the limits, and joins small buffers. Time in which the
 * sender waits for this process does not reduce the upload rate.
 */
export class Intake {
  receivedBytes = 0;
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #limits: ReceiveLimits;
  readonly #signal: AbortSignal;
  readonly #clock: ReceiveClock;
  readonly #hash = createHash('sha256');
  readonly #rate: UploadRate;

  constructor(
    source: AsyncIterable<Uint8Array>,
    limits: ReceiveLimits,
    signal: AbortSignal,
    clock: ReceiveClock,
  ) {
    this.#source = source[Symbol.asyncIterator]();
    this.#limits = limits;
    this.#signal = signal;
    this.#clock = clock;
    this.#rate = new UploadRate(limits.minBytesPerSecond);
  }

  /** Returns the hash in hexadecimal digits. Must be called once, at the end. */
  sha256(): string {
    return this.#hash.digest('hex');
  }

  /**
   * Yields buffers of about READ_BYTES.
   * @throws InputError, errors from the source, or the signal's reason
   */
  async *read(): AsyncGenerator<Buffer, void> {
    let gathered = Buffer.alloc(0);
    let filled = 0;
    while (true) {
      const bytes = await this.#receive();
      if (bytes === null) break;
      if (filled > 0 && (bytes.length > gathered.length - filled || bytes.length >= READ_BYTES / 2)) {
        yield this.#hashed(gathered.subarray(0, filled));
        filled = 0;
      }
      if (bytes.length >= READ_BYTES / 2) {
        yield this.#hashed(bytes);
        continue;
      }
      if (filled === 0) gathered = Buffer.allocUnsafeSlow(READ_BYTES);
      bytes.copy(gathered, filled);
      filled += bytes.length;
    }
    if (filled > 0) yield this.#hashed(gathered.subarray(0, filled));
  }

  #hashed(bytes: Buffer): Buffer {
    this.#hash.update(bytes);
    return bytes;
  }

  async #receive(): Promise<Buffer | null> {
    const startedAt = this.#clock.now();
    const result = await readNext(this.#source, this.#limits.stallMs, this.#signal);
    if (result.done === true) return null;
    const bytes = result.value;
    this.receivedBytes += bytes.length;
    if (this.receivedBytes > this.#limits.maxUploadBytes) {
      const message = `The upload is larger than ${this.#limits.maxUploadBytes} bytes`;
      throw inputError('payload_too_large', message);
    }
    this.#rate.note(this.#clock.now() - startedAt, bytes.length);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }
}

/**
 * Reads the next item. Rejects after `stallMs`, or when the signal is aborted. `Promise.race` with
 * one promise for the whole upload would keep memory for every item.
 */
export function readNext<T>(
  source: AsyncIterator<T>,
  stallMs: number,
  signal: AbortSignal,
): Promise<IteratorResult<T, unknown>> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    const fail = (error: unknown) => {
      stop();
      reject(error);
    };
    const abort = () => fail(signal.reason);
    const timer = setTimeout(
      () => fail(inputError('upload_too_slow', 'The upload has stalled', `nothing came for ${stallMs} ms`)),
      stallMs,
    );
    signal.addEventListener('abort', abort);
    source.next().then((result) => {
      stop();
      resolve(result);
    }, fail);
  });
}

/** Beginning of a stream. `all` yields the whole stream, including this beginning. */
export interface Peeked {
  /** The first bytes of the stream: at least `minBytes`, unless the stream is shorter. */
  readonly head: Buffer;
  readonly isWhole: boolean;
  readonly all: AsyncIterable<Buffer>;
}

export async function peek(source: AsyncIterable<Buffer>, minBytes: number): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  const pieces: Buffer[] = [];
  let isWhole = false;
  for (let length = 0; length < minBytes; ) {
    const result = await iterator.next();
    if (result.done === true) {
      isWhole = true;
      break;
    }
    pieces.push(result.value);
    length += result.value.length;
  }
  const head = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  return { head, isWhole, all: { [Symbol.asyncIterator]: () => continued(pieces, iterator) } };
}

function continued(pieces: Buffer[], rest: AsyncIterator<Buffer>): AsyncIterator<Buffer> {
  return {
    next: () => {
      const value = pieces.shift();
      return value === undefined ? rest.next() : Promise.resolve({ done: false, value });
    },
    return: async () => {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}
