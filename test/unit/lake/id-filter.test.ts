import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_LAKE_FILTER_BYTES } from '../../../src/domain/limits.ts';
import { createFilterTest, IdFilter } from '../../../src/lake/id-filter.ts';

function filterOf(ids: Iterable<string>): Buffer {
  const filter = new IdFilter();
  for (const id of ids) filter.add('users', id);
  return filter.bytes();
}

// proves: lake-erasure
test('a filter never rules out an id that was added, of either kind', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string()), (users, companies) => {
      const filter = new IdFilter();
      for (const id of users) filter.add('users', id);
      for (const id of companies) filter.add('companies', id);
      const bytes = filter.bytes();
      for (const id of users) expect(createFilterTest('users', ['nobody', id])(bytes)).toBe(true);
      for (const id of companies) expect(createFilterTest('companies', [id])(bytes)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test('a filter takes at most 20 bits an id, and lets less than 2 % of other ids through', () => {
  for (const count of [1_000, 5_000, 20_000]) {
    const ids = Array.from({ length: count }, (_, n) => `user-${n}`);
    const filter = filterOf([...ids, ...ids]);
    expect(filter.length * 8).toBeLessThanOrEqual(20 * count);
    const passed = Array.from({ length: 5_000 }, (_, n) => `other-${n}`).filter((id) =>
      createFilterTest('users', [id])(filter),
    );
    expect(passed.length).toBeLessThan(100);
  }
});

test('a filter has a bound: with more ids it lets more through', () => {
  const filter = filterOf(Array.from({ length: 400_000 }, (_, n) => `user-${n}`));
  expect(filter.length).toBe(MAX_LAKE_FILTER_BYTES);
  expect(createFilterTest('users', ['user-399999'])(filter)).toBe(true);
});

test('a file without a filter may hold anybody', () => {
  expect(createFilterTest('users', ['a'])(null)).toBe(true);
  expect(createFilterTest('users', [])(filterOf(['a']))).toBe(false);
});
