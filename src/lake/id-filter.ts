import type { Entity } from '../domain/entity.ts';
import { MAX_LAKE_FILTER_BYTES } from '../domain/limits.ts';

/*
 * A Bloom filter of the ids in a data file: a deletion opens only the files that may hold whom it deletes (`findHolders`). Its length is a
 * power of two, and an id has the same bits in all lengths but for the highest of their numbers. So a filter is gathered at its greatest
 * length, and halved as long as that leaves half of the bits clear: some 10 bits an id, of which under 1 % of the ids that are not there
 * pass.
 */

const bitsPerId = 7;
const minBytes = 64;
const wordBytes = Uint32Array.BYTES_PER_ELEMENT;
const wordBits = 8 * wordBytes;

/** Odd numbers, for the two hashes of which the numbers of all bits are made. */
const primes = [0x01000193, 0x9e3779b1] as const;
const seeds: Readonly<Record<Entity, number>> = { users: 0x811c9dc5, companies: 0x2c1b3c6d };

/** FNV-1a, and its bits mixed. */
function hashOf(entity: Entity, bytes: Uint8Array, start: number, end: number, prime: number): number {
  let hash = seeds[entity];
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), prime);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

export class IdFilter {
  readonly #words = new Uint32Array(MAX_LAKE_FILTER_BYTES / wordBytes);

  add(entity: Entity, bytes: Uint8Array, start = 0, end = bytes.length): void {
    const step = hashOf(entity, bytes, start, end, primes[1]);
    let bit = hashOf(entity, bytes, start, end, primes[0]);
    for (let n = 0; n < bitsPerId; n++) {
      const word = (bit >>> 5) & (this.#words.length - 1);
      this.#words[word] = (this.#words[word] as number) | (1 << (bit & (wordBits - 1)));
      bit = (bit + step) | 0;
    }
  }

  bytes(): Buffer {
    let words = this.#words;
    for (let half = halve(words); half !== null; half = halve(words)) words = half;
    return Buffer.from(words.buffer);
  }
}

/** Returns `null` if more than half of the bits would be set. */
function halve(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> | null {
  if (words.length * wordBytes <= minBytes) return null;
  const half = words.slice(0, words.length / 2);
  let set = 0;
  for (let at = 0; at < half.length; at++) {
    const word = (half[at] as number) | (words[at + half.length] as number);
    half[at] = word;
    set += countBits(word);
  }
  return set > (wordBits / 2) * half.length ? null : half;
}

function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** The bits of an id in a filter of `length` bits, a power of two: `first`, `first + step` … modulo the length, as many as `bits`. */
export interface IdBits {
  readonly first: readonly number[];
  readonly step: readonly number[];
  readonly bits: number;
}

export function bitsOf(entity: Entity, ids: Iterable<string>): IdBits {
  const all = Array.from(ids, (id) => Buffer.from(id));
  const [first, step] = primes.map((prime) => all.map((id) => hashOf(entity, id, 0, id.length, prime)));
  return { first: first as number[], step: step as number[], bits: bitsPerId };
}
