import type { PersonalAction } from '../domain/rules.ts';
import { isObject, type JsonObject } from '../mapping/json-text.ts';
import type { PersonalValues } from './values.ts';

/** The actions of one entity by property; `address.street` is a member of the object `address`, also within lists, or a property of that name. */
export class PersonalProperties {
  readonly #actions: ReadonlyMap<string, PersonalAction>;
  /** Names that members of have actions. */
  readonly #containers = new Set<string>();
  readonly values: PersonalValues;

  constructor(actions: ReadonlyMap<string, PersonalAction>, values: PersonalValues) {
    this.#actions = actions;
    this.values = values;
    for (const name of actions.keys()) {
      for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
        this.#containers.add(name.slice(0, dot));
    }
  }

  /** Returns true if the property, or a member of it, is personal. */
  concerns(name: string): boolean {
    return this.#actions.has(name) || this.#containers.has(name);
  }

  /** Returns the property's action; null for one that is not personal as a whole. */
  actionOf(name: string): PersonalAction | null {
    return this.#actions.get(name) ?? null;
  }

  /** Returns the value of a property as it is stored, undefined for none. */
  change(name: string, value: unknown, marked: boolean): unknown {
    const action = this.#actions.get(name);
    if (action !== undefined) return this.values.change(action, value, marked);
    if (!this.#containers.has(name)) return value;
    if (Array.isArray(value)) return value.map((each) => this.change(name, each, marked));
    return isObject(value) ? this.changeAll(value, marked, `${name}.`) : value;
  }

  /** Returns the properties as they are stored: the same object if none of them is personal. */
  changeAll(properties: JsonObject, marked: boolean, under = ''): JsonObject {
    const names = Object.keys(properties);
    if (!names.some((name) => this.concerns(under + name))) return properties;
    const changed = names.map((name) => [name, this.change(under + name, properties[name], marked)] as const);
    return Object.fromEntries(changed.filter(([, value]) => value !== undefined));
  }
}
