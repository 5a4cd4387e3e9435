import { hash, randomFillSync } from 'node:crypto';
import { unescapeCopy } from '../../formats/json-text.ts';
import { BinaryArray, typeBigint } from './binary-array.ts';

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
  /** The first row with the key of the one that was added last. */
  head = 0;
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
    if (this.rows > 0) this.#slots.fill(-1);
    this.rows = 0;
    this.repeated = 0;
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
    this.head = row;
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

  /** Returns true if no other row has the key of this one. */
  isAlone(row: number): boolean {
    return this.#last[row] === row;
  }

  /** The first row whose key is bytes [start, end) of `other`, or -1. `bytes` are those that the keys were added from. */
  find(bytes: Buffer, other: Buffer, start: number, end: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#hash.of(other, start, end) & mask; ; slot = (slot + 1) & mask) {
      const row = this.#slots[slot] ?? -1;
      if (row === -1 || isSame(bytes, this.start(row), this.end(row), other, start, end)) return row;
    }
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
      if (isSame(bytes, this.start(other), this.end(other), bytes, start, end)) {
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

  #append(head: number, row: number): void {
    this.#next[this.#last[head] ?? head] = row;
    this.#last[head] = row;
    this.#last[row] = -1;
    this.head = head;
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

function isSame(
  bytes: Buffer,
  start: number,
  end: number,
  other: Buffer,
  otherStart: number,
  otherEnd: number,
): boolean {
  if (end - start !== otherEnd - otherStart) return false;
  for (let at = start, to = otherStart; at < end; at++, to++) if (bytes[at] !== other[to]) return false;
  return true;
}

export function doubled(old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(old.length * 2);
  grown.set(old);
  return grown;
}

/**
 * The 64-bit hash that PostgreSQL's `hashtextextended(key, 0)` gives, computed here so that keys need not be read back:
 * Bob Jenkins' lookup3 as in PostgreSQL's `common/hashfn.c`. A test holds it to the server's on every version in use.
 *
 * The result is left in `high` and `low`, both signed 32-bit: no object, no BigInt, per key.
 */
export class KeyHash {
  high = 0;
  low = 0;

  /** Hashes bytes [start, end). */
  update(bytes: Uint8Array, start: number, end: number): void {
    let left = end - start;
    let at = start;
    let a = (0x9e3779b9 + left + 3_923_095) | 0;
    let b = a;
    let c = a;
    for (; left >= 12; left -= 12, at += 12) {
      a = (a + word(bytes, at)) | 0;
      b = (b + word(bytes, at + 4)) | 0;
      c = (c + word(bytes, at + 8)) | 0;
      a = ((a - c) | 0) ^ rotate(c, 4);
      c = (c + b) | 0;
      b = ((b - a) | 0) ^ rotate(a, 6);
      a = (a + c) | 0;
      c = ((c - b) | 0) ^ rotate(b, 8);
      b = (b + a) | 0;
      a = ((a - c) | 0) ^ rotate(c, 16);
      c = (c + b) | 0;
      b = ((b - a) | 0) ^ rotate(a, 19);
      a = (a + c) | 0;
      c = ((c - b) | 0) ^ rotate(b, 4);
      b = (b + a) | 0;
    }
    // The rest, up to 11 bytes; the lowest byte of c is reserved for the length.
    for (let i = 0; i < left; i++) {
      const byte = bytes[at + i] ?? 0;
      if (i < 4) a = (a + (byte << (8 * i))) | 0;
      else if (i < 8) b = (b + (byte << (8 * (i - 4)))) | 0;
      else c = (c + (byte << (8 * (i - 7)))) | 0;
    }
    c = ((c ^ b) - rotate(b, 14)) | 0;
    a = ((a ^ c) - rotate(c, 11)) | 0;
    b = ((b ^ a) - rotate(a, 25)) | 0;
    c = ((c ^ b) - rotate(b, 16)) | 0;
    a = ((a ^ c) - rotate(c, 4)) | 0;
    b = ((b ^ a) - rotate(a, 14)) | 0;
    c = ((c ^ b) - rotate(b, 24)) | 0;
    this.high = b;
    this.low = c;
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** Four bytes, the first in the lowest bits. */
export function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/**
 * HalfSipHash-1-3 (https://github.com/veorq/SipHash): 32 bits of hash for tables in memory, under a secret key of 64 bits.
 * Without the key nobody can choose texts that fall into one bucket. Never to be stored or compared between processes:
 * `KeyHash` is for that.
 */
export class SeededHash {
  readonly #seed = randomFillSync(new Int32Array(2));

  /** Another key: all hashes change. */
  reseed(): void {
    randomFillSync(this.#seed);
  }

  /** Hashes bytes [start, end). */
  of(bytes: Uint8Array, start: number, end: number): number {
    const k0 = this.#seed[0] ?? 0;
    const k1 = this.#seed[1] ?? 0;
    let v0 = k0;
    let v1 = k1;
    let v2 = 0x6c796765 ^ k0;
    let v3 = 0x74656462 ^ k1;
    // Words of four bytes; then one of what is left and the length; then three rounds without a word.
    let rounds = ((end - start) >> 2) + 4;
    for (let at = start; rounds > 0; rounds--, at += 4) {
      let next = 0;
      if (rounds > 4) next = word(bytes, at);
      else if (rounds === 4) {
        next = (end - start) << 24;
        for (let rest = at; rest < end; rest++) next |= (bytes[rest] as number) << (8 * (rest - at));
      } else if (rounds === 3) v2 ^= 0xff;
      v3 ^= next;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= next;
    }
    return v1 ^ v3;
  }
}

const BACKSLASH = 92;

/** Hashes of keys, as PostgreSQL reads a bigint[] in binary. */
export class KeyHashes {
  readonly #array: BinaryArray;
  readonly #hash = new KeyHash();
  readonly #flags: number;

  /** Makes room for so many keys; `flags` go into the two low bits of each. */
  constructor(keys: number, flags: number) {
    this.#array = new BinaryArray(typeBigint, keys, 8 * keys);
    this.#flags = flags;
  }

  get array(): Buffer {
    return this.#array.bytes;
  }

  /** Adds the key that is written, for COPY, in bytes [start, end). */
  add(bytes: Buffer, start: number, end: number): void {
    this.#update(bytes, start, end);
    this.addHash(this.#hash.high, (this.#hash.low & -4) | this.#flags);
  }

  /** Adds a hash that is known, of an event (see `eventKey`). */
  addHash(high: number, low: number): void {
    const { bytes } = this.#array;
    bytes.writeInt32BE(low, bytes.writeInt32BE(high, this.#array.reserve(8)));
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
 * Returns the hash of an event's key: that of a content id is its beginning, that of a caller's id the beginning of
 * the SHA-256 of user, TAB and id, so that nobody can make two with one hash. The last bit says that it is the caller's, the
 * one before is 0. `key` is a byte string, as it is written for COPY: the content id, or user, TAB and the caller's id.
 */
export function eventKey(key: string, isGiven: boolean): bigint {
  const [high, low] = isGiven ? givenEventHash(key) : halvesOf(Buffer.from(key, 'base64url'), 0);
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/** Returns both halves of `eventKey` for an id of the caller. */
export function givenEventHash(key: string): [high: number, low: number] {
  return halvesOf(hash('sha256', Buffer.from(key, 'latin1'), 'buffer'), 1);
}

function halvesOf(bytes: Buffer, flags: number): [high: number, low: number] {
  return [bytes.readInt32BE(0), (bytes.readInt32BE(4) & -4) | flags];
}
