import { expect, test } from 'vitest';
import { uuidv7 } from '../../src/base/uuid.ts';

test('ids are version 7 UUIDs with the time, and each is greater than the last', () => {
  const timeBefore = Date.now();
  const ids = Array.from({ length: 20_000 }, uuidv7);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(Number.parseInt((ids[0] ?? '').slice(0, 13).replace('-', ''), 16)).toBeGreaterThanOrEqual(
    timeBefore,
  );
});
