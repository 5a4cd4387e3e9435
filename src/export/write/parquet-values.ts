import type { Column } from '../../domain/export.ts';
import { Bytes, hashOf, readInteger, unescaped } from './rows.ts';

/**
 * `plain` has all values or, if there is a dictionary, its entries. The value of each row is then
 * an index in `indexes`.
 */
export interface Values {
  readonly plain: Buffer;
  readonly dictionary: { readonly entries: number; readonly indexes: Int32Array } | null;
  readonly min: Uint8Array | bigint | number | undefined;
  readonly max: Uint8Array | bigint | number | undefined;
}

export interface ValueStore {
  add(bytes: Buffer, start: number, end: number): void;
  /** Returns the values. They are valid until `clear` is called. */
  values(): Values;
  clear(): void;
}

export function storeOf(column: Column, maxRows: number): ValueStore {
  if (column.kind === 'boolean') return new Booleans();
  if (column.kind === 'text' || column.kind === 'json') return new Texts(column, maxRows);
  return new Numbers(column);
}

export function bitsOf(entries: number): number {
  return Math.ceil(Math.log2(entries));
}

/** Instants in microseconds since 1970, or doubles. Few repeat, so they have no dictionary. */
class Numbers implements ValueStore {
  readonly #isInstant: boolean;
  readonly #plain = new Bytes();
  #min: number | bigint | null = null;
  #max: number | bigint | null = null;

  constructor({ kind }: Column) {
    this.#isInstant = kind === 'instant';
  }

