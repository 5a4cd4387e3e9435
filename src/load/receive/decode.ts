import { inputError } from '../../base/errors.ts';
import { MiB, SNIFF_BYTES } from '../../base/limits.ts';
import { inTurns, turn } from '../../base/yielding.ts';
import type { SourceFormat } from '../../domain/source.ts';
import { detectFormat, isBinary, layoutOfJson, recordKeyTest } from '../../formats/detect-format.ts';
import { arrayToNdjson, documentToNdjson } from '../../formats/json-document.ts';
import { isPlainLines, plainLinesOf, sequenceToNdjson } from '../../formats/json-lines.ts';
import type { JsonLayout, SniffedJson } from '../../formats/json-sniff.ts';
import { encodingOfLabel, findEncoding, toUtf8 } from '../../formats/text-encoding.ts';
import { peek } from './intake.ts';
import {
  type ByteCounter,
  type Conversion,
  type ConvertWhole,
  inflateGuard,
  type TemporaryCopies,
  textOf,
  type Unpacked,
  type UnpackHints,
} from './unpack.ts';

const ENCODING_SNIFF_BYTES = MiB;
const JSON_SNIFF_BYTES = MiB;
/**
 * Maximum ratio of unpacked to sent bytes. It is high, because Parquet and workbooks store repeated
 * values only once.
 */
const MAX_COLUMNAR_RATIO = 2_000;

const BOM = Buffer.from('\ufeff');
const newline = 0x0a;
const openObject = 0x7b;

export interface Decoded {
  readonly bytes: AsyncIterable<Buffer>;
  readonly format: SourceFormat;
  /** See `ReadAs`. */
  readonly encoding: string | null;
  /** Length of the byte order mark at the start of `bytes`. */
  readonly bomBytes: number;
  readonly notes: readonly string[];
  /** Layout of a JSON file. `null` for other formats. */
  readonly layout: JsonLayout | null;
  /** Set if the file is short and is a single JSON object, which may be a record. */
  readonly object: SniffedJson['object'];
}

/** @throws InputError `unsupported_format`, `invalid_field` (encoding), and errors from reading */
export async function decode({ plain, hints, archived }: Unpacked): Promise<Decoded> {
  const requestedEncoding =
    hints.source?.encoding === undefined ? null : encodingOfLabel(hints.source.encoding);
  const noJson = { layout: null, object: null };
  const noText = { bytes: plain.all, encoding: null, bomBytes: 0, notes: [], ...noJson };
  if (archived !== null && archived.sheet !== null) return { ...noText, format: 'xlsx' };
  if (isBinary(plain.head, hints)) return { ...noText, format: detectFormat(plain.head, hints) };
  const sniffed = await peek(plain.all, ENCODING_SNIFF_BYTES);
  await turn();
  const { name: encoding, notes } = findEncoding(sniffed.head, sniffed.isWhole, requestedEncoding);
  const text = await peek(
    toUtf8(encoding === 'utf-8' ? sniffed.all : inTurns(sniffed.all), encoding),
    SNIFF_BYTES,
  );
  const bomBytes = text.head.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const format = detectFormat(text.head, hints);
  const textFacts = { encoding, bomBytes, notes };
  if (format !== 'json' && format !== 'ndjson') return { bytes: text.all, format, ...textFacts, ...noJson };
  const json = await peek(text.all, JSON_SNIFF_BYTES);
  // The number of bytes is fixed, so that the result does not depend on the sizes of buffers.
  const head = json.head.subarray(0, JSON_SNIFF_BYTES);
  await turn();
  const { layout, object } = layoutOfJson(head, json.isWhole, format, hints);
  const jsonFormat = layout.kind === 'document' ? 'json' : 'ndjson';
  return { bytes: json.all, format: jsonFormat, ...textFacts, layout, object };
}

interface RewriteContext {
  readonly temporaryCopies: TemporaryCopies;
  readonly convert: ConvertWhole;
  readonly hints: UnpackHints;
  /** The number of sent bytes limits how much the file may grow when it is unpacked. */
  readonly sent: ByteCounter;
  readonly maxInflatedBytes: number;
  readonly notes: string[];
}

/** CSV and plain NDJSON stay as they are. Workbooks become CSV, everything else NDJSON. */
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
      if (layout.path === null && hints.envelope !== undefined)
        return withSomeObject(arrayToNdjson(pieces, hints.envelope), hints.envelope);
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

/**
 * Yields the lines as they are.
 * @throws InputError `invalid_field` at the end if no line begins with an object
 */
async function* withSomeObject(lines: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  let hasObject = false;
  let last: number | undefined;
  for await (const bytes of lines) {
    for (let at = 0; !hasObject && at < bytes.length; at = bytes.indexOf(newline, at) + 1 || bytes.length)
      hasObject = bytes[at] === openObject && (at > 0 || (last ?? newline) === newline);
    last = bytes.at(-1);
    yield bytes;
  }
  if (last !== undefined && !hasObject)
    throw inputError('invalid_field', `No item of ${name} is an object`, name);
}

async function* withoutFirst(source: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let remaining = count;
  for await (const bytes of source) {
    const skipped = Math.min(remaining, bytes.length);
    remaining -= skipped;
    if (bytes.length > skipped) yield bytes.subarray(skipped);
  }
}

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

/**
 * Converts a file in a sandbox. Receives the complete file first, because a slow sender must not
 * occupy a sandbox.
 */
async function* convertAside(
  format: Conversion['format'],
  source: AsyncIterable<Buffer>,
  { temporaryCopies, convert, notes }: RewriteContext,
): AsyncGenerator<Buffer> {
  yield* textOf(convert(format, await temporaryCopies.keep(source)), notes);
}
