import { MAX_SHARED_TEXT_BYTES } from '../domain/limits.ts';

const BLOCK_BYTES = 1024 * 1024;

/** The overhead of a string. */
const STRING_BYTES = 8;

/** The strings that cells of a workbook share: bytes in large blocks, since a million objects would take several times as much. */
export class SharedText {
  #block = Buffer.alloc(0);
  #used = 0;
  #heldBytes = 0;
  readonly #blocks: Buffer[] = [];
  /** The end of the last string of each block. */
  readonly #ends: number[] = [];
  /** The block and start of each string. */
  #places = new Uint32Array(1024);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Returns true if there was room for it. */
  add(bytes: Buffer): boolean {
    this.#heldBytes += bytes.length + STRING_BYTES;
    if (this.#heldBytes > MAX_SHARED_TEXT_BYTES) return false;
    if (this.#blocks.length === 0 || this.#used + bytes.length > this.#block.length)
      this.#startBlock(bytes.length);
    bytes.copy(this.#block, this.#used);
    this.#place(this.#blocks.length - 1, this.#used);
    this.#used += bytes.length;
    this.#ends[this.#blocks.length - 1] = this.#used;
    return true;
  }

  /** Returns null for one that is not there. */
  get(index: number): Buffer | null {
    if (index >= this.#count) return null;
    const block = this.#places[2 * index] as number;
    const start = this.#places[2 * index + 1] as number;
    const next = index + 1 < this.#count && this.#places[2 * index + 2] === block;
    const bytes = this.#blocks[block] as Buffer;
    return bytes.subarray(start, next ? this.#places[2 * index + 3] : this.#ends[block]);
  }

  #place(block: number, start: number): void {
    if (2 * this.#count === this.#places.length) {
      const larger = new Uint32Array(2 * this.#places.length);
      larger.set(this.#places);
      this.#places = larger;
    }
    this.#places[2 * this.#count] = block;
    this.#places[2 * this.#count + 1] = start;
    this.#count++;
  }

  #startBlock(atLeast: number): void {
    this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, atLeast));
    this.#blocks.push(this.#block);
    this.#used = 0;
  }
}
