import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NdjsonRows } from '../../../src/load/map/ndjson-rows.ts';
import { Rows } from '../../../src/load/map/rows.ts';
import { copiedFields } from './copy-text.ts';

const shared = new Rows();

function readUsers(records: readonly object[]): Rows['users'] {
  const bytes = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  shared.reset();
  Array.from(
    new NdjsonRows({ entity: 'users', map: {} }, shared).read(
      { byteStart: 0, byteEnd: bytes.length, firstRow: 1, firstLine: 1, rowCount: 0, oversized: false },
      bytes,
    ),
  );
  return shared.users;
}

const sorted = (text: Buffer): string[] => text.toString().split('\n').sort();

describe('the order of rows by key', () => {
  const plainKey = fc
    .string({ minLength: 1, maxLength: 4, unit: 'grapheme-ascii' })
    .filter((key) => key.trim() !== '');
  const anyKey = fc
    .string({ minLength: 1, maxLength: 9, unit: 'grapheme' })
    .filter((key) => key.trim() !== '');
  const records = (key: fc.Arbitrary<string>) =>
    fc.array(fc.record({ user_id: key, name: fc.string({ unit: 'grapheme' }) }), { minLength: 1 });

  it('ordering adds and loses no row, for any keys and for repeated keys', () => {
    fc.assert(
      fc.property(records(anyKey), (list) => {
        const users = readUsers(list);
        expect(sorted(users.finishInOrder())).toEqual(sorted(users.finish()));
      }),
    );
  });

  it('rows are ordered by the five characters after the common prefix of their keys', () => {
    fc.assert(
      fc.property(records(plainKey), fc.string({ maxLength: 6, unit: 'grapheme-ascii' }), (list, start) => {
        const users = readUsers(list.map((record) => ({ ...record, user_id: `u${start}${record.user_id}` })));
        const keys = copiedFields(users.finishInOrder()).map(([key]) => Buffer.from(key ?? ''));
        expect(keys).toEqual([...keys].sort(Buffer.compare));
      }),
    );
  });
});
