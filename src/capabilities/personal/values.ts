import { createHmac } from 'node:crypto';
import { markedNumber, writeJson } from '../../formats/json-text.ts';

/** The text that is stored in place of a personal value. */
export const personalActions = ['drop', 'hash'] as const;
export type PersonalAction = (typeof personalActions)[number];

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

  /** Returns the value to store, undefined for none. `null` removes a property and stays. Numbers may be marked, as of `ParsedJson`. */
  change(action: PersonalAction, value: unknown): unknown {
    if (value === null) return null;
    return action === 'drop' ? undefined : this.hash(textOf(value));
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, true);
}