  add(bytes: Buffer, start: number, end: number): void {
    const value = this.#isInstant
      ? readInteger(bytes, start, end)
      : Number(bytes.toString('latin1', start, end));
    if (this.#isInstant) this.#plain.addInt64(value);
    else this.#plain.addDouble(Number(value));
    if (this.#min === null || value < this.#min) this.#min = value;
    if (this.#max === null || value > this.#max) this.#max = value;
  }

  values(): Values {
    const bound = (value: number | bigint | null) => {
      if (value === null) return undefined;
      return this.#isInstant ? BigInt(value) : value;
    };
    return { plain: this.#plain.view(), dictionary: null, min: bound(this.#min), max: bound(this.#max) };
  }

  clear(): void {
    this.#plain.clear();
    this.#min = null;
    this.#max = null;
  }
}

class Booleans implements ValueStore {
  #values: boolean[] = [];

  add(_: Buffer, start: number, end: number): void {
    this.#values.push(end - start === 'true'.length);
  }

  values(): Values {
    const plain = Buffer.alloc(Math.ceil(this.#values.length / 8));
    for (const [at, isTrue] of this.#values.entries())
      if (isTrue) plain[at >> 3] = (plain[at >> 3] as number) | (1 << (at & 7));
    return { plain, dictionary: null, min: undefined, max: undefined };
  }

  clear(): void {
    this.#values = [];
  }
}

const lengthBytes = 4;
/** Number of values after which the store decides whether to keep its dictionary. */
const trialValues = 250;
/** Maximum number of slots to try. It bounds the cost of strings that were chosen to collide. */
const maxProbes = 32;

/**
 * Each string is stored after its length. There is no dictionary if more than half of the first
 * `trialValues` strings are distinct.
 */
class Texts implements ValueStore {
  readonly #isJson: boolean;
  readonly #slots: Int32Array;
  readonly #indexes: Int32Array;
  readonly #places: Int32Array;
  readonly #hashes: Int32Array;
  #texts = new Bytes();
  #spare = new Bytes();
  #entries = 0;
  #count = 0;
  #plainBytes = 0;
  #hasDictionary = true;

  constructor({ kind }: Column, maxRows: number) {
    this.#isJson = kind === 'json';
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * maxRows)));
    this.#indexes = new Int32Array(maxRows);
    this.#places = new Int32Array(maxRows);
    this.#hashes = new Int32Array(maxRows);
  }

  add(bytes: Buffer, start: number, end: number): void {
    if (this.#isJson) {
      this.#add(bytes, start, end);
      return;
    }
    const text = unescaped(bytes, start, end);
    if (text === null) this.#add(bytes, start + 1, end - 1);
    else this.#add(text, 0, text.length);
  }

  values(): Values {
    const indexBytes = (this.#count * bitsOf(Math.max(1, this.#entries))) / 8;
    if (this.#hasDictionary && 2 * (this.#texts.length + indexBytes) > this.#plainBytes) this.#makePlain();
    const plain = this.#texts.view();
    const indexes = this.#indexes.subarray(0, this.#count);
    const dictionary = this.#hasDictionary && this.#count > 0 ? { entries: this.#entries, indexes } : null;
    return { plain, dictionary, ...boundsOf(this.#isJson ? plain.subarray(0, 0) : plain) };
  }

  clear(): void {
    this.#texts.clear();
    this.#slots.fill(0);
    this.#entries = 0;
    this.#count = 0;
    this.#plainBytes = 0;
    this.#hasDictionary = true;
  }

  #add(bytes: Uint8Array, start: number, end: number): void {
    this.#plainBytes += lengthBytes + end - start;
    if (this.#hasDictionary) {
      const index = this.#find(bytes, start, end);
      if (index !== null) {
        this.#indexes[this.#count++] = index;
        if (this.#count === trialValues && 2 * this.#entries > trialValues) this.#makePlain();
        return;
      }
      this.#makePlain();
    }
    this.#count++;
    this.#keep(this.#texts, bytes, start, end);
  }

  /** Adds a new string. `null` if other strings occupy all its slots. */
  #find(bytes: Uint8Array, start: number, end: number): number | null {
    const hash = hashOf(bytes, start, end);
    const mask = this.#slots.length - 1;
    for (let probe = 0; probe < maxProbes; probe++) {
      const slot = (hash + probe) & mask;
      const entry = (this.#slots[slot] as number) - 1;
      if (entry === -1) {
        this.#places[this.#entries] = this.#texts.length;
        this.#hashes[this.#entries] = hash;
        this.#keep(this.#texts, bytes, start, end);
        this.#slots[slot] = ++this.#entries;
        return this.#entries - 1;
      }
      if (this.#hashes[entry] === hash && this.#isEntry(entry, bytes, start, end)) return entry;
    }
    return null;
  }

  #isEntry(entry: number, bytes: Uint8Array, start: number, end: number): boolean {
    const { memory } = this.#texts;
    const place = this.#places[entry] as number;
    if (memory.readInt32LE(place) !== end - start) return false;
    let at = place + lengthBytes;
    for (let next = start; next < end; next++) if (bytes[next] !== memory[at++]) return false;
    return true;
  }

  #keep(to: Bytes, bytes: Uint8Array, start: number, end: number): void {
    to.addInt32(end - start);
    to.add(bytes, start, end);
  }

  #makePlain(): void {
    this.#hasDictionary = false;
    if (this.#entries === this.#count) return;
    const { memory } = this.#texts;
    for (const index of this.#indexes.subarray(0, this.#count)) {
      const place = this.#places[index] as number;
      this.#spare.add(memory, place, place + lengthBytes + memory.readInt32LE(place));
    }
    [this.#texts, this.#spare] = [this.#spare, this.#texts];
    this.#spare.clear();
  }
}

export function eachText(texts: Buffer, visit: (texts: Buffer, start: number, end: number) => void): void {
  let at = 0;
  while (at < texts.length) {
    const start = at + lengthBytes;
    at = start + texts.readInt32LE(at);
    visit(texts, start, at);
  }
}

/** Returns copies of the first and the last text in byte order. */
function boundsOf(texts: Buffer): Pick<Values, 'min' | 'max'> {
  if (texts.length === 0) return { min: undefined, max: undefined };
  let min = 0;
  let max = 0;
  for (let at = 0; at < texts.length; at += lengthBytes + texts.readInt32LE(at)) {
    if (isBefore(texts, at, min)) min = at;
    else if (isBefore(texts, max, at)) max = at;
  }
  const copy = (at: number) =>
    Uint8Array.from(texts.subarray(at + lengthBytes, at + lengthBytes + texts.readInt32LE(at)));
  return { min: copy(min), max: copy(max) };
}

function isBefore(texts: Buffer, a: number, b: number): boolean {
  const lengthOfA = texts.readInt32LE(a);
  const lengthOfB = texts.readInt32LE(b);
  const common = Math.min(lengthOfA, lengthOfB);
  for (let at = lengthBytes; at < lengthBytes + common; at++) {
    const difference = (texts[a + at] as number) - (texts[b + at] as number);
    if (difference !== 0) return difference < 0;
  }
  return lengthOfA < lengthOfB;
}
