/*
 * Personal data at the door: properties that an environment's rules call personal are dropped or hashed before anything of
 * their record is stored. `values.ts` changes single values, `properties.ts` whole records. Promises: the clear value
 * reaches no table; without a key nothing is stored in its place.
 */
import { createHmac } from 'node:crypto';
import { markedNumber, writeJson } from '../formats/json-text.ts';
import type { PersonalAction } from '../rules/document.ts';

const hashed = /^hash:[A-Za-z0-9_-]{43}$/;

/**
 * PersonalValues changes the values of one environment's personal properties. A hash stays as it is, so that a record may
 * pass the door again: a file of an export, a mend, a replay.
 */
export class PersonalValues {
  readonly #key: Buffer | null;

  /** Without a key, as where a file is only looked at, values are hidden. */
  constructor(key: Buffer | null) {
    this.#key = key;
  }

  /** Returns the value to store, undefined for none. `null` removes a property and stays. `marked`: as of `ParsedJson`. */
  change(action: PersonalAction, value: unknown, marked: boolean): unknown {
    if (value === null) return null;
    return action === 'drop' ? undefined : this.hash(textOf(value, marked));
  }

  /** Returns true for a value that this action has made. */
  isChanged(action: PersonalAction, value: unknown): boolean {
    return action === 'hash' && typeof value === 'string' && hashed.test(value);
  }

  /** Returns the hash of a value's text, which is the same for 42 and "42": a cell of CSV has no type. */
  hash(text: string): string {
    if (this.#key === null) return '(hash)';
    if (hashed.test(text)) return text;
    return `hash:${createHmac('sha256', this.#key).update(text).digest('base64url')}`;
  }
}

/** Values as they are shown where a file is only looked at. */
export const hiddenValues = new PersonalValues(null);

function textOf(value: unknown, marked: boolean): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, marked);
}
