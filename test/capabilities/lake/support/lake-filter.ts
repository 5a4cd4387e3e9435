import { bitsOf } from '../../../../src/capabilities/lake/id-filter.ts';
import type { Entity } from '../../../../src/domain/entity.ts';

/**
 * Returns whether all bits of the id are set in the filter. `findHolders` does the same in
 * PostgreSQL.
 */
export function mayHold(filter: Buffer, entity: Entity, id: string): boolean {
  const { hash, first, step, bits, blockBytes } = bitsOf(entity, [id]);
  const start = blockBytes * ((hash[0] ?? 0) % (filter.length / blockBytes));
  return Array.from(
    { length: bits },
    (_, n) => ((first[0] ?? 0) + n * (step[0] ?? 0)) % (8 * blockBytes),
  ).every((bit) => (((filter[start + (bit >> 3)] as number) >> (bit & 7)) & 1) === 1);
}
