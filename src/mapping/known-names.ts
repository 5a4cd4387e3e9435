import { MAX_PROPERTY_NAME_CHARS } from '../domain/limits.ts';
import { isPlain } from '../formats/json-position.ts';

const QUOTE = 0x22;
const ZERO = 0x30;
const NINE = 0x39;

/** Names that one table remembers. Records that bring ever new ones are not what it is for. */
const MAX_KNOWN_NAMES = 2_048;

/** The name of a member of JSON objects, and what it means there. */
export class KnownName {
  /** The name as a byte string. */
  readonly text: string;
  /** The name as written, with the quote behind it. */
  readonly bytes: Uint8Array;
  readonly role: number;
  /** Objects may order such names otherwise than they are written. */
  readonly isNumeric: boolean;
  /** The name that is likely to come next. */
  next: KnownName = this;
  /** The last object that had it. */
  object = 0;

  constructor(text: string, role: number) {
    this.text = text;
    this.bytes = Buffer.from(`${text}"`, 'latin1');
    this.role = role;
    const first = this.bytes[0] ?? 0;
    this.isNumeric = first >= ZERO && first <= NINE;
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
