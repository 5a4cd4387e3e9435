import { MAX_COLUMNAR_RATIO } from '../../domain/limits.ts';
import { recordKeyTest } from '../../formats/detect-format.ts';
import { arrayToNdjson } from '../../formats/json-array.ts';
import { documentToNdjson } from '../../formats/json-document.ts';
import { isPlainLines, plainLinesOf } from '../../formats/json-lines.ts';
import { sequenceToNdjson } from '../../formats/json-sequence.ts';
import type { JsonLayout } from '../../formats/json-sniff.ts';
import { inTurns } from '../../yielding.ts';
import type { Asides } from './asides.ts';
import { type Conversion, type ConvertWhole, textOf } from './convert.ts';
import type { Decoded } from './decode.ts';
import { inflateGuard, type Sent } from './inflate-guard.ts';
import type { UnpackHints } from './unpack.ts';

export interface RewriteContext {
  readonly asides: Asides;
  readonly convert: ConvertWhole;
  readonly hints: UnpackHints;
  /** What was sent for the file, which is what its growth is measured by. */
  readonly sent: Sent;
  readonly maxInflatedBytes: number;
  /** Gets what is found meanwhile and belongs into the job record. */
  readonly notes: string[];
}

/** The bytes that go into the store: CSV and plain NDJSON as they are, a workbook as CSV, everything else as NDJSON. */
export function storedText(decoded: Decoded, context: RewriteContext): AsyncIterable<Buffer> {
  const { bytes, format } = decoded;
  switch (format) {
    case 'csv':
      return bytes;
    case 'ndjson':
    case 'json':
      return jsonAsLines(decoded, context);
    case 'xlsx':
      return guarded(bytes, context);
    case 'avro':
    case 'parquet':
      return guarded(convertAside(format, bytes, context), context);
    default:
      return format satisfies never;
  }
}

function jsonAsLines(
  { bytes, layout, bomBytes, object }: Decoded,
  context: RewriteContext,
): AsyncIterable<Buffer> {
  const { hints, notes } = context;
  if (layout === null || (layout.kind === 'lines' && isPlainLines(layout.lines))) return bytes;
  if (object === null) notes.push(...layoutNotes(layout));
  const pieces = inTurns(bytes);
  switch (layout.kind) {
    case 'lines':
      return plainLinesOf(pieces, layout.lines);
    case 'sequence':
      return sequenceToNdjson(withoutFirst(pieces, bomBytes));
    case 'document':
      if (layout.path === null && hints.envelope !== undefined) return arrayToNdjson(pieces, hints.envelope);
      return documentToNdjson(pieces, { path: layout.path, isOfRecord: recordKeyTest(hints) }, notes);
    default:
      return layout satisfies never;
  }
}

function layoutNotes(layout: JsonLayout): string[] {
  if (layout.kind === 'sequence') return ['Records follow one another without a line for each.'];
  if (layout.kind === 'document') return [];
  const { ends, commas } = layout.lines;
  const ended = { lf: [], cr: ['Lines end with CR only.'], rs: ['U+001E stands before each record.'] }[ends];
  return commas ? [...ended, 'Commas at the ends of lines were left out.'] : ended;
}

async function* withoutFirst(source: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let left = count;
  for await (const bytes of source) {
    const skipped = Math.min(left, bytes.length);
    left -= skipped;
    if (bytes.length > skipped) yield bytes.subarray(skipped);
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

/** Converts a file once it is complete, so that a slow sender occupies no sandbox that others wait for. */
async function* convertAside(
  format: Conversion['format'],
  source: AsyncIterable<Buffer>,
  { asides, convert, notes }: RewriteContext,
): AsyncGenerator<Buffer> {
  yield* textOf(convert(format, await asides.keep(source)), notes);
}
