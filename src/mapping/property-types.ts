import { type DataType, widen } from '../domain/data-type.ts';
import { fromByteString } from './byte-string.ts';
import type { ParsedJson } from './json-text.ts';
import { MemberTypes } from './member-types.ts';

/** The properties that a chunk's records of one entity bear, and of what type their values are. */
export class PropertyTypes {
  /** Members of JSON objects, by name as a byte string and as text; see `ParsedJson.decoded`. */
  readonly #byBytes = new MemberTypes();
  readonly #byText = new MemberTypes();
  /** Columns. */
  readonly #columns = new Map<string, DataType | null>();

  reset(): void {
    this.#byBytes.reset();
    this.#byText.reset();
    this.#columns.clear();
  }

  /** What is to be told of the members of such an object. */
  membersOf({ decoded }: ParsedJson): MemberTypes {
    return decoded ? this.#byText : this.#byBytes;
  }

  /** A type of null: the column is there, and its cells were not looked at. */
  noteColumn(name: string, type: DataType | null): void {
    this.#columns.set(name, type);
  }

  /** By name. Null where nobody looked at a value. */
  types(): ReadonlyMap<string, DataType | null> {
    const types = new Map(this.#columns);
    const add = (name: string, type: DataType) => types.set(name, widen(types.get(name) ?? type, type));
    for (const [name, type] of this.#byText) add(name, type);
    for (const [name, type] of this.#byBytes) add(fromByteString(name), type);
    return types;
  }
}
