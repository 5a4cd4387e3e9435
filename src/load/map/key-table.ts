import { randomFillSync } from 'node:crypto';
import { unescapeCopy } from '../../formats/json-text.ts';
import { BinaryArray, typeBigint } from './binary-array.ts';

const initialRows = 16 * 1024;
/**
 * Maximum number of probes for a key. Half of the slots are always free, so hardly any key needs
 * this many. A key that needs more was probably chosen by somebody who knows the seed. The table
 * then gets a new seed.
 */
const maxProbes = 512;

/**
 * Groups the rows of a buffer by key, in a hash table with open addressing and a secret seed. Keys
 * are ranges of bytes: nothing is copied, and no object is created per row. Rows with the same key
 * form a chain, whose first row is the head.
 */
export class KeyTable {
  rows = 0;
  /** Number of rows whose key also occurs in an earlier row. */
  repeated = 0;
  /** Head of the chain of the row that was added last. */
  head = 0;
  #starts = new Int32Array(initialRows);
  #ends = new Int32Array(initialRows);
  /** Next row with the same key, or 0. */
  #next = new Int32Array(initialRows);
  /** For a head, the last row of its chain. -1 for other rows. */
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

  /** Adds a row whose key is in bytes [start, end). Returns the row's number. */
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

  isAlone(row: number): boolean {
    return this.#last[row] === row;
  }

  /** First row whose key equals the bytes [start, end) of `other`, or -1. */
  find(bytes: Buffer, other: Buffer, start: number, end: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#hash.of(other, start, end) & mask; ; slot = (slot + 1) & mask) {
      const row = this.#slots[slot] ?? -1;
      if (row === -1 || isSame(bytes, this.start(row), this.end(row), other, start, end)) return row;
    }
  }

  chain(head: number): number[] {
    const chain = [head];
    for (let row = this.#next[head] ?? 0; row !== 0; row = this.#next[row] ?? 0) chain.push(row);
    return chain;
  }

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

  /**
   * Fills the table with the heads again. The keys of heads are different, so the chains stay as
   * they are.
   */
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
 * PostgreSQL's `hashtextextended(key, 0)`: Bob Jenkins' lookup3 as in `common/hashfn.c`. A test
 * compares it with every supported server version. The result is two signed numbers of 32 bits,
 * because an object or a BigInt for each key would be slow.
 */
export class KeyHash {
  high = 0;
  low = 0;

  update(bytes: Uint8Array, start: number, end: number): void {
    let remaining = end - start;
    let at = start;
    let a = (0x9e3779b9 + remaining + 3_923_095) | 0;
    let b = a;
    let c = a;
    for (; remaining >= 12; remaining -= 12, at += 12) {
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
    // At most 11 bytes remain. lookup3 adds the length to the lowest byte of `c`.
    for (let i = 0; i < remaining; i++) {
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

/** Reads 32 bits in little-endian order. */
export function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/**
 * HalfSipHash-1-3 (https://github.com/veorq/SipHash): 32 bits, with a secret key of 64 bits.
 * Without the key, nobody can choose strings with the same hash. Only for tables in memory: use
 * `KeyHash` for hashes that are stored or sent.
 */
export class SeededHash {
  readonly #seed = randomFillSync(new Int32Array(2));

  reseed(): void {
    randomFillSync(this.#seed);
  }

  of(bytes: Uint8Array, start: number, end: number): number {
    const k0 = this.#seed[0] ?? 0;
    const k1 = this.#seed[1] ?? 0;
    let v0 = k0;
    let v1 = k1;
    let v2 = 0x6c796765 ^ k0;
    let v3 = 0x74656462 ^ k1;
    // One round per word of four bytes, one for the remaining bytes and the length, and three more.
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

/** Array of the hashes of keys, as a bigint[] in binary format. */
export class KeyHashes {
  readonly #array: BinaryArray;
  readonly #hash = new KeyHash();
  readonly #flags: number;

  /** `flags` replaces the two lowest bits of each hash that `add` computes. */
  constructor(keys: number, flags: number) {
    this.#array = new BinaryArray(typeBigint, keys, 8 * keys);
    this.#flags = flags;
  }

  get array(): Buffer {
    return this.#array.bytes;
  }

  /** Adds the hash of the key in bytes [start, end). The key must be escaped for COPY. */
  add(bytes: Buffer, start: number, end: number): void {
    this.#update(bytes, start, end);
    this.addHash(this.#hash.high, (this.#hash.low & -4) | this.#flags);
  }

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
