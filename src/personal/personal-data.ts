import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { readRecordKey } from '../postgres/stores/environments.ts';
import { environmentKeys, type PersonalKeys } from './keys.ts';
import { PersonalValues } from './values.ts';

/** PersonalData gives the personal values of each environment, whose keys it derives once. */
export class PersonalData {
  readonly #db: Database;
  readonly #keys: PersonalKeys;
  readonly #values = new Map<number, PersonalValues>();

  constructor(db: Database, keys: PersonalKeys) {
    this.#db = db;
    this.#keys = keys;
  }

  get hasKeys(): boolean {
    return this.#keys.size > 0;
  }

  /** @throws InputError `invalid_field` if there are no keys, with the place `details` that needs them. */
  requireKeys(details: string): void {
    if (this.hasKeys) return;
    const message =
      'It needs keys for personal data: set PERSONAL_KEYS (docs/personal-data.md) and start again';
    throw inputError('invalid_field', message, details);
  }

  async valuesOf(environmentId: number): Promise<PersonalValues> {
    let values = this.#values.get(environmentId);
    if (values === undefined) {
      values = new PersonalValues(environmentKeys(this.#keys, await readRecordKey(this.#db, environmentId)));
      this.#values.set(environmentId, values);
    }
    return values;
  }
}
