import { inputError, TransientError } from '../domain/errors.ts';
import { hasPersonalRules, needsPersonalKeys, type RulesDocument } from '../domain/rules.ts';
import { environmentKeys, type PersonalKeys } from '../personal-keys.ts';
import type { Database } from '../postgres/database.ts';
import { readRecordKey } from '../postgres/stores/environments.ts';
import { hiddenValues, PersonalValues } from './values.ts';

export const noKeys =
  'Personal values cannot be hashed, encrypted or decrypted without keys: set PERSONAL_KEYS (docs/personal-data.md) and start again';

/** Says which environments cannot take records for want of keys. */
export const missingKeys = (names: readonly string[]) =>
  `PERSONAL_KEYS is not set, and the rules of these environments hash or encrypt personal values: ${names.join(', ')}`;

/** PersonalData gives the personal values of each environment, whose keys it derives once. */
export class PersonalData {
  readonly #db: Database;
  readonly keys: PersonalKeys;
  readonly #values = new Map<number, PersonalValues>();

  constructor(db: Database, keys: PersonalKeys) {
    this.#db = db;
    this.keys = keys;
  }

  get hasKeys(): boolean {
    return this.keys.size > 0;
  }

  /** The values of records to be stored under the rules. @throws TransientError if these need keys and there are none. */
  async valuesFor(environmentId: number, rules: RulesDocument | null): Promise<PersonalValues> {
    if (rules === null || !hasPersonalRules(rules)) return hiddenValues;
    if (!this.hasKeys && needsPersonalKeys(rules)) throw new TransientError(noKeys);
    return this.valuesOf(environmentId);
  }

  /** @throws InputError `invalid_field` if there are no keys, with the place `details` that needs them. */
  requireKeys(details: string): void {
    if (!this.hasKeys) throw inputError('invalid_field', noKeys, details);
  }

  /** @throws InputError `invalid_field` if the rules need keys and there are none. */
  requireKeysFor(rules: RulesDocument): void {
    if (needsPersonalKeys(rules)) this.requireKeys('personal');
  }

  async valuesOf(environmentId: number): Promise<PersonalValues> {
    let values = this.#values.get(environmentId);
    if (values === undefined) {
      values = new PersonalValues(environmentKeys(this.keys, await readRecordKey(this.#db, environmentId)));
      this.#values.set(environmentId, values);
    }
    return values;
  }
}
