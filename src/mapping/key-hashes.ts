import { unescapeCopy } from './json-text.ts';
import { KeyHash } from './key-table.ts';

const BACKSLASH = 92;
/** Binary form of an array: one dimension, no nulls, of bigint (type 20); its length and lower bound follow. */
const arrayHeader = Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20]);

/** Hashes of keys, as PostgreSQL reads a bigint[] in binary. */
export class KeyHashes {
  readonly array: Buffer;
  readonly #hash = new KeyHash();
  readonly #flags: number;
  #at: number;

  /** Of so many keys; `flags` go into the two low bits of each. */
  constructor(keys: number, flags: number) {
    this.array = Buffer.alloc(arrayHeader.length + 4 + 4 + 12 * keys);
    arrayHeader.copy(this.array);
    this.#at = this.array.writeInt32BE(keys, arrayHeader.length);
    this.#at = this.array.writeInt32BE(1, this.#at);
    this.#flags = flags;
  }

  /** Adds the key that is written, for COPY, in bytes [start, end). */
  add(bytes: Buffer, start: number, end: number): void {
    this.#update(bytes, start, end);
    this.#at = this.array.writeInt32BE(8, this.#at);
    this.#at = this.array.writeInt32BE(this.#hash.high, this.#at);
    this.#at = this.array.writeInt32BE((this.#hash.low & -4) | this.#flags, this.#at);
  }

  #update(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && bytes[at] !== BACKSLASH) at++;
    if (at === end) {
      this.#hash.update(bytes, start, end);
      return;
    }
    const key = Buffer.from(unescapeCopy(bytes.toString('latin1', start, end)), 'latin1');
    this.#hash.update(key, 0, key.length);
  }
}
