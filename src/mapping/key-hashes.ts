import { hash } from 'node:crypto';
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
    this.#write(this.#hash.high, (this.#hash.low & -4) | this.#flags);
  }

  /** Adds the hash of an event's key; see `eventKey`. */
  addEventKey(key: Buffer): void {
    this.#write(key.readInt32BE(0), key.readInt32BE(4));
  }

  #write(high: number, low: number): void {
    this.#at = this.array.writeInt32BE(8, this.#at);
    this.#at = this.array.writeInt32BE(high, this.#at);
    this.#at = this.array.writeInt32BE(low, this.#at);
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

/**
 * The hash of an event's key, in eight bytes: that of a content id is its beginning, that of a caller's id the beginning of
 * the SHA-256 of user, TAB and id, so that nobody can make two with one hash. The last bit says that it is the caller's, the
 * one before is 0. `key` is a byte string, as it is written for COPY: the content id, or user, TAB and the caller's id.
 */
export function eventKey(key: string, isGiven: boolean): Buffer {
  const bytes = isGiven
    ? hash('sha256', Buffer.from(key, 'latin1'), 'buffer').subarray(0, 8)
    : Buffer.from(key.slice(0, 16), 'hex');
  bytes[7] = ((bytes[7] ?? 0) & -4) | (isGiven ? 1 : 0);
  return bytes;
}
