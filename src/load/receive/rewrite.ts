import { MAX_COLUMNAR_RATIO } from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import { avroToNdjson } from '../../formats/avro.ts';
import { arrayToNdjson } from '../../formats/json-array.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import { type Decoded, type DecodeHints, inflateGuard, type Sent } from './decode.ts';

/** Where a file is received into; what is kept aside for the time being goes there too. */
export type ReceivingStore = Pick<FileStore, 'create' | 'readRange' | 'remove'>;

export interface RewriteContext {
  readonly store: ReceivingStore;
  readonly hints: DecodeHints;
  /** What was sent for the file, which is what its growth is measured by. */
  readonly sent: Sent;
  readonly maxInflatedBytes: number;
}

/** The bytes that go into the store: CSV and NDJSON as they are, everything else as NDJSON. */
export function storedText({ bytes, format }: Decoded, context: RewriteContext): AsyncIterable<Buffer> {
  switch (format) {
    case 'csv':
    case 'ndjson':
      return bytes;
    case 'json':
      return arrayToNdjson(bytes, context.hints.envelope);
    case 'avro':
      return guarded(avroToNdjson(bytes), context);
    case 'parquet':
      return guarded(parquetAside(bytes, context.store), context);
    default:
      return format satisfies never;
  }
}

/** These formats write once what every row repeats. */
async function* guarded(
  rows: AsyncIterable<Buffer>,
  { hints, sent, maxInflatedBytes }: RewriteContext,
): AsyncGenerator<Buffer> {
  const guard = inflateGuard(hints.sent ?? sent, maxInflatedBytes, MAX_COLUMNAR_RATIO);
  for await (const piece of rows) {
    guard(piece.length);
    yield piece;
  }
}

/** What a Parquet file holds is said at its end: it is kept aside until it has been rewritten. */
async function* parquetAside(source: AsyncIterable<Buffer>, store: ReceivingStore): AsyncGenerator<Buffer> {
  const writer = await store.create();
  let bytes = 0;
  try {
    for await (const piece of source) {
      await writer.write(piece);
      bytes += piece.length;
    }
    await writer.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
  const { ref } = writer;
  try {
    yield* parquetToNdjson({ bytes, read: (start, end) => store.readRange(ref, start, end) });
  } finally {
    await store.remove(ref);
  }
}
