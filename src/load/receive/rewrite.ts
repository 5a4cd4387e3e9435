import { MAX_COLUMNAR_RATIO } from '../../domain/limits.ts';
import { avroToNdjson } from '../../formats/avro.ts';
import { arrayToNdjson } from '../../formats/json-array.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import type { Asides } from './asides.ts';
import type { Decoded } from './decode.ts';
import { inflateGuard, type Sent, type UnpackHints } from './unpack.ts';

export interface RewriteContext {
  readonly asides: Asides;
  readonly hints: UnpackHints;
  /** What was sent for the file, which is what its growth is measured by. */
  readonly sent: Sent;
  readonly maxInflatedBytes: number;
}

/** The bytes that go into the store: CSV and NDJSON as they are, a workbook as CSV, everything else as NDJSON. */
export function storedText({ bytes, format }: Decoded, context: RewriteContext): AsyncIterable<Buffer> {
  switch (format) {
    case 'csv':
    case 'ndjson':
      return bytes;
    case 'json':
      return arrayToNdjson(bytes, context.hints.envelope);
    case 'xlsx':
      return guarded(bytes, context);
    case 'avro':
      return guarded(avroToNdjson(bytes), context);
    case 'parquet':
      return guarded(parquetAside(bytes, context.asides), context);
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

async function* parquetAside(source: AsyncIterable<Buffer>, asides: Asides): AsyncGenerator<Buffer> {
  yield* parquetToNdjson(await asides.keep(source));
}
