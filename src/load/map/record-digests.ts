import { hash } from 'node:crypto';
import { word } from './key-table.ts';

const initialRecords = 16 * 1024;
const HEX_DIGITS = Buffer.from('0123456789abcdef');

export const DIGEST_CHARS = 32;

/**
 * Version of the mapping of records to rows. Must be raised when this mapping changes, so that
 * stored digests match no record.
 */
const mappingVersion = 2;

/**
 * Derives the key from the environment's `secret`, and from all that determines a row apart from
 * its record.
 */
export function digestKey(secret: string, mapping: readonly unknown[]): Int32Array {
  const bytes = hash('sha256', JSON.stringify([secret, mappingVersion, ...mapping]), 'buffer');
  return Int32Array.from({ length: 4 }, (_, word) => bytes.readInt32LE(4 * word));
}

/**
 * Chaskey-12 (https://mouha.be/chaskey, ISO/IEC 29192-6), a MAC of 128 bits in 32-bit arithmetic.
 * Without the key, nobody can make two records with the same digest. The SHA-256 of Node.js takes
 * twice as long for 130 bytes, mostly because of the overhead of the call.
 */
export class RecordMac {
  #key: Int32Array = new Int32Array(4);
  /**
   * Keys for the last block. They are doubled once for a complete block, and twice for a padded
   * one.
   */
  readonly #whole = new Int32Array(4);
  readonly #padded = new Int32Array(4);

  setKey(key: Int32Array): void {
    this.#key = key;
    double(key, this.#whole);
    double(this.#whole, this.#padded);
  }

  digest(bytes: Uint8Array, start: number, end: number, out: Int32Array, to: number): void {
    const length = end - start;
    const isWhole = length > 0 && (length & 15) === 0;
    const last = isWhole ? this.#whole : this.#padded;
    const l0 = last[0] as number;
    const l1 = last[1] as number;
    const l2 = last[2] as number;
    const l3 = last[3] as number;
    let v0 = this.#key[0] as number;
    let v1 = this.#key[1] as number;
    let v2 = this.#key[2] as number;
    let v3 = this.#key[3] as number;
    let at = start;
    for (let blocks = isWhole ? length >> 4 : (length >> 4) + 1; blocks > 0; blocks--, at += 16) {
      if (blocks > 1 || isWhole) {
        v0 ^= word(bytes, at);
        v1 ^= word(bytes, at + 4);
        v2 ^= word(bytes, at + 8);
        v3 ^= word(bytes, at + 12);
      } else {
        v0 ^= lastWord(bytes, at, end);
        v1 ^= lastWord(bytes, at + 4, end);
        v2 ^= lastWord(bytes, at + 8, end);
        v3 ^= lastWord(bytes, at + 12, end);
      }
      if (blocks === 1) {
        v0 ^= l0;
        v1 ^= l1;
        v2 ^= l2;
        v3 ^= l3;
      }
      for (let round = 0; round < 12; round++) {
        v0 = (v0 + v1) | 0;
        v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
        v0 = (v0 << 16) | (v0 >>> 16);
        v2 = (v2 + v3) | 0;
        v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
        v0 = (v0 + v3) | 0;
        v3 = ((v3 << 13) | (v3 >>> 19)) ^ v0;
        v2 = (v2 + v1) | 0;
        v1 = ((v1 << 7) | (v1 >>> 25)) ^ v2;
        v2 = (v2 << 16) | (v2 >>> 16);
      }
    }
    out[to] = v0 ^ l0;
    out[to + 1] = v1 ^ l1;
    out[to + 2] = v2 ^ l2;
    out[to + 3] = v3 ^ l3;
  }
}

/** Reads a word of the last block, which is padded with a byte of 1 and then with zeros. */
function lastWord(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let byte = 0; byte < 4 && at + byte <= end; byte++) {
    value |= (at + byte === end ? 1 : (bytes[at + byte] as number)) << (8 * byte);
  }
  return value;
}

/** Multiplies by two in the field of 2^128 elements. */
function double(from: Int32Array, to: Int32Array): void {
  let carry = (from[3] as number) >>> 31 === 0 ? 0 : 0x87;
  for (let i = 0; i < 4; i++) {
    const value = from[i] as number;
    to[i] = (value << 1) ^ carry;
    carry = value >>> 31;
  }
}

interface Bounds {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

interface Kinds {
  readonly some: boolean;
  of(record: number): unknown;
}

/**
 * Digests of the bytes of a chunk's records. A row gets the digest of its record unless another
 * record also contributed to the row (docs/decisions/loading.md, "Unchanged records").
 */
export class RecordDigests {
  readonly #records: Bounds;
  readonly #kinds: Kinds;
  readonly #mac = new RecordMac();
  #isOn = false;
  #bytes: Buffer = Buffer.alloc(0);
  #words = new Int32Array(4 * initialRecords);
  /**
   * Number of records whose digests were computed in advance. The digests of later records are
   * computed with their rows.
   */
  #done = 0;
  /** Record that was passed to `exclude` last. */
  #excluded = -1;

  constructor(records: Bounds, kinds: Kinds) {
    this.#records = records;
    this.#kinds = kinds;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** If `key` is `null`, there are no digests. */
  open(bytes: Buffer, key: Int32Array | null): void {
    this.#bytes = bytes;
    this.#isOn = key !== null;
    this.#done = 0;
    this.#excluded = -1;
    if (key !== null) this.#mac.setKey(key);
  }

  close(): void {
    this.open(Buffer.alloc(0), null);
  }

  add(start: number, end: number): void {
    this.#digest(this.#done++, start, end);
  }

  /**
   * Must be called for a record that became several rows or lost properties. Such a record is never
   * skipped as unchanged.
   */
  exclude(record: number): void {
    this.#excluded = record;
  }

  /** True if the record has a digest. False if the record was excluded or states its kind. */
  hasDigest(record: number): boolean {
    if (!this.#isOn || record === this.#excluded) return false;
    return !this.#kinds.some || this.#kinds.of(record) === null;
  }

  write(record: number, target: Buffer, at: number): number {
    if (record >= this.#done) {
      this.#digest(record, this.#records.starts[record] ?? 0, this.#records.ends[record] ?? 0);
    }
    let to = at;
    for (let index = 4 * record; index < 4 * record + 4; index++) {
      const value = this.#words[index] as number;
      for (let shift = 28; shift >= 0; shift -= 4)
        target[to++] = HEX_DIGITS[(value >>> shift) & 15] as number;
    }
    return to;
  }

  /** Writes a digest computed by `add`, as 16 bytes. */
  writeBytes(record: number, target: Buffer, at: number): number {
    let to = at;
    for (let index = 4 * record; index < 4 * record + 4; index++) {
      to = target.writeInt32BE(this.#words[index] as number, to);
    }
    return to;
  }

  #digest(record: number, start: number, end: number): void {
    if (4 * record + 4 > this.#words.length) {
      const grown = new Int32Array(Math.max(2 * this.#words.length, 8 * (record + 1)));
      grown.set(this.#words);
      this.#words = grown;
    }
    this.#mac.digest(this.#bytes, start, end, this.#words, 4 * record);
  }
}
