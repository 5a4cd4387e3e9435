import type { PersonalAction } from '../domain/rules.ts';
import { isObject, type JsonObject } from '../mapping/json-text.ts';
import type { PersonalValues } from './values.ts';

/** The actions of one entity by property; `address.street` is a member of the object `address`, also within lists, or a property of that name. */
export class PersonalProperties {
  readonly #actions: ReadonlyMap<string, PersonalAction>;
  /** Names of objects, or lists of objects, of which members have actions. */
  readonly containers = new Set<string>();
  readonly #values: PersonalValues;

  constructor(actions: ReadonlyMap<string, PersonalAction>, values: PersonalValues) {
    this.#actions = actions;
    this.#values = values;
    for (const name of actions.keys()) {
      for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
        this.containers.add(name.slice(0, dot));
    }
  }

  /** Returns true for a value that was changed before. */
  isChanged(name: string, value: unknown): boolean {
    const action = this.#actions.get(name);
    return action !== undefined && this.#values.isChanged(action, value);
  }

  /** Returns the value of a property as it is stored, undefined for none. */
  change(name: string, value: unknown, marked: boolean): unknown {
    const action = this.#actions.get(name);
    if (action !== undefined) return this.#values.change(action, value, marked);
    if (!this.containers.has(name)) return value;
    if (Array.isArray(value)) return value.map((each) => this.change(name, each, marked));
    return isObject(value) ? this.changeAll(value, marked, `${name}.`) : value;
  }

  /** Returns the members of an object as they are stored. */
  changeAll(object: JsonObject, marked: boolean, under = ''): JsonObject {
    const changed = Object.entries(object).map(
      ([name, value]) => [name, this.change(under + name, value, marked)] as const,
    );
    return Object.fromEntries(changed.filter(([, value]) => value !== undefined));
  }
}
