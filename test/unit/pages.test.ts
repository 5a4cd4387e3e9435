import { expect, test } from 'vitest';
import { takePage, walkPages } from '../../src/base/pages.ts';

test.each([
  [2, [[1, 2], [3, 4], [5]]],
  [5, [[1, 2, 3, 4, 5]]],
])('pages of %i have every item once, and none follows the last', async (limit, pages) => {
  const read = async (after: number) => {
    const found = [1, 2, 3, 4, 5].filter((item) => item > after).slice(0, limit + 1);
    return takePage(found, limit, (last) => last);
  };
  const walked: (readonly number[])[] = [];
  for await (const { items } of walkPages(0, read)) walked.push(items);
  expect(walked).toEqual(pages);
});

test('a list without items is one empty page', async () => {
  const walked: unknown[] = [];
  for await (const page of walkPages(0, async () => takePage([], 2, () => 0))) walked.push(page);
  expect(walked).toEqual([{ items: [], next: null }]);
});
