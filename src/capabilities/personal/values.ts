import { createHmac } from 'node:crypto';
import { markedNumber, writeJson } from '../../formats/json-text.ts';

export const personalActions = ['drop', 'hash'] as const;
export type PersonalAction = (typeof personalActions)[number];

const hashed = /^hash:[A-Za-z0-9_-]{43}$/;

/** A hash stays as it is, so that a record may pass again: in an export, a mend, a replay. */
export class PersonalValues {
  readonly #key: Buffer | null;

  /** Without a key, as in inspections, values are hidden. */
  constructor(key: Buffer | null) {
    this.#key = key;
  }

  /** Returns the value to store, `undefined` for none. `null` stays: it removes a property. */
  change(action: PersonalAction, value: unknown): unknown {
    if (value === null) return null;
    return action === 'drop' ? undefined : this.hash(textOf(value));
  }

  isChanged(action: PersonalAction, value: unknown): boolean {
    return action === 'hash' && typeof value === 'string' && hashed.test(value);
  }

  /** Hashes the value's text, the same for 42 and "42": a CSV cell has no type. */
  hash(text: string): string {
    if (this.#key === null) return '(hash)';
    if (hashed.test(text)) return text;
    return `hash:${createHmac('sha256', this.#key).update(text).digest('base64url')}`;
  }
}

/** For inspections, which store nothing. */
export const hiddenValues = new PersonalValues(null);

function textOf(value: unknown): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, true);
}
