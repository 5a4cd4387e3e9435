import { MAX_PROPERTY_NAME_CHARS, MAX_SHAPE_CHARS } from '../base/limits.ts';

const maxShapedChars = 256;

export const rejectCodes = [
  'missing_id',
  'invalid_id',
  'id_too_long',
  'wrong_field_count',
  'invalid_quote',
  'unclosed_quote',
  'invalid_escape',
  'repeated_header',
  'record_too_large',
  'value_too_large',
  'invalid_utf8',
  'nul_character',
  'lone_surrogate',
  'invalid_json',
  'not_an_object',
  'invalid_type',
  'invalid_property_name',
  'forbidden_property',
  'too_deep',
  'number_out_of_range',
  'unknown_event_type',
  'unexpected_event_row',
  'missing_event_name',
  'invalid_date',
  'unsupported_kind',
  'breaks_rule',
  'suppressed',
  'refused_by_database',
  'changed_since',
] as const;

export type RejectCode = (typeof rejectCodes)[number];

export interface Reason {
  readonly code: RejectCode;
  readonly message: string;
  /** Column or property path, or `null` for the whole record. */
  readonly column: string | null;
  /** True if no part of the record may be stored. */
  readonly isSecret?: true;
}

export interface Reject extends Reason {
  readonly row: number;
  readonly line: number;
  /** Position in the stored file, from 0. */
  readonly byteOffset: number;
  /** The record as stored, or as received if rewriting it failed. At most MAX_REJECT_RAW_BYTES. */
  readonly raw: Uint8Array;
}

/**
 * Columns or keys that rejects have in addition to those of the record: job, position and reason.
 * If the record could not be split, `sluice_raw` or `sluice_raw_base64` contains it. Loads do not
 * store these columns, so a person can correct and load the file.
 */
export const rejectColumns = [
  'sluice_job',
  'sluice_row',
  'sluice_line',
  'sluice_error_code',
  'sluice_message',
  'sluice_column',
  'sluice_raw',
  'sluice_raw_base64',
] as const;

type RejectColumn = (typeof rejectColumns)[number];

/** Job that refused the record, and the record's number in its file. */
export const rejectJobKey = 'sluice_job' satisfies RejectColumn;
export const rejectRowKey = 'sluice_row' satisfies RejectColumn;

// These keys are only in files rewritten on receipt. `sluice_profiles` contains implied changes to
// profiles, which are not counted as records. If a record could not be rewritten, `sluice_refused`
// contains the reason, and `sluice_raw` contains the original text.
export const profilesKey = 'sluice_profiles';
export const refusedKey = 'sluice_refused';

export const reservedNames: readonly string[] = [...rejectColumns, profilesKey, refusedKey];
const reserved: ReadonlySet<string> = new Set(reservedNames);

export function isRejectColumn(name: string): boolean {
  return reserved.has(name);
}

// Refused records with the same code, column and shape have one cause. One correction usually fixes
// them.

export interface CauseKey {
  readonly code: RejectCode;
  /**
   * Column with the fault. `null` if the whole record is faulty, or if all columns have the same
   * cause.
   */
  readonly column: string | null;
  /** Shape of the refused value. Empty if the code alone identifies the cause. */
  readonly shape: string;
}

export interface RejectCause {
  readonly cause: number;
  readonly shape: string;
}

/**
 * Returns the column of a cause. Returns `null` for invalid UTF-8, because one correction applies
 * to all columns.
 */
export function causeColumn({ code, column }: Pick<Reject, 'code' | 'column'>): string | null {
  return code === 'invalid_utf8' ? null : column;
}

/**
 * Number of hexadecimal digits in the id of a cause. A JavaScript number can hold 13 digits (52
 * bits) exactly.
 */
export const causeDigits = 13;

export function writeCauseId(cause: number): string {
  return cause.toString(16).padStart(causeDigits, '0');
}

export function readCauseId(text: string): number | null {
  return text.length === causeDigits && /^[0-9a-f]+$/.test(text) ? Number.parseInt(text, 16) : null;
}

