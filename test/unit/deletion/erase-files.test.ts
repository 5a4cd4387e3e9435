import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_REJECT_RAW_BYTES } from '../../../src/base/limits.ts';
import { createIdMatcher } from '../../../src/deletion/erase-files.ts';

const holds = (id: string, raw: string) => createIdMatcher([id])(Buffer.from(raw));
const cell = (id: string) => `"${id.replaceAll('"', '""')}"`;

const id = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((text) => text.trim() !== '' && text.isWellFormed());

describe('an id is found in the text of a refused record', () => {
  test('whatever it is made of, as a cell, as JSON, as JSON in ASCII, among others', () => {
    fc.assert(
      fc.property(id, id, (wanted, other) => {
        const ascii = JSON.stringify(wanted).replace(
          /[^ -~]/g,
          (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        const matches = createIdMatcher([other, wanted]);
        for (const raw of [
          `${cell(wanted)},x,y`,
          `x;${cell(wanted)};y`,
          `{"user_id":${JSON.stringify(wanted)},"metadata":7}`,
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
  ])('%j in %j', (wanted, raw) => {
    expect(holds(wanted, raw)).toBe(true);
  });

  test('and in every text that was cut', () => {
    expect(createIdMatcher(['u1'])(Buffer.alloc(MAX_REJECT_RAW_BYTES, 'x'))).toBe(true);
  });
});

test.each([
  ['u1', 'u12,x'],
  ['u1', 'x,seen with u1 once'],
  ['1', '{"user_id":"u1","n":12}'],
  ['u%', 'u1,x'],
  ['a,b', 'a,c,b'],
])('%j is not found in %j', (wanted, raw) => {
  expect(holds(wanted, raw)).toBe(false);
});
