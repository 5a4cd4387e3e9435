import { type InputError, inputError } from '../base/errors.ts';
import { recordKeys } from '../domain/entity.ts';
import { readRecordsPath, type SourceFormat, type SourceOptions } from '../domain/source.ts';
import type { ArrayEnvelope } from './json-document.ts';
import { documentAt, type SniffedJson, sniffJson } from './json-sniff.ts';

export interface FormatHints {
  /** Takes precedence. */
  readonly format?: SourceFormat | undefined;
  readonly filename?: string | undefined;
  readonly contentType?: string | undefined;
  /** Key under which the array in a JSON body must be. Default: any key. */
  readonly envelope?: ArrayEnvelope | undefined;
  readonly source?: SourceOptions | undefined;
  /** Maps names in the header to our names. Every column named here must exist. */
  readonly map?: Readonly<Record<string, string>> | undefined;
}

interface Binary {
  readonly name: string;
  readonly start: string;
  /** True if text may also begin with these bytes. The next byte then decides. */
  readonly binary?: true;
  readonly format?: 'parquet';
}

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

export function isBinary(head: Buffer, { format }: FormatHints): boolean {
  const start = head.toString('latin1');
  const isBinaryHint = format !== undefined && binaryFormats.has(format);
  return isBinaryHint || binaries.some((each) => startsWith(start, each));
}

/** Character that precedes each record of a JSON text sequence (RFC 7464). */
const RECORD_SEPARATOR = '\u001e';

const envelope = /^\{\s*"(users|companies)"\s*:\s*\[/;

/**
 * Detects the format of the first bytes (unpacked, in UTF-8). Only obvious content overrides the
 * hints. `[` is JSON, and `{"users":[` is an envelope. Any other `{` is NDJSON (see
 * `layoutOfJson`), or JSON if an envelope is expected. Other text is CSV unless a hint states
 * another format. A hint alone does not make a file Parquet.
 * @throws InputError `unsupported_format` that names the kind of a binary file
 */
export function detectFormat(head: Buffer, hints: FormatHints): SourceFormat {
  const start = head.toString('latin1');
  const binary = binaries.find((each) => startsWith(start, each));
  // With an envelope, the body is JSON even if it begins like Parquet.
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

/**
 * Detects the layout of JSON, such as lines or a document.
 * @throws InputError `invalid_field` if `records` is not a valid path
 */
export function layoutOfJson(
  head: Buffer,
  isWhole: boolean,
  format: 'json' | 'ndjson',
  hints: FormatHints,
): SniffedJson {
  const records = hints.source?.records;
  if (records !== undefined) return documentAt(readRecordsPath(records));
  if (format === 'json') return documentAt(null);
  const hint = hints.format ?? hintedFormat(hints);
  const hinted = hint === 'json' || hint === 'ndjson' ? hint : null;
  return sniffJson(head, isWhole, { hinted, isOfRecord: recordKeyTest(hints) });
}

/** Accepts our keys, and keys that the map translates to ours. */
export function recordKeyTest({ map = {} }: FormatHints): (key: string) => boolean {
  return (key) => recordKeys.includes((Object.hasOwn(map, key) ? map[key] : undefined) ?? key);
}

/** A workbook with a password begins like an old `.xls`, but contains `EncryptedPackage`. */
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

export function unsupported(kind: string): InputError {
  return inputError(
    'unsupported_format',
    `This is ${kind}; send CSV, NDJSON, a JSON array, an Excel workbook (.xlsx) or Parquet, as it is, gzip or in a ZIP archive`,
  );
}