const nullWords: ReadonlySet<string> = new Set([
  'n/a',
  '#n/a',
  'n.a.',
  'na',
  'null',
  '(null)',
  '<null>',
  '\\n',
  'nil',
  'none',
  'nan',
  'undefined',
  '-',
  '--',
  '—',
  '?',
  '0000-00-00',
  '0000-00-00 00:00:00',
]);
const longestNullWord = Math.max(...[...nullWords].map((word) => word.length));

export function isNullWord(text: string): boolean {
  return text.length <= 2 * longestNullWord && nullWords.has(text.trim().toLowerCase());
}

export const emptyShape = 'empty';
const blankShape = 'blanks';

const part = /[\p{L}\p{M}\p{N}]+|\s+|[^\x21-\x7e]|(.)\1{3,}/gsu;

/**
 * Returns the shape of a value. Digits become 9 and words become `a`. So `31/12/2026` and
 * `1/2/2025` both become `99/99/9999`. Words for "no value" remain, in lower case. A shape is
 * short, and ASCII except for `␠`, `¤` and `…`.
 */
export function shapeOf(value: string): string {
  if (value === '') return emptyShape;
  if (isNullWord(value)) return shorten(value.trim().toLowerCase());
  const text = value.slice(0, maxShapedChars);
  if (text.trim() === '') return blankShape;
  const end = text.length;
  const shape = text.replace(part, (piece: string, _repeated: string | undefined, at: number) => {
    const first = piece.charCodeAt(0);
    if (/^\s/.test(piece)) return at === 0 || at + piece.length === end ? '␠' : ' ';
    if (/^[\p{L}\p{M}\p{N}]/u.test(piece)) return wordShape(piece);
    return first > 0x20 && first < 0x7f ? `${piece[0]}…` : '¤';
  });
  const words = shape.replace(/\ba(?: a\b)+/g, 'a');
  return shorten(value.length > maxShapedChars ? `${words}…` : words);
}

/** In a time, the letters T and Z remain. */
function wordShape(word: string): string {
  if (/^\d+$/.test(word)) return digits(word.length);
  if (/^[\p{L}\p{M}]+$/u.test(word)) return 'a';
  const time = /^(\d+)(T?)(\d*)(Z?)$/.exec(word);
  if (time === null) return 'a9';
  const [, before = '', t = '', after = '', z = ''] = time;
  return digits(before.length) + t + (after === '' ? '' : digits(after.length)) + z;
}

/** One digit has the same shape as two, because days and hours have one or two digits. */
function digits(count: number): string {
  if (count > 4) return '9…';
  return '9'.repeat(Math.max(2, count));
}

function shorten(shape: string): string {
  return shape.length <= MAX_SHAPE_CHARS ? shape : `${shape.slice(0, MAX_SHAPE_CHARS - 1)}…`;
}

/**
 * Returns the shape of the first two and the last two characters. It is used for long values, such
 * as JSON.
 */
export function outlineOf(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return emptyShape;
  const start = trimmed.slice(0, 2);
  const end = trimmed.slice(Math.max(2, trimmed.length - 2));
  return end === '' ? outlineOfEnd(start) : `${outlineOfEnd(start)}…${outlineOfEnd(end)}`;
}

function outlineOfEnd(text: string): string {
  return text
    .replace(/[\p{L}\p{M}]+/gu, 'a')
    .replace(/\p{N}+/gu, '9')
    .replace(/\s+/g, ' ')
    .replace(/[^\x20-\x7e]/gu, '¤');
}

export const forbiddenNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export function propertyNameProblem(name: string): Reason | null {
  if (forbiddenNames.has(name)) {
    return { code: 'forbidden_property', message: `${name} cannot be a property name`, column: name };
  }
  if (name.length === 0 || name.length > MAX_PROPERTY_NAME_CHARS) {
    const shown = name.length > 40 ? `${name.slice(0, 40)}…` : name;
    return {
      code: 'invalid_property_name',
      message: `A property name has 1 to ${MAX_PROPERTY_NAME_CHARS} characters, this one ${name.length}`,
      column: shown,
    };
  }
  if (name.includes('\0')) {
    return {
      code: 'nul_character',
      message: 'A property name holds U+0000',
      column: name.replaceAll('\0', '␀'),
    };
  }
  if (!name.isWellFormed()) {
    return {
      code: 'lone_surrogate',
      message: 'A property name holds half a surrogate pair',
      column: name.toWellFormed(),
    };
  }
  return null;
}
