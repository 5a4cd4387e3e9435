import { MAX_ID_BYTES } from '../../base/limits.ts';
import { type Entity, entities } from '../../domain/entity.ts';
import { BinaryArray, typeText, typeUuid } from './binary-array.ts';
import { KeyOrder } from './key-order.ts';
import { doubled, KeyHashes, KeyTable } from './key-table.ts';
import type { RecordDigests } from './record-digests.ts';
import type { RowBuffer } from './row-buffer.ts';

const initialRecords = 16 * 1024;
const SPACE = 32;
const BACKSLASH = 92;

/**
 * The digests that the stored profiles are expected to have. The n-th digest belongs to the n-th
 * key. Each pair of a key and a digest is a claim, which may be false. Both arrays are in
 * PostgreSQL's binary format.
 */
export interface DigestClaims {
  /** A text[]. */
  readonly keys: Buffer;
  /** A uuid[]. */
  readonly digests: Buffer;
  readonly count: number;
}

/**
 * Records that need no mapping, because their stored profile already has their digest. Before a
 * record is mapped, the caller can only assume which profile it belongs to. A wrong assumption
 * costs only time, because no other profile has the digest of the record. If several records of the
 * chunk have the same id, none of them is skipped, because they become one row.
 */
export class UnchangedRecords {
  readonly #digests: RecordDigests;
  #bytes: Buffer = Buffer.alloc(0);
  readonly #offers = { users: new Offers(), companies: new Offers() };
  #isUnchanged = new Uint8Array(initialRecords);

  constructor(digests: RecordDigests) {
    this.#digests = digests;
  }

  get count(): number {
    return this.#offers.users.unchanged + this.#offers.companies.unchanged;
  }

  countOf(entity: Entity): number {
    return this.#offers[entity].unchanged;
  }

  /** Starts a chunk. `bytes` are the bytes of the chunk, which contain the ids of the records. */
  reset(bytes: Buffer = Buffer.alloc(0)): void {
    if (this.count > 0) this.#isUnchanged.fill(0);
    this.#bytes = bytes;
    for (const entity of entities) this.#offers[entity].reset();
  }

  /**
   * Adds a record whose profile is assumed to have the id in [start, end). The id must be valid
   * UTF-8.
   */
  offer(entity: Entity, record: number, start: number, end: number): void {
    if (end - start === 0 || end - start > MAX_ID_BYTES) return;
    // Ids that COPY would escape are left out.
    for (let at = start; at < end; at++) {
      const byte = this.#bytes[at] ?? 0;
      if (byte < SPACE || byte === BACKSLASH) return;
    }
    this.#offers[entity].add(this.#bytes, record, start, end);
  }

  claims(entity: Entity): DigestClaims | null {
    return this.#offers[entity].claims(this.#bytes, this.#digests);
  }

  /**
   * Marks records as unchanged if their profiles have the expected digests. `refuted` contains the
   * positions of the digests that do not match, counted from 1.
   */
  keepClaims(entity: Entity, refuted: readonly number[]): void {
    for (const record of this.#offers[entity].keep(refuted)) {
      if (record >= this.#isUnchanged.length) {
        const grown = new Uint8Array(Math.max(2 * this.#isUnchanged.length, record + 1));
        grown.set(this.#isUnchanged);
        this.#isUnchanged = grown;
      }
      this.#isUnchanged[record] = 1;
    }
  }

  has(record: number): boolean {
    return this.#isUnchanged[record] === 1;
  }

  /**
   * Returns whether a mapped row has the same key as a skipped record. This happens if the id of
   * the mapped record was not the assumed one.
   */
  meets(rows: Readonly<Record<Entity, RowBuffer>>): boolean {
    return entities.some((entity) => {
      const offers = this.#offers[entity];
      if (offers.unchanged === 0) return false;
      return rows[entity].hasSome((bytes, start, end) =>
        this.has(offers.find(this.#bytes, bytes, start, end)),
      );
    });
  }

  keyHashes(entity: Entity): Buffer {
    return this.#offers[entity].keyHashes(this.#bytes);
  }
}

class Offers {
  readonly #keys = new KeyTable();
  readonly #order = new KeyOrder();
  #records = new Int32Array(initialRecords);
  /** Indexes of keys. `#claimed`: all keys to look up. `#unchanged`: keys of unchanged profiles. */
  #claimed = noKeys;
  #unchanged = noKeys;

  get unchanged(): number {
    return this.#unchanged.length;
  }

  reset(): void {
    this.#keys.reset();
    this.#claimed = noKeys;
    this.#unchanged = noKeys;
  }

  add(bytes: Buffer, record: number, start: number, end: number): void {
    const key = this.#keys.add(bytes, start, end);
    if (key === this.#records.length) this.#records = doubled(this.#records);
    this.#records[key] = record;
  }

  /**
   * Returns the claims approximately in the order of their keys. PostgreSQL can then look them up
   * faster, because neighbouring keys are in the same pages.
   */
  claims(bytes: Buffer, digests: RecordDigests): DigestClaims | null {
    const keys = this.#keys;
    const order = this.#order.of(bytes, keys);
    const claimedKeys = new Int32Array(keys.rows);
    let count = 0;
    let keyBytes = 0;
    for (let at = 0; at < keys.rows; at++) {
      const key = order?.[at] ?? at;
      if (!keys.isAlone(key)) continue;
      claimedKeys[count++] = key;
      keyBytes += keys.end(key) - keys.start(key);
    }
    this.#claimed = claimedKeys.subarray(0, count);
    if (count === 0) return null;
    const texts = new BinaryArray(typeText, count, keyBytes);
    const uuids = new BinaryArray(typeUuid, count, 16 * count);
    for (const key of this.#claimed) {
      const [start, end] = [keys.start(key), keys.end(key)];
      const at = texts.reserve(end - start);
      for (let from = start; from < end; from++) texts.bytes[at + from - start] = bytes[from] as number;
      digests.writeBytes(this.#records[key] ?? 0, uuids.bytes, uuids.reserve(16));
    }
    return { keys: texts.bytes, digests: uuids.bytes, count };
  }

  keep(refuted: readonly number[]): Int32Array {
    const places = new Set(refuted);
    this.#unchanged = this.#claimed.filter((_, at) => !places.has(at + 1));
    return this.#unchanged.map((key) => this.#records[key] ?? 0);
  }

  /**
   * Returns the record whose id equals the bytes [start, end) of `other`, or -1 if there is none.
   */
  find(bytes: Buffer, other: Buffer, start: number, end: number): number {
    return this.#records[this.#keys.find(bytes, other, start, end)] ?? -1;
  }

  keyHashes(bytes: Buffer): Buffer {
    const hashes = new KeyHashes(this.unchanged, 0);
    for (const key of this.#unchanged) hashes.add(bytes, this.#keys.start(key), this.#keys.end(key));
    return hashes.array;
  }
}

const noKeys = new Int32Array(0);
