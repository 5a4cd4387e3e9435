import type { Entity } from '../../src/domain/entity.ts';
import { bitsOf } from '../../src/lake/id-filter.ts';

/** Tells whether all bits of the id are set, as PostgreSQL does (`findHolders`). */
export function mayHold(filter: Buffer, entity: Entity, id: string): boolean {
  const { first, step, bits } = bitsOf(entity, [id]);
  return Array.from({ length: bits }, (_, n) => {
    const bit = BigInt(first[0] ?? 0) + BigInt(n) * BigInt(step[0] ?? 0);
    return Number(BigInt.asUintN(64, bit) & BigInt(8 * filter.length - 1));
  }).every((bit) => (((filter[bit >> 3] as number) >> (bit & 7)) & 1) === 1);
}
