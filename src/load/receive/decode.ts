import { ENCODING_SNIFF_BYTES, JSON_SNIFF_BYTES, SNIFF_BYTES } from '../../domain/limits.ts';
import type { SourceFormat } from '../../domain/source.ts';
import { findEncoding } from '../../formats/detect-encoding.ts';
import { detectFormat, isBinary, layoutOfJson } from '../../formats/detect-format.ts';
import type { JsonLayout, SniffedJson } from '../../formats/json-sniff.ts';
import { encodingOfLabel, toUtf8 } from '../../formats/text-encoding.ts';
import { inTurns, turn } from '../../yielding.ts';
import { peek } from './peek.ts';
import type { Unpacked } from './unpack.ts';

const BOM = Buffer.from('\ufeff');

/** Text in UTF-8, or a file of a format that is none, and what it turned out to be. */
export interface Decoded {
  readonly bytes: AsyncIterable<Buffer>;
  readonly format: SourceFormat;
  /** Of what was sent, as `ReadAs` has it. */
  readonly encoding: string | null;
  /** Length of the byte order mark that `bytes` starts with. */
  readonly bomBytes: number;
  /** What a person should know of how the encoding was found. */
  readonly notes: readonly string[];
  /** How its text is laid out; null unless it is JSON or NDJSON. */
  readonly layout: JsonLayout | null;
  /** Of a short file that is one JSON object, no document, and was not said to be NDJSON. */
  readonly object: SniffedJson['object'];
}

/**
 * Makes UTF-8 of what was unpacked, and finds out the format.
 * @throws InputError `unsupported_format`, `invalid_field` for an unknown encoding, and what reading throws.
 */
export async function decode({ plain, hints, archived }: Unpacked): Promise<Decoded> {
  const said = hints.source?.encoding === undefined ? null : encodingOfLabel(hints.source.encoding);
  const noJson = { layout: null, object: null };
  const noText = { bytes: plain.all, encoding: null, bomBytes: 0, notes: [], ...noJson };
  if (archived !== null && archived.sheet !== null) return { ...noText, format: 'xlsx' };
  if (isBinary(plain.head, hints)) return { ...noText, format: detectFormat(plain.head, hints) };
  const sniffed = await peek(plain.all, ENCODING_SNIFF_BYTES);
  await turn();
  const { notes, ...encoding } = findEncoding(sniffed.head, sniffed.isWhole, said);
  const text = await peek(
    toUtf8(encoding.name === 'utf-8' ? sniffed.all : inTurns(sniffed.all), encoding),
    SNIFF_BYTES,
  );
  const bomBytes = text.head.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const format = detectFormat(text.head, hints);
  const about = { encoding: encoding.name, bomBytes, notes };
  if (format !== 'json' && format !== 'ndjson') return { bytes: text.all, format, ...about, ...noJson };
  const json = await peek(text.all, JSON_SNIFF_BYTES);
  // No more than that, so that it does not depend on how the bytes come.
  const head = json.head.subarray(0, JSON_SNIFF_BYTES);
  await turn();
  const { layout, object } = layoutOfJson(head, json.isWhole, format, hints);
  const found = layout.kind === 'document' ? 'json' : 'ndjson';
  return { bytes: json.all, format: found, ...about, layout, object };
}
