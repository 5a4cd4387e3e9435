const initialRows = 16 * 1024;

/**
 * Which rows of a buffer have the same key. Keys are byte ranges of the buffer that the rows are written to: nothing is
 * copied, and no object or string exists per row. Open addressing over 32-bit FNV-1a; rows with one key are a
 * chain that begins with the first of them, its head.
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
    this.#enter(bytes, row);
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

  #enter(bytes: Buffer, row: number): void {
    const start = this.start(row);
    const end = this.end(row);
    const mask = this.#slots.length - 1;
    let slot = hashOf(bytes, start, end) & mask;
    for (;;) {
      const other = this.#slots[slot] ?? -1;
      if (other === -1) {
        this.#slots[slot] = row;
        return;
      }
      if (this.#sameKey(bytes, other, start, end)) {
        this.#append(other, row);
        return;
      }
      slot = (slot + 1) & mask;
    }
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
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    // A head's key is in no other slot, so that entering it again cannot chain it.
    for (let row = 0; row < this.rows; row++) if (this.isHead(row)) this.#enter(bytes, row);
  }
}

function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash ^ (hash >>> 15);
}

export function doubled(old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(old.length * 2);
  grown.set(old);
  return grown;
}
