import { MAX_NUMBER_EXPONENT } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { fromByteString } from './byte-string.ts';

/**
 * JSON text → value without losing a digit. JavaScript numbers keep 15 digits: longer ones, and any with an
 * exponent, are carried through as marked strings and unmarked when the value is written again.
 */
export interface ParsedJson {
  readonly value: unknown;
  /** Strings inside are text (true) or byte strings (false). */
  readonly decoded: boolean;
  /** Numbers inside may be marked. */
  readonly marked: boolean;
}

/** A number of 16 digits or more, or with an exponent, where a value may stand. Strings may match too: that costs time only. */
const inexact = /(?:^|[:,[\s])-?(?:[\d.]{16,}|[\d.]+[eE])/;
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Begins no string that a caller could have sent: drawn anew by every process. */
const mark = `\u0001${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}#`;
const markedString = new RegExp(`"\\\\u0001${mark.slice(1)}([^"]*)"`, 'g');

/** Parses a byte string. Returns the reason if it is not JSON. */
export function parseJson(bytes: string): ParsedJson | Reason {
  const decoded = bytes.includes('\\u');
  const text = decoded ? fromByteString(bytes) : bytes;
  try {
    const value: unknown = JSON.parse(text);
    if (!inexact.test(text)) return { value, decoded, marked: false };
    return { value: JSON.parse(text.replace(stringOrNumber, markInexact)), decoded, marked: true };
  } catch (error) {
    return { code: 'invalid_json', message: describe(error), column: null };
  }
}

function markInexact(token: string): string {
  if (token.startsWith('"')) return token;
  const digits = token.replace(/^-?0*\.?0*|[-.]|[eE].*$/g, '').length;
  return digits > 15 || /[eE]/.test(token) ? `"\\u0001${mark.slice(1)}${token}"` : token;
}

/** The text of a value from `parseJson`. */
export function writeJson(value: unknown, marked: boolean): string {
  const text = JSON.stringify(value);
  return marked ? text.replace(markedString, '$1') : text;
}

/** The source text of a marked number, or null for any other value. */
export function markedNumber(value: unknown): string | null {
  return typeof value === 'string' && value.startsWith(mark) ? value.slice(mark.length) : null;
}

/** Whether jsonb would take the number without swelling; its power of ten must stay in proportion. */
export function exponentInRange(number: string): boolean {
  const exponent = /[eE]([+-]?\d+)$/.exec(number)?.[1];
  return exponent === undefined || Math.abs(Number(exponent)) <= MAX_NUMBER_EXPONENT;
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  // The engine's message may quote the input at length; the raw record stands beside it anyway.
  return `not valid JSON: ${message.length > 120 ? `${message.slice(0, 120)}…` : message}`.replaceAll(
    '\0',
    '␀',
  );
}
