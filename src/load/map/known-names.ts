import { MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { isPlain } from '../../formats/json-position.ts';
import { escapeCopyJson } from '../../formats/json-text.ts';

const QUOTE = 0x22;

/** Names that one table remembers. It is not for records with ever new names. */
const MAX_KNOWN_NAMES = 2_048;

/** The name of a JSON member and its role. */
export class KnownName {
  /** The name as a byte string. */
  readonly text: string;
  /** The name and its closing quote, as in JSON; and as written before a value: `"name":`. */
  readonly bytes: Uint8Array;
  readonly prefix: Uint8Array;
  readonly role: number;
  /** The name that probably comes next. */
  next: KnownName = this;
  /** The last object with this name. */
  object = 0;
  #owner: object | null = null;
  #found: unknown = undefined;

  constructor(text: string, role: number) {
    this.text = text;
    this.bytes = Buffer.from(`${text}"`, 'latin1');
    this.prefix = Buffer.from(escapeCopyJson(`${JSON.stringify(text)}:`), 'latin1');
    this.role = role;
  }

  /** Caches what `owner` finds for the name, since every cell asks. */
  foundBy<Found>(owner: { find(name: string): Found }): Found {
    if (this.#owner !== owner) {
      this.#owner = owner;
      this.#found = owner.find(this.text);
    }
    return this.#found as Found;
  }
}

/** Finds names by bytes. Records mostly repeat them in order, so the next one is guessed. */
export class KnownNames {
  /** The end of the last name, its quote included. */
  end = 0;
  readonly #roleOf: (name: string) => number;
  readonly #names = new Map<string, KnownName>();
  /** Precedes the first name of every object. Matches none, since UTF-8 has no such byte. */
  readonly #start = new KnownName('\xff', 0);
  #last = this.#start;
  #object = 0;

  /** `roleOf` is called once for every name, a byte string. */
  constructor(roleOf: (name: string) => number) {
    this.#roleOf = roleOf;
  }

  reset(): void {
    this.#names.clear();
    this.#start.next = this.#start;
    this.#last = this.#start;
  }

  startObject(): void {
    this.#object++;
    this.#last = this.#start;
  }

  /**
   * Returns the name after the quote at `at`, or `null` to leave the record to the parser: the
   * object has the name already, it has escapes, may be too long, or is one name too many.
   */
  find(bytes: Buffer, at: number): KnownName | null {
    const guess = this.#last.next;
    const expected = guess.bytes;
    const { length } = expected;
    let same = 0;
    while (same < length && bytes[at + same] === expected[same]) same++;
    const name = same === length ? guess : this.#lookUp(bytes, at);
    if (name === null || name.object === this.#object) return null;
    name.object = this.#object;
    this.end = at + name.bytes.length;
    this.#last = name;
    return name;
  }

  #lookUp(bytes: Buffer, at: number): KnownName | null {
    let end = at;
    while (isPlain[bytes[end] ?? 0] === 1) end++;
    if (bytes[end] !== QUOTE || end - at > MAX_PROPERTY_NAME_CHARS) return null;
    const text = bytes.toString('latin1', at, end);
    let name = this.#names.get(text);
    if (name === undefined) {
      if (this.#names.size === MAX_KNOWN_NAMES) return null;
      name = new KnownName(text, this.#roleOf(text));
      this.#names.set(text, name);
    }
    this.#last.next = name;
    return name;
  }
}

/** Sorting more members costs more than PostgreSQL saves. */
const MAX_ORDERED_MEMBERS = 64;

/** The order of jsonb (length, then bytes). Computed again only if the names change. */
export class JsonbOrder {
  readonly #order = new Int32Array(MAX_ORDERED_MEMBERS);
  readonly #names: KnownName[] = [];

  /** Returns the members' numbers, or `null` for too many members. Valid until the next call. */
  of(names: readonly KnownName[], count: number): Int32Array | null {
    if (count > MAX_ORDERED_MEMBERS) return null;
    let same = 0;
    while (same < count && names[same] === this.#names[same]) same++;
    if (same === count && count === this.#names.length) return this.#order;
    this.#names.length = 0;
    for (let member = 0; member < count; member++) {
      const name = names[member];
      if (name !== undefined) this.#insert(name, member);
    }
    return this.#order;
  }

  #insert(name: KnownName, member: number): void {
    const order = this.#order;
    let at = member;
    for (; at > 0; at--) {
      const other = this.#names[order[at - 1] ?? 0];
      if (other === undefined || !isBefore(name.text, other.text)) break;
      order[at] = order[at - 1] ?? 0;
    }
    order[at] = member;
    this.#names.push(name);
  }
}

function isBefore(name: string, other: string): boolean {
  return name.length === other.length ? name < other : name.length < other.length;
}
