import { inputError } from '../../domain/errors.ts';
import {
  INFLATE_RATIO_GRACE_BYTES,
  MAX_GZIP_LAYERS,
  MAX_INFLATE_RATIO,
  SNIFF_BYTES,
} from '../../domain/limits.ts';
import type { SourceFormat } from '../../domain/source.ts';
import { gunzip, type InflateGuard, isGzip } from '../../formats/decompress.ts';
import { detectFormat, type FormatHints, keysOfObject } from '../../formats/detect-format.ts';
import { detectEncoding, toUtf8 } from '../../formats/text-encoding.ts';
import type { Intake } from './intake.ts';

export interface DecodeHints extends FormatHints {
  /** The request says `Content-Encoding: gzip`. */
  readonly contentEncodingGzip?: boolean | undefined;
  /** Where the file was unpacked on its way here: what was sent for it, which is what its growth is measured by. */
  readonly sent?: Sent | undefined;
}

/** What a sender spent so far. */
export interface Sent {
  readonly receivedBytes: number;
}

/** Text in UTF-8, or a file of a format that is none, and what it turned out to be. */
export interface Decoded {
  readonly bytes: AsyncIterable<Buffer>;
  readonly format: SourceFormat;
  /** Of what was sent, as `ReadAs` has it. */
  readonly encoding: string | null;
  /** Length of the byte order mark that `bytes` starts with. */
  readonly bomBytes: number;
  /** Of a short file that is one JSON object and was not said to be NDJSON: its keys. */
  readonly objectKeys: readonly string[] | null;
}

/**
 * Unpacks, makes UTF-8 of it, and finds out the format.
 * @throws InputError `unsupported_format`, `payload_too_large`, and what `intake` throws.
 */
export async function decode(intake: Intake, hints: DecodeHints, maxInflatedBytes: number): Promise<Decoded> {
  const plain = await unpack(intake, hints, maxInflatedBytes);
  const encoding = detectEncoding(plain.head);
  const text = await peek(toUtf8(plain.all, encoding), SNIFF_BYTES);
  const bomBytes = encoding.name === 'utf-8' ? encoding.bomBytes : 0;
  const format = detectFormat(text.head, hints);
  const objectKeys = format === 'ndjson' && text.isWhole ? keysOfObject(text.head, hints) : null;
  const isText = format !== 'parquet' && format !== 'avro';
  return { bytes: text.all, format, encoding: isText ? encoding.name : null, bomBytes, objectKeys };
}

async function unpack(intake: Intake, hints: DecodeHints, maxInflatedBytes: number): Promise<Peeked> {
  let packed = await peek(intake.read(), SNIFF_BYTES);
  if (hints.contentEncodingGzip === true && packed.head.length > 0 && !isGzip(packed.head)) {
    throw inputError('unsupported_format', 'The request says that its body is gzip, but it is not');
  }
  for (let layer = 0; isGzip(packed.head); layer++) {
    if (layer === MAX_GZIP_LAYERS) throw tooDeep();
    packed = await peek(
      gunzip(packed.all, inflateGuard(hints.sent ?? intake, maxInflatedBytes)),
      SNIFF_BYTES,
    );
  }
  return packed;
}

/** Against what is made to grow without end: a bound on the whole, and one on the growth over all layers. */
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

function tooDeep(): Error {
  return inputError('unsupported_format', `The upload is packed more than ${MAX_GZIP_LAYERS} times over`);
}

/** The beginning of a stream, and the whole of it still to be read. */
interface Peeked {
  /** The first `minBytes` or a little more; fewer only if the stream is shorter. */
  readonly head: Buffer;
  /** There is nothing after `head`. */
  readonly isWhole: boolean;
  readonly all: AsyncIterable<Buffer>;
}

/** Looks at the first bytes without taking them. */
async function peek(source: AsyncIterable<Buffer>, minBytes: number): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  const taken: Buffer[] = [];
  let isWhole = false;
  for (let length = 0; length < minBytes; ) {
    const result = await iterator.next();
    if (result.done === true) {
      isWhole = true;
      break;
    }
    taken.push(result.value);
    length += result.value.length;
  }
  const head = taken.length === 1 ? (taken[0] as Buffer) : Buffer.concat(taken);
  return { head, isWhole, all: { [Symbol.asyncIterator]: () => continued(taken, iterator) } };
}

function continued(taken: Buffer[], rest: AsyncIterator<Buffer>): AsyncIterator<Buffer> {
  return {
    next: () => {
      const value = taken.shift();
      return value === undefined ? rest.next() : Promise.resolve({ done: false, value });
    },
    return: async () => {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}
