import { hkdfSync } from 'node:crypto';
import { readRecordKey } from '../access/environment-store.ts';
import { inputError, TransientError } from '../base/errors.ts';
import type { Database } from '../postgres/database.ts';
import { hasHashes, hasPersonalRules, type RulesDocument } from '../rules/document.ts';
import { hiddenValues, PersonalValues } from './values.ts';

const noKey =
  'Personal values cannot be hashed without a key: set PERSONAL_KEY (docs/personal-data.md) and start again';

/** Says which environments cannot take records without a key. */
export const missingKey = (names: readonly string[]) =>
  `PERSONAL_KEY is not set, and the rules of these environments hash personal values: ${names.join(', ')}`;

const KEY_BYTES = 32;

/** PersonalData gives the personal values of each environment, whose key it derives once. */
export class PersonalData {
  readonly #db: Database;
  readonly #secret: string | null;
  readonly #values = new Map<number, PersonalValues>();

  constructor(db: Database, secret: string | null) {
    this.#db = db;
    this.#secret = secret;
  }

  /** Returns the values of records to be stored under the rules. @throws TransientError if these need a key and there is none. */
  async valuesFor(environmentId: number, rules: RulesDocument | null): Promise<PersonalValues> {
    if (rules === null || !hasPersonalRules(rules)) return hiddenValues;
    if (this.#secret === null && hasHashes(rules)) throw new TransientError(noKey);
    return this.valuesOf(environmentId);
  }

  /** @throws InputError `invalid_field` if the rules need a key and there is none. */
  requireKeyFor(rules: RulesDocument): void {
    if (this.#secret === null && hasHashes(rules)) throw inputError('invalid_field', noKey, 'personal');
  }

  async valuesOf(environmentId: number): Promise<PersonalValues> {
    let values = this.#values.get(environmentId);
    if (values === undefined) {
      values = new PersonalValues(await this.#keyOf(environmentId));
      this.#values.set(environmentId, values);
    }
    return values;
  }

  /** Derives the key of an environment: what leaks in one environment says nothing of another. */
  async #keyOf(environmentId: number): Promise<Buffer | null> {
    if (this.#secret === null) return null;
    const salt = await readRecordKey(this.#db, environmentId);
    return Buffer.from(hkdfSync('sha256', this.#secret, salt, 'personal hash', KEY_BYTES));
  }
}
