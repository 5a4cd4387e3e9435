/*
 * Personal properties are dropped or hashed before their record is stored, so no table contains the
 * original value. The capability `rules` determines which properties are personal. When a load with
 * personal properties ends, its file is removed. The load's rejects are stored without their text.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import { readRecordKey } from '../../access/environment-store.ts';
import { inputError, TransientError } from '../../base/errors.ts';
import type { Capability } from '../../capability.ts';
import {
  isObject,
  type JsonObject,
  markedNumber,
  parseJsonText,
  writeJson,
} from '../../formats/json-text.ts';
import type { JudgeContext } from '../../ingest/records.ts';
import { addPersonalLoad, isPersonalLoad } from './store.ts';

export const PERSONAL_USE = 'personal';

export const personal: Capability = {
  name: PERSONAL_USE,
  secrets: {
    use: PERSONAL_USE,
    isSecret: isPersonalLoad,
    gone: 'The file of this job was removed when the job ended, because the rules call something personal',
  },
};

/**
 * Marks a load, so that the text of its records is not stored. Must be called in the transaction
 * that accepts the load.
 */
export const keepNoText = addPersonalLoad;

const noKey =
  'Personal values cannot be hashed without a key: set PERSONAL_KEY (docs/personal-data.md) and start again';

export const missingKey = (names: readonly string[]) =>
  `PERSONAL_KEY is not set, and the rules of these environments hash personal values: ${names.join(', ')}`;

/** @throws InputError `invalid_field` if the actions need a key and there is none */
export function requireKeyFor(secret: string | null, actions: readonly PersonalAction[]): void {
  if (secret === null && actions.includes('hash')) throw inputError('invalid_field', noKey, 'personal');
}

const KEY_BYTES = 32;

/**
 * The key is derived for each environment, so a leak in one environment reveals nothing about
 * another one.
 * @throws TransientError if the actions need a key and there is none
 */
export async function openPersonal(
  { db, config: { personalKey } }: JudgeContext,
  environmentId: number,
  actions: readonly PersonalAction[],
): Promise<PersonalValues> {
  if (!actions.includes('hash')) return hiddenValues;
  if (personalKey === null) throw new TransientError(noKey);
  const salt = await readRecordKey(db, environmentId);
  return new PersonalValues(Buffer.from(hkdfSync('sha256', personalKey, salt, 'personal hash', KEY_BYTES)));
}

/**
 * Personal properties of one entity. The action for `address.street` applies to the member `street`
 * of `address` (an object, a list of objects or JSON text) and to a property named
 * `address.street`.
 */
export class PersonalProperties {
  readonly #actions = new Map<string, PersonalAction>();
  /** Names of objects, or of lists of objects, whose members have actions. */
  readonly containers = new Set<string>();
  readonly #values: PersonalValues;

  constructor(
    actions: Readonly<Record<string, { readonly personal?: PersonalAction }>>,
    values = hiddenValues,
  ) {
    this.#values = values;
    for (const [name, { personal }] of Object.entries(actions)) {
      if (personal === undefined) continue;
      this.#actions.set(name, personal);
      for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
        this.containers.add(name.slice(0, dot));
    }
  }

  get isNone(): boolean {
    return this.#actions.size === 0;
  }

  /** True if the property, or at least one of its members, is personal. */
  concerns(name: string): boolean {
    return this.containers.has(name) || this.#actionOf(name) !== undefined;
  }

  /**
   * In `name`, dots separate objects and members. If the property itself has no action, the
   * innermost object around it that has an action decides.
   */
  #actionOf(name: string): PersonalAction | undefined {
    for (let end = name.length; end > 0; end = name.lastIndexOf('.', end - 1)) {
      const action = this.#actions.get(name.slice(0, end));
      if (action !== undefined) return action;
    }
    return undefined;
  }

  isChanged(name: string, value: unknown): boolean {
    const action = this.#actionOf(name);
    return action !== undefined && this.#values.isChanged(action, value);
  }

  /** Returns `undefined` if the property is dropped. Numbers may be marked as in `ParsedJson`. */
  change(name: string, value: unknown): unknown {
    const action = this.#actionOf(name);
    if (action !== undefined) return this.#values.change(action, value);
    if (!this.containers.has(name)) return value;
    if (Array.isArray(value)) return value.map((each) => this.change(name, each));
    if (isObject(value)) return this.changeAll(value, `${name}.`);
    // A CSV cell may contain the object as text. Text that cannot be parsed is dropped, because it
    // may contain personal data.
    if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
    const parsed = parseJsonText(value);
    return 'code' in parsed ? undefined : this.change(name, parsed.value);
  }

  changeAll(object: JsonObject, under = ''): JsonObject {
    const changed = Object.entries(object).map(
      ([name, value]) => [name, this.change(under + name, value)] as const,
    );
    return Object.fromEntries(changed.filter(([, value]) => value !== undefined));
  }
}

export const personalActions = ['drop', 'hash'] as const;
export type PersonalAction = (typeof personalActions)[number];

const hashed = /^hash:[A-Za-z0-9_-]{43}$/;

/** A hash is not hashed again, because a corrected record is processed twice. */
export class PersonalValues {
  readonly #key: Buffer | null;

  constructor(key: Buffer | null) {
    this.#key = key;
  }

  /** Returns `undefined` if the value is dropped. `null` is kept, because it removes a property. */
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
 * Shows `(hash)` in place of a hash. This is for callers that store nothing, or whose rules hash
 * nothing.
 */
const hiddenValues = new PersonalValues(null);

function textOf(value: unknown): string {
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, true);
}
