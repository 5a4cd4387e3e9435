import { createHmac } from 'node:crypto';
import { markedNumber, writeJson } from '../../formats/json-text.ts';

export const personalActions = ['drop', 'hash'] as const;
export type PersonalAction = (typeof personalActions)[number];

const hashed = /^hash:[A-Za-z0-9_-]{43}$/;

/**
 * Drops or hashes values. A hash is not hashed again. A corrected record is processed twice, and
 * its hashes must remain the same.
 */
export class PersonalValues {
  readonly #key: Buffer | null;

  constructor(key: Buffer | null) {
    this.#key = key;
  }

  /**
   * Returns the value to store, or `undefined` if it is dropped. `null` is kept, because it removes
   * a property.
   */
  change(action: PersonalAction, value: unknown): unknown {
    if (value === null) return null;
    return action === 'drop' ? undefined : this.hash(textOf(value));
  }

  isChanged(action: PersonalAction, value: unknown): boolean {
    return action === 'hash' && typeof value === 'string' && hashed.test(value);
  }

  /** 42 and "42" have the same hash, because CSV cells do not have types. */
  hash(text: string): string {
    if (this.#key === null) return '(hash)';
    if (hashed.test(text)) return text;
    return `hash:${createHmac('sha256', this.#key).update(text).digest('base64url')}`;
  }
}

/**
 * Shows `(hash)` in place of a hash. Used by callers that store nothing, or whose rules hash
 * nothing.
 */
export const hiddenValues = new PersonalValues(null);

function textOf(value: unknown): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, true);
}
