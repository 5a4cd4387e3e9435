import { isObject, type JsonObject, parseJsonText } from '../formats/json-text.ts';
import type { PersonalAction, PropertyRule } from '../rules/document.ts';
import type { PersonalValues } from './values.ts';

/** The actions of one entity by property; `address.street` is a member of `address`, an object, a list of them or their JSON text, or a property of that name. */
export class PersonalProperties {
  readonly #actions = new Map<string, PersonalAction>();
  /** Names of objects, or lists of objects, of which members have actions. */
  readonly containers = new Set<string>();
  readonly #values: PersonalValues;

  constructor(rules: Readonly<Record<string, PropertyRule>>, values: PersonalValues) {
    this.#values = values;
    for (const [name, { personal }] of Object.entries(rules)) {
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
    if (action !== undefined) return this.#values.change(action, value, true);
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
