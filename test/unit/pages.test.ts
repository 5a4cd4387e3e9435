import { expect, test } from 'vitest';
import { takePage, walkPages } from '../../src/base/pages.ts';

test.each([
  [2, [[1, 2], [3, 4], [5]]],
  [5, [[1, 2, 3, 4, 5]]],
])('pages of %i have every item once, and the last has no next page', async (limit, pages) => {
  const readPage = async (after: number) => {
    const pageItems = [1, 2, 3, 4, 5].filter((item) => item > after).slice(0, limit + 1);
    return takePage(pageItems, limit, (lastItem) => lastItem);
  };
  const walkedPages: (readonly number[])[] = [];
  for await (const { items } of walkPages(0, readPage)) walkedPages.push(items);
  expect(walkedPages).toEqual(pages);
});

test('a list without items is one empty page', async () => {
  const walkedPages: unknown[] = [];
  for await (const page of walkPages(0, async () => takePage([], 2, () => 0))) walkedPages.push(page);
  expect(walkedPages).toEqual([{ items: [], next: null }]);
});
