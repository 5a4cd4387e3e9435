import type { Entity } from '../../domain/entity.ts';
import type { IdBits } from './file-store.ts';

/**
 * Maximum size of a filter, which is enough for 1 600 000 ids at 10 bits each. With more ids, a
 * filter is less exact.
 */
export const MAX_LAKE_FILTER_BYTES = 2 * 1024 * 1024;

/*
 * A Bloom filter of the ids in a data file, with which a deletion can skip most files
 * (`findHolders`). All bits of an id are in one block, so a test needs only one memory access. The
 * filter is halved until more than half of its bits would be set. The filter then has about 10 bits
 * per id and 1 % false positives.
 */

const bitsPerId = 7;
const blockBytes = 64;
const blockBits = 8 * blockBytes;
const wordBits = 32;
const blockWords = blockBits / wordBits;

const seeds: Readonly<Record<Entity, number>> = { users: 0x811c9dc5, companies: 0x2c1b3c6d };

/** Returns the FNV-1a hash with its bits mixed again. The lowest bits select the block. */
function hashOf(entity: Entity, bytes: Uint8Array, start: number, end: number): number {
  let hash = seeds[entity];
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * The bits of an id are at equal distances in its block. `firstOf` returns the first bit, `stepOf`
 * the distance.
 */
const firstOf = (hash: number): number => Math.imul(hash, 0x9e3779b1) >>> 23;
const stepOf = (hash: number): number => ((Math.imul(hash, 0x9e3779b1) >>> 14) & (blockBits - 1)) | 1;

export class IdFilter {
  readonly #words = new Uint32Array((MAX_LAKE_FILTER_BYTES * 8) / wordBits);

  add(entity: Entity, bytes: Uint8Array, start = 0, end = bytes.length): void {
    const hash = hashOf(entity, bytes, start, end);
    const block = (hash * blockWords) & (this.#words.length - 1);
    const step = stepOf(hash);
    let bit = firstOf(hash);
    for (let n = 0; n < bitsPerId; n++) {
      const word = block + (bit >>> 5);
      this.#words[word] = (this.#words[word] as number) | (1 << (bit & (wordBits - 1)));
      bit = (bit + step) & (blockBits - 1);
    }
  }

  bytes(): Buffer {
    let words = this.#words;
    for (let half = halve(words); half !== null; half = halve(words)) words = half;
    return Buffer.from(words.buffer);
  }
}

/** Returns a filter of half the size, or `null` if more than half of its bits would be set. */
function halve(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> | null {
  if (words.length <= blockWords) return null;
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

/** The block is `hash` modulo the number of blocks. The bits in it are `first`, `first + step` … */
export function bitsOf(entity: Entity, ids: Iterable<string>): IdBits {
  const hash = Array.from(ids, (id) => {
    const bytes = Buffer.from(id);
    return hashOf(entity, bytes, 0, bytes.length);
  });
  return { hash, first: hash.map(firstOf), step: hash.map(stepOf), bits: bitsPerId, blockBytes };
}
