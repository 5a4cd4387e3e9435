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

/** Profiles to look up, as PostgreSQL reads arrays in binary: the n-th key goes with the n-th digest. */
export interface Claims {
  /** text[] */
  readonly keys: Buffer;
  /** uuid[] */
  readonly digests: Buffer;
  readonly count: number;
}

/**
 * The records of a chunk that need not be mapped, because the profile they name bears their digest. Before they are mapped, each says
 * by `offer` which profile it names, as far as that is seen at a glance. To be wrong costs time only: no other profile
 * bears the record's digest. Of records that name the same, none is passed over, since they are one row in the end.
 */
export class UnchangedRecords {
  readonly #digests: RecordDigests;
  /** The buffer of the keys. */
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

  /** `bytes`: where the keys of records are. */
  reset(bytes: Buffer = Buffer.alloc(0)): void {
    if (this.count > 0) this.#isUnchanged.fill(0);
    this.#bytes = bytes;
    for (const entity of entities) this.#offers[entity].reset();
  }

  /** Record `record` is likely to name the profile whose id is bytes [start, end), valid UTF-8. */
  offer(entity: Entity, record: number, start: number, end: number): void {
    if (end - start === 0 || end - start > MAX_ID_BYTES) return;
    // COPY writes all others as they are, and so does a buffer of rows.
    for (let at = start; at < end; at++) {
      const byte = this.#bytes[at] ?? 0;
      if (byte < SPACE || byte === BACKSLASH) return;
    }
    this.#offers[entity].add(this.#bytes, record, start, end);
  }

  /** Returns the claims to look up; null if there are none. */
  claims(entity: Entity): Claims | null {
    return this.#offers[entity].claims(this.#bytes, this.#digests);
  }

  /** Takes the places, from 1, of claims that do not hold. */
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

  /** Returns true if a mapped row has the key of a record that was passed over: it did not look so at a glance. */
  meets(rows: Readonly<Record<Entity, RowBuffer>>): boolean {
    return entities.some((entity) => {
      const offers = this.#offers[entity];
      if (offers.unchanged === 0) return false;
      return rows[entity].hasSome((bytes, start, end) =>
        this.has(offers.find(this.#bytes, bytes, start, end)),
      );
    });
  }

  /** Hashes of their keys, as a binary bigint[]. */
  keyHashes(entity: Entity): Buffer {
    return this.#offers[entity].keyHashes(this.#bytes);
  }
}

/** Records that name profiles of one entity. */
class Offers {
  readonly #keys = new KeyTable();
  readonly #order = new KeyOrder();
  /** Per key: its record. */
  #records = new Int32Array(initialRecords);
  /** The keys that are looked up, and those of them that are unchanged. */
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

  /** In about the order of the keys: neighbours are looked up in the same pages. */
  claims(bytes: Buffer, digests: RecordDigests): Claims | null {
    const keys = this.#keys;
    const order = this.#order.of(bytes, keys);
    const claimed = new Int32Array(keys.rows);
    let count = 0;
    let keyBytes = 0;
    for (let at = 0; at < keys.rows; at++) {
      const key = order?.[at] ?? at;
      if (!keys.isAlone(key)) continue;
      claimed[count++] = key;
      keyBytes += keys.end(key) - keys.start(key);
    }
    this.#claimed = claimed.subarray(0, count);
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

  /** Returns the records of the claims that hold. */
  keep(refuted: readonly number[]): Int32Array {
    const places = new Set(refuted);
    this.#unchanged = this.#claimed.filter((_, at) => !places.has(at + 1));
    return this.#unchanged.map((key) => this.#records[key] ?? 0);
  }

  /** Returns the record whose key is in bytes [start, end) of `other`, or -1. */
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
