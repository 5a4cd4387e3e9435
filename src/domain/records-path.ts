import { inputError } from './errors.ts';
import { MAX_RECORDS_PATH } from './limits.ts';

/** The keys and positions that lead to the array of records in a JSON document; empty: the document itself. */
export type RecordsPath = readonly string[];

/**
 * `data.users`: keys with dots between. A backslash makes an ordinary character of the dot or backslash after it. In an array,
 * the key is the position of an element, from 0. Null for what is no path.
 */
export function parseRecordsPath(text: string): RecordsPath | null {
  const keys: string[] = [];
  let key = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '.') {
      keys.push(key);
      key = '';
    } else if (character !== '\\') key += character;
    else if (++at < text.length) key += text.charAt(at);
    else return null;
  }
  keys.push(key);
  return keys.includes('') || keys.length > MAX_RECORDS_PATH ? null : keys;
}

/** @throws InputError `invalid_field`. */
export function readRecordsPath(text: string): RecordsPath {
  const path = parseRecordsPath(text);
  if (path !== null) return path;
  const message = `records must be keys with dots between, such as data.users, ${MAX_RECORDS_PATH} at most`;
  throw inputError('invalid_field', message, 'records');
}

/** Writes a path as `parseRecordsPath` reads it. */
export function recordsPathText(path: RecordsPath): string {
  return path.map((key) => key.replace(/[.\\]/g, '\\$&')).join('.');
}
