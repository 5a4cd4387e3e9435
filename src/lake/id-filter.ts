import { hash } from 'node:crypto';
import type { Entity } from '../domain/entity.ts';
import { MAX_LAKE_FILTER_BYTES } from '../domain/limits.ts';
import type { Texts } from './row-group.ts';

/*
 * A Bloom filter of the ids in a data file: a deletion opens only the files that may hold whom it deletes. Its length is a power of two,
 * and an id has the same bits in all lengths but for the highest of their numbers. So a filter is gathered at its greatest length, and
 * halved as long as that leaves half of the bits clear: some 10 bits an id, of which under 1 % of the ids that are not there pass.
 */

const bitsPerId = 7;
const minBytes = 64;

/** Two hashes, of which the numbers of all bits are made. */
type Hashes = readonly [number, number];

function hashesOf(entity: Entity, id: string): Hashes {
  const digest = hash('sha1', `${entity} ${id}`, 'buffer');
  return [digest.readUInt32LE(0), digest.readUInt32LE(4)];
}

const bitOf = ([first, second]: Hashes, n: number, bytes: number): number =>
  (first + Math.imul(n, second)) & (8 * bytes - 1);

export class IdFilter {
  readonly #bits = Buffer.alloc(MAX_LAKE_FILTER_BYTES);

  add(entity: Entity, id: string): void {
    const hashes = hashesOf(entity, id);
    for (let n = 0; n < bitsPerId; n++) {
      const bit = bitOf(hashes, n, this.#bits.length);
      this.#bits[bit >> 3] = (this.#bits[bit >> 3] as number) | (1 << (bit & 7));
    }
  }

  addTexts(entity: Entity, { memory, starts, ends }: Texts): void {
    for (let at = 0; at < starts.length; at++)
      this.add(entity, memory.toString('utf8', starts[at], ends[at]));
  }

  bytes(): Buffer {
    let bits: Buffer = this.#bits;
    for (let half = halve(bits); half !== null; half = halve(bits)) bits = half;
    return bits;
  }
}

/** Returns `null` if more than half of the bits would be set. */
function halve(bits: Buffer): Buffer | null {
  if (bits.length <= minBytes) return null;
  const half = Buffer.alloc(bits.length / 2);
  let set = 0;
  for (let at = 0; at < half.length; at++) {
    const byte = (bits[at] as number) | (bits[at + half.length] as number);
    half[at] = byte;
    for (let left = byte; left > 0; left &= left - 1) set++;
  }
  return set > 4 * half.length ? null : half;
}

/** Returns what tells whether a file may hold one of the ids, by its filter. A file without one may hold any. */
export function createFilterTest(entity: Entity, ids: Iterable<string>): (filter: Buffer | null) => boolean {
  const all = [...ids].map((id) => hashesOf(entity, id));
  return (filter) => {
    if (filter === null) return true;
    const holds = (hashes: Hashes): boolean => {
      for (let n = 0; n < bitsPerId; n++) {
        const bit = bitOf(hashes, n, filter.length);
        if (((filter[bit >> 3] as number) & (1 << (bit & 7))) === 0) return false;
      }
      return true;
    };
    return all.some(holds);
  };
}
