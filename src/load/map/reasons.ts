import { MAX_ID_BYTES } from '../../base/limits.ts';
import { capitalise } from '../../base/wording.ts';
import type { Reason, RejectCode } from '../../domain/reject.ts';
import { explainNotUtf8 } from '../../formats/utf8.ts';

const problemTexts: Readonly<Record<string, string>> = {
  invalid_quote: 'A quote is where CSV allows none. Quote the whole cell, and double the quotes in it',
  invalid_escape:
    'A backslash precedes a character that needs no escape, so its meaning is unclear. escape=none reads backslashes as text',
  unclosed_quote: 'A quoted cell that begins here is never closed',
  record_too_large: 'The record is longer than a record may be',
};

export const repeatedHeader: Reason = {
  code: 'repeated_header',
  message: 'The record is the header again',
  column: null,
};

export const notAnObject: Reason = {
  code: 'not_an_object',
  message: 'The record must be a JSON object',
  column: null,
};

export const removesProfile: Reason = {
  code: 'unsupported_kind',
  message:
    'removed marks a profile to remove, and a file does not remove profiles. Delete them by ID, or name the property metadata.removed',
  column: 'removed',
};

export const neitherId: Reason = {
  code: 'missing_id',
  message: 'The record has neither user_id nor company_id',
  column: null,
};

export function idLengthProblem(bytes: number, column: string): Reason | null {
  if (bytes === 0) return { code: 'missing_id', message: `${column} is empty`, column };
  if (bytes <= MAX_ID_BYTES) return null;
  return {
    code: 'id_too_long',
    message: `${column} has ${bytes} bytes; at most ${MAX_ID_BYTES} are allowed`,
    column,
  };
}

/** Reason for refusing a text, which may be a string or a byte string. */
export function textProblem(text: string, column: string): Reason | null {
  if (text.includes('\0')) return { code: 'nul_character', message: `${column} holds U+0000`, column };
  if (text.isWellFormed()) return null;
  return { code: 'lone_surrogate', message: `${column} holds half a surrogate pair`, column };
}

export function missingId(column: string): Reason {
  return { code: 'missing_id', message: `${column} is missing`, column };
}

export function notAnId(column: string): Reason {
  return { code: 'invalid_id', message: `${column} must be a string or a whole number`, column };
}

export function malformed(problem: RejectCode): Reason {
  return { code: problem, message: problemTexts[problem] ?? problem, column: null };
}

export function tooLarge(bytes: number, cutAt: number): Reason {
  const message = `The record has ${bytes} bytes, more than a record may have (raw is cut at ${cutAt})`;
  return { code: 'record_too_large', message, column: null };
}

export function wrongCount(expected: number, count: number): Reason {
  return {
    code: 'wrong_field_count',
    message: `The header has ${expected} columns, this record ${count}${count < expected ? '. ragged=pad fills short records' : ''}`,
    column: null,
  };
}

/**
 * Reason for refusing a record with too many cells, in a file whose last column is mostly empty.
 */
export function shifted(expected: number, count: number): Reason {
  return {
    code: 'wrong_field_count',
    message: `The header has ${expected} columns, this record ${count}. Its surplus cells are empty, but its last column is not, which is empty in most records: a delimiter before it may be surplus. ragged=pad reads the record as it is`,
    column: null,
  };
}

export function notUtf8(record: Buffer, column: string | null = null): Reason {
  return { code: 'invalid_utf8', message: capitalise(explainNotUtf8(record)), column };
}
