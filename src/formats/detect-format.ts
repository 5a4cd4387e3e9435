import { type InputError, inputError } from '../base/errors.ts';
import { recordKeys } from '../domain/entity.ts';
import { readRecordsPath, type SourceFormat, type SourceOptions } from '../domain/source.ts';
import type { ArrayEnvelope } from './json-document.ts';
import { documentAt, type SniffedJson, sniffJson } from './json-sniff.ts';

export interface FormatHints {
  /** Said by the caller in so many words: always followed. */
  readonly format?: SourceFormat | undefined;
  readonly filename?: string | undefined;
  readonly contentType?: string | undefined;
  /** The array key that a JSON body must have; absent: either. */
  readonly envelope?: ArrayEnvelope | undefined;
  /** The caller's other options for reading. */
  readonly source?: SourceOptions | undefined;
  /** Their header → our name: columns that it names are there. */
  readonly map?: Readonly<Record<string, string>> | undefined;
}

interface Binary {
  readonly name: string;
  readonly start: string;
  /** Text may begin with this too, so the next byte decides. */
  readonly binary?: true;
  /** Set for formats that can be read. */
  readonly format?: 'parquet';
}

/** Files that are no text, by how they start. */
const binaries: readonly Binary[] = [
  { name: 'a ZIP archive', start: 'PK\x03\x04' },
  { name: 'an empty ZIP archive', start: 'PK\x05\x06' },
  { name: 'a part of a ZIP archive', start: 'PK\x07\x08' },
  { name: 'a Parquet file', start: 'PAR1', binary: true, format: 'parquet' },
  { name: 'a PDF', start: '%PDF-' },
  { name: 'an old Excel workbook (.xls)', start: '\xd0\xcf\x11\xe0' },
  { name: 'zstd-compressed data', start: '\x28\xb5\x2f\xfd' },
  { name: 'bzip2-compressed data', start: 'BZh91AY&SY' },
  { name: 'xz-compressed data', start: '\xfd7zXZ' },
  { name: 'an Avro file', start: 'Obj\x01' },
  { name: 'an ORC file', start: 'ORC', binary: true },
];

const binaryFormats: ReadonlySet<SourceFormat> = new Set(['parquet', 'xlsx']);

/** Returns true if a file that starts so, or is said to be of such a format, is no text. */
export function isBinary(head: Buffer, { format }: FormatHints): boolean {
  const start = head.toString('latin1');
  const isSaid = format !== undefined && binaryFormats.has(format);
  return isSaid || binaries.some((each) => startsWith(start, each));
}

/** Stands before each record of a JSON text sequence (RFC 7464). */
const RECORD_SEPARATOR = '\u001e';

const envelope = /^\{\s*"(users|companies)"\s*:\s*\[/;

/**
 * Tells what a file is, by its first bytes (unpacked, in UTF-8) and by what is said about it. Content decides against a
 * wrong name only where it is plain: `[` is a JSON array, `{"users":[` one in its envelope, any other `{` NDJSON, or JSON where
 * an envelope is expected. `layoutOfJson` then looks closer.
 * A file that starts with neither is what it is said to be, or CSV. Parquet is known by how it starts, and by nothing else.
 * @throws InputError `unsupported_format` for a binary file, naming what it is.
 */
export function detectFormat(head: Buffer, hints: FormatHints): SourceFormat {
  const start = head.toString('latin1');
  const binary = binaries.find((each) => startsWith(start, each));
  // A request that must have its array is JSON, whatever is in it.
  if (binary?.format !== undefined && hints.envelope === undefined) return binary.format;
  if (binary !== undefined)
    throw unsupported(isLocked(start) ? 'an Office document with a password' : binary.name);
  if (hints.format !== undefined && binaryFormats.has(hints.format))
    throw unsupported(`no file of ${hints.format}`);
  if (hints.format !== undefined) return hints.format;
  const text = start.replace(/^\xef\xbb\xbf/, '').trimStart();
  if (text.startsWith('[') || envelope.test(text)) return 'json';
  const hinted = hintedFormat(hints);
  if (!text.startsWith('{') && !text.startsWith(RECORD_SEPARATOR)) return hinted ?? 'csv';
  return hinted === 'json' && hints.envelope !== undefined ? 'json' : 'ndjson';
}

/** Tells how JSON text is laid out, by its hints and its first bytes in UTF-8. @throws InputError `invalid_field` for `records` */
export function layoutOfJson(
  head: Buffer,
  isWhole: boolean,
  format: 'json' | 'ndjson',
  hints: FormatHints,
): SniffedJson {
  const records = hints.source?.records;
  if (records !== undefined) return documentAt(readRecordsPath(records));
  if (format === 'json') return documentAt(null);
  const said = hints.format ?? hintedFormat(hints);
  const hinted = said === 'json' || said === 'ndjson' ? said : null;
  return sniffJson(head, isWhole, { hinted, isOfRecord: recordKeyTest(hints) });
}

/** Returns true if an object with a key may be a record: it is one of ours, or the map makes it one. */
export function recordKeyTest({ map = {} }: FormatHints): (key: string) => boolean {
  return (key) => recordKeys.includes((Object.hasOwn(map, key) ? map[key] : undefined) ?? key);
}

/** A document with a password starts as an old one does; what is encrypted has a name in its directory. */
function isLocked(head: string): boolean {
  return head.includes('E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0');
}

export function hasDataName(name: string): boolean {
  return /\.(?:csv|tsv|tab|txt|ndjson|jsonl|json|parquet|xlsx|xlsm|zip)(?:\.gz)?$/i.test(name);
}

function startsWith(head: string, { start, binary }: Binary): boolean {
  return head.startsWith(start) && (binary !== true || head.charCodeAt(start.length) < 32);
}

function hintedFormat(hints: FormatHints): SourceFormat | null {
  const name = (hints.filename ?? '').toLowerCase().replace(/\.gz$/, '');
  const type = (hints.contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (/\.(csv|tsv|txt)$/.test(name)) return 'csv';
  if (/\.(ndjson|jsonl)$/.test(name)) return 'ndjson';
  if (name.endsWith('.json')) return 'json';
  if (/^(text|application)\/(x-)?csv$/.test(type) || /^text\/(tab|comma)-separated-values$/.test(type))
    return 'csv';
  if (isNdjsonType(type)) return 'ndjson';
  return type === 'application/json' ? 'json' : null;
}

export function isNdjsonType(mediaType: string): boolean {
  return /^(application|text)\/(x-)?(ndjson|jsonl|jsonlines)$/.test(mediaType);
}

export function unsupported(seen: string): InputError {
  return inputError(
    'unsupported_format',
    `This is ${seen}; send CSV, NDJSON, a JSON array, an Excel workbook (.xlsx) or Parquet, as it is, gzip or in a ZIP archive`,
  );
}
