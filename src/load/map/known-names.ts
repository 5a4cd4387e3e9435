import { MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { isPlain } from '../../formats/json-position.ts';
import { escapeCopyJson } from '../../formats/json-text.ts';

const QUOTE = 0x22;

/** Names that one table remembers. Records that bring ever new ones are not what it is for. */
const MAX_KNOWN_NAMES = 2_048;

/** The name of a member of JSON objects, and what it means there. */
export class KnownName {
  /** The name as a byte string. */
  readonly text: string;
  /** The name with the quote behind it, as it stands in JSON, and as it is written before a value: `"name":`. */
  readonly bytes: Uint8Array;
  readonly prefix: Uint8Array;
  readonly role: number;
  /** The name that is likely to come next. */
  next: KnownName = this;
  /** The last object that had it. */
  object = 0;
  #owner: object | null = null;
  #found: unknown = undefined;

  constructor(text: string, role: number) {
    this.text = text;
    this.bytes = Buffer.from(`${text}"`, 'latin1');
    this.prefix = Buffer.from(escapeCopyJson(`${JSON.stringify(text)}:`), 'latin1');
    this.role = role;
  }

  /** Returns what `owner` finds by the name; asked of every cell. */
  foundBy<Found>(owner: { find(name: string): Found }): Found {
    if (this.#owner !== owner) {
      this.#owner = owner;
      this.#found = owner.find(this.text);
    }
    return this.#found as Found;
  }
}

/**
 * Finds the names of an object's members by their bytes. The records of one file bear mostly the same names in the same order, so
 * the next is guessed, and only compared.
 */
export class KnownNames {
  /** The end of the name found last, with its quote. */
  end = 0;
  readonly #roleOf: (name: string) => number;
  readonly #names = new Map<string, KnownName>();
  /** Comes before the first name of every object; matches none, as no UTF-8 holds its byte. */
  readonly #start = new KnownName('\xff', 0);
  #last = this.#start;
  #object = 0;

  /** `roleOf` is asked once for every name, a byte string. */
  constructor(roleOf: (name: string) => number) {
    this.#roleOf = roleOf;
  }

  /** Forgets all names. */
  reset(): void {
    this.#names.clear();
    this.#start.next = this.#start;
    this.#last = this.#start;
  }

  /** The next object begins. */
  startObject(): void {
    this.#object++;
    this.#last = this.#start;
  }

  /**
   * The name that begins at `at`, behind its quote; null if this object had it before, if it has escapes, is too long to be told
   * from its bytes that it is short enough, or is one name too many.
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

/** Members that are put in order; of more it would cost more than PostgreSQL pays for it. */
const MAX_ORDERED_MEMBERS = 64;

/**
 * The order in which jsonb keeps the members of an object, by the length of their names, then by their bytes: it then has
 * nothing to sort. Worked out anew only where an object has other names than the one before.
 */
export class JsonbOrder {
  readonly #order = new Int32Array(MAX_ORDERED_MEMBERS);
  readonly #names: KnownName[] = [];

  /** The numbers of the members, as many as there are; null if they are too many. Valid until the next call. */
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
