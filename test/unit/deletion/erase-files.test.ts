import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_REJECT_RAW_BYTES } from '../../../src/base/limits.ts';
import { createIdMatcher } from '../../../src/deletion/erase-files.ts';

const matchesId = (id: string, raw: string) => createIdMatcher([id])(Buffer.from(raw));
const cell = (id: string) => `"${id.replaceAll('"', '""')}"`;

const id = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((text) => text.trim() !== '' && text.isWellFormed());

test('any id matches in a record, as a cell, as JSON and as ASCII JSON', () => {
  fc.assert(
    fc.property(id, id, (searchedId, otherId) => {
      const ascii = JSON.stringify(searchedId).replace(
        /[^ -~]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      const matches = createIdMatcher([otherId, searchedId]);
      for (const raw of [
        `${cell(searchedId)},x,y`,
        `x;${cell(searchedId)};y`,
        `{"user_id":${JSON.stringify(searchedId)},"metadata":7}`,
        `{"a": 1, "user_id" : ${ascii}, "metadata": 7`,
      ]) {
        expect([raw, matches(Buffer.from(raw))]).toEqual([raw, true]);
      }
    }),
  );
});

test.each([
  ['12', '{"user_id":12}'],
  ['12', '{"user_id": 12.0 }'],
  ['u1', 'u1'],
  ['u1', '"u1,never closed'],
  ['u1', 'x\tu1\ty'],
  [' u1', ' u1,x'],
  ['::', '"a::b"'],
])('the id %j matches in %j', (searchedId, raw) => {
  expect(matchesId(searchedId, raw)).toBe(true);
});

test('every id matches in a record that was truncated', () => {
  expect(createIdMatcher(['u1'])(Buffer.alloc(MAX_REJECT_RAW_BYTES, 'x'))).toBe(true);
});

test.each([
  ['u1', 'u12,x'],
  ['u1', 'x,seen with u1 once'],
  ['1', '{"user_id":"u1","n":12}'],
  ['u%', 'u1,x'],
  ['a,b', 'a,c,b'],
])('the id %j does not match in %j', (searchedId, raw) => {
  expect(matchesId(searchedId, raw)).toBe(false);
});
