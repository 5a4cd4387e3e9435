import { MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { isPlain } from '../../formats/json-position.ts';
import { escapeCopyJson } from '../../formats/json-text.ts';

const QUOTE = 0x22;

/**
 * Maximum number of names that are remembered. If a file has more names, most of them do not recur.
 */
const MAX_KNOWN_NAMES = 2_048;

/** Name of a JSON member. */
export class KnownName {
  readonly text: string;
  /** `bytes`: the name and its closing quote. `prefix`: `"name":` in COPY text. */
  readonly bytes: Uint8Array;
  readonly prefix: Uint8Array;
  readonly role: number;
  /** Name that probably follows this name. */
  next: KnownName = this;
  /** Last object in which this name occurred. */
  object = 0;
  #owner: object | null = null;
  #found: unknown = undefined;

  constructor(text: string, role: number) {
    this.text = text;
    this.bytes = Buffer.from(`${text}"`, 'latin1');
    this.prefix = Buffer.from(escapeCopyJson(`${JSON.stringify(text)}:`), 'latin1');
    this.role = role;
  }

  /** Remembers the result of `owner.find`, because every cell with this name needs it. */
  foundBy<Found>(owner: { find(name: string): Found }): Found {
    if (this.#owner !== owner) {
      this.#owner = owner;
      this.#found = owner.find(this.text);
    }
    return this.#found as Found;
  }
}

/** Most records repeat names in the same order, so the expected name is compared first. */
export class KnownNames {
  /** Position after the closing quote of the last name. */
  end = 0;
  readonly #roleOf: (name: string) => number;
  readonly #names = new Map<string, KnownName>();
  /**
   * This entry predicts the first name of every object. It differs from all names, because 0xff is
   * not valid in UTF-8.
   */
  readonly #start = new KnownName('\xff', 0);
  #last = this.#start;
  #object = 0;

  /** `roleOf` gets every name once, as a byte string. */
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
   * Finds the name that begins at `at`, after the opening quote. Returns `null` if the parser must
   * read the record. This is the case if the object repeats the name, if the name has escapes or
   * may be too long, or if there are too many names.
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

/**
 * Maximum number of members that are sorted. With more members, sorting would take more time than
 * it saves in PostgreSQL.
 */
const MAX_ORDERED_MEMBERS = 64;

/**
 * The order in which jsonb stores members: by length of the name, then by its bytes. If the names
 * are those of the previous call, the order is not computed again.
 */
export class JsonbOrder {
  readonly #order = new Int32Array(MAX_ORDERED_MEMBERS);
  readonly #names: KnownName[] = [];

  /** Indexes of the members, valid until the next call. `null` if there are too many members. */
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
