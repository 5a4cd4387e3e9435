/*
 * Personal data at the door: properties that an environment calls personal are dropped or hashed before anything of their record is
 * stored. `values.ts` changes single values. Which properties these are is up to others (`rules`).
 * Promises: the clear value reaches no table; without a key nothing is stored in its place; the file of such a load is removed when
 * the load ends, and of its refused records only place and reason are kept.
 */
import { hkdfSync } from 'node:crypto';
import { readRecordKey } from '../../access/environment-store.ts';
import { inputError, TransientError } from '../../base/errors.ts';
import type { Capability } from '../../capability.ts';
import { isObject, type JsonObject, parseJsonText } from '../../formats/json-text.ts';
import type { JudgeContext } from '../../ingest/judge-seam.ts';
import { addPersonalLoad, isPersonalLoad } from './store.ts';
import { hiddenValues, type PersonalAction, PersonalValues } from './values.ts';

/** The name of the capability, by which environments use it. */
export const PERSONAL_USE = 'personal';

export const personal: Capability = {
  name: PERSONAL_USE,
  secrets: {
    use: PERSONAL_USE,
    isSecret: isPersonalLoad,
    gone: 'the file of this job was removed when the job ended, because the rules call something personal',
  },
};

/** Has no text of a load kept. Call it in the transaction that accepts the load. */
export const keepNoText = addPersonalLoad;

const noKey =
  'Personal values cannot be hashed without a key: set PERSONAL_KEY (docs/personal-data.md) and start again';

/** Says which environments cannot take records without a key. */
export const missingKey = (names: readonly string[]) =>
  `PERSONAL_KEY is not set, and the rules of these environments hash personal values: ${names.join(', ')}`;

/** @throws InputError `invalid_field` if the actions need a key and there is none. */
export function requireKeyFor(secret: string | null, actions: readonly PersonalAction[]): void {
  if (secret === null && actions.includes('hash')) throw inputError('invalid_field', noKey, 'personal');
}

const KEY_BYTES = 32;

/**
 * Returns the personal values of an environment, whose key is derived: what leaks in one environment says nothing of another.
 * @throws TransientError if the actions need a key and there is none.
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

/** Changes the properties of one entity; by default, as where records are only looked at, values are hidden. Actions by property: `address.street` is a member of `address`, an object, a list of them or their JSON text, or a property of that name. */
export class PersonalProperties {
  readonly #actions = new Map<string, PersonalAction>();
  /** Names of objects, or lists of objects, of which members have actions. */
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

  /** Nothing is personal. */
  get isNone(): boolean {
    return this.#actions.size === 0;
  }

  /** Tells whether the property, or a member of it, may be stored otherwise. */
  concerns(name: string): boolean {
    return this.containers.has(name) || this.#actionOf(name) !== undefined;
  }

  /** The action of a property, or of the object that it is a member of by its name. */
  #actionOf(name: string): PersonalAction | undefined {
    for (let end = name.length; end > 0; end = name.lastIndexOf('.', end - 1)) {
      const action = this.#actions.get(name.slice(0, end));
      if (action !== undefined) return action;
    }
    return undefined;
  }

  /** Returns true for a value that was changed before. */
  isChanged(name: string, value: unknown): boolean {
    const action = this.#actionOf(name);
    return action !== undefined && this.#values.isChanged(action, value);
  }

  /** Returns the value of a property as it is stored, undefined for none. Its numbers may be marked, as of `ParsedJson`. */
  change(name: string, value: unknown): unknown {
    const action = this.#actionOf(name);
    if (action !== undefined) return this.#values.change(action, value);
    if (!this.containers.has(name)) return value;
    if (Array.isArray(value)) return value.map((each) => this.change(name, each));
    if (isObject(value)) return this.changeAll(value, `${name}.`);
    // A cell of CSV, or a program, may have the object as a text. What looks like one and cannot be read may hold anything.
    if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
    const parsed = parseJsonText(value);
    return 'code' in parsed ? undefined : this.change(name, parsed.value);
  }

  /** Returns the members of an object as they are stored. */
  changeAll(object: JsonObject, under = ''): JsonObject {
    const changed = Object.entries(object).map(
      ([name, value]) => [name, this.change(under + name, value)] as const,
    );
    return Object.fromEntries(changed.filter(([, value]) => value !== undefined));
  }
}

export type { PersonalAction, PersonalValues } from './values.ts';
