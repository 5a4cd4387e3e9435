import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdFilter, MAX_LAKE_FILTER_BYTES } from '../../../src/capabilities/lake/id-filter.ts';
import { runs } from '../../support/runs.ts';
import { mayHold } from './support/lake-filter.ts';

function filterOf(ids: Iterable<string>): Buffer {
  const filter = new IdFilter();
  for (const id of ids) filter.add('users', Buffer.from(id));
  return filter.bytes();
}

// proves: lake-erasure
test('a filter never excludes an id that was added, of either kind', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string()), (users, companies) => {
      const filter = new IdFilter();
      for (const id of users) filter.add('users', Buffer.from(id));
      for (const id of companies) filter.add('companies', Buffer.from(id));
      const bytes = filter.bytes();
      for (const id of users) expect(mayHold(bytes, 'users', id)).toBe(true);
      for (const id of companies) expect(mayHold(bytes, 'companies', id)).toBe(true);
    }),
    { numRuns: runs(100) },
  );
});

const otherIds = Array.from({ length: 5_000 }, (_, n) => `other-${n}`);

// proves: lake-erasure
test('a filter takes at most 20 bits an id, and admits less than 2% of other ids', () => {
  for (const count of [1_000, 20_000, 800_000]) {
    const ids = Array.from({ length: count }, (_, n) => `user-${n}`);
    const filter = filterOf(ids);
    expect(filter.length * 8).toBeLessThanOrEqual(20 * count);
    expect(otherIds.filter((id) => mayHold(filter, 'users', id)).length).toBeLessThan(100);
    expect(otherIds.filter((_, n) => mayHold(filter, 'companies', `user-${n}`)).length).toBeLessThan(100);
    if (count < 50_000) expect(filterOf([...ids, ...ids]).equals(filter)).toBe(true);
  }
});

test('a filter has a maximum size, beyond which it admits more ids', () => {
  const filter = filterOf(Array.from({ length: 1_800_000 }, (_, n) => `user-${n}`));
  expect(filter.length).toBe(MAX_LAKE_FILTER_BYTES);
  expect(mayHold(filter, 'users', 'user-1799999')).toBe(true);
});
