import { SeededHash } from './seeded-hash.ts';

const initialRows = 16 * 1024;
/** Slots that are looked at for one key. No more than half of them are taken: more than this come of a seed that is known. */
const maxProbes = 512;

/**
 * Which rows of a buffer have the same key. Keys are byte ranges of the buffer that the rows are written to: nothing is
 * copied, and no object or string exists per row. Open addressing over a hash whose seed no caller knows; rows
 * with one key are a chain that begins with the first of them, its head.
 */
export class KeyTable {
  rows = 0;
  /** Rows whose key an earlier one has. */
  repeated = 0;
  #starts = new Int32Array(initialRows);
  #ends = new Int32Array(initialRows);
  /** Next row with the same key, or 0. */
  #next = new Int32Array(initialRows);
  /** Last row of the chain that this row heads; itself if alone; -1 if it is not the head. */
  #last = new Int32Array(initialRows);
  #slots = new Int32Array(initialRows * 2).fill(-1);
  readonly #hash: Pick<SeededHash, 'of' | 'reseed'>;

  constructor(hash: Pick<SeededHash, 'of' | 'reseed'> = new SeededHash()) {
    this.#hash = hash;
  }

  reset(): void {
    this.rows = 0;
    this.repeated = 0;
    this.#slots.fill(-1);
  }

  /** Adds the next row, whose key is bytes [start, end); returns its number. */
  add(bytes: Buffer, start: number, end: number): number {
    const row = this.rows;
    if (row === this.#starts.length) this.#grow(bytes);
    this.rows++;
    this.#starts[row] = start;
    this.#ends[row] = end;
    this.#next[row] = 0;
    this.#last[row] = row;
    if (this.#enter(bytes, row) > maxProbes) {
      this.#hash.reseed();
      this.#enterAll(bytes);
    }
    return row;
  }

  start(row: number): number {
    return this.#starts[row] ?? 0;
  }

  end(row: number): number {
    return this.#ends[row] ?? 0;
  }

  isHead(row: number): boolean {
    return this.#last[row] !== -1;
  }

  /** All rows with the key of `head`, in order. */
  chain(head: number): number[] {
    const chain = [head];
    for (let row = this.#next[head] ?? 0; row !== 0; row = this.#next[row] ?? 0) chain.push(row);
    return chain;
  }

  /** Returns how many slots were looked at. */
  #enter(bytes: Buffer, row: number): number {
    const start = this.start(row);
    const end = this.end(row);
    const mask = this.#slots.length - 1;
    const home = this.#hash.of(bytes, start, end) & mask;
    for (let slot = home; ; slot = (slot + 1) & mask) {
      const other = this.#slots[slot] ?? -1;
      if (other === -1) {
        this.#slots[slot] = row;
        return (slot - home) & mask;
      }
      if (this.#sameKey(bytes, other, start, end)) {
        this.#append(other, row);
        return (slot - home) & mask;
      }
    }
  }

  /** Enters all keys anew. A head's key is in no other slot, so that entering it again cannot chain it. */
  #enterAll(bytes: Buffer): void {
    this.#slots.fill(-1);
    for (let row = 0; row < this.rows; row++) if (this.isHead(row)) this.#enter(bytes, row);
  }

  #sameKey(bytes: Buffer, row: number, start: number, end: number): boolean {
    const from = this.start(row);
    if (this.end(row) - from !== end - start) return false;
    for (let at = start, other = from; at < end; at++, other++) if (bytes[at] !== bytes[other]) return false;
    return true;
  }

  #append(head: number, row: number): void {
    this.#next[this.#last[head] ?? head] = row;
    this.#last[head] = row;
    this.#last[row] = -1;
    this.repeated++;
  }

  #grow(bytes: Buffer): void {
    this.#starts = doubled(this.#starts);
    this.#ends = doubled(this.#ends);
    this.#next = doubled(this.#next);
    this.#last = doubled(this.#last);
    this.#slots = new Int32Array(this.#slots.length * 2);
    this.#enterAll(bytes);
  }
}

export function doubled(old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(old.length * 2);
  grown.set(old);
  return grown;
}
