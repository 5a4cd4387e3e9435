import { expect, test } from 'vitest';
import { KeyTable, SeededHash } from '../../../src/load/map/key-table.ts';

const bytes = Buffer.from(Array.from({ length: 3000 }, (_, n) => `${n % 2000}`.padStart(4, '0')).join(''));

function chains(table: KeyTable): number[][] {
  for (let at = 0; at < bytes.length; at += 4) table.add(bytes, at, at + 4);
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  return rows.filter((row) => table.isHead(row)).map((row) => table.chain(row));
}

test('rows with one key are a chain, also where a hash sends all keys to one slot until it gets another seed', () => {
  const expected = Array.from({ length: 2000 }, (_, n) => (n < 1000 ? [n, n + 2000] : [n]));
  expect(chains(new KeyTable())).toEqual(expected);
  const seeded = new SeededHash();
  let isBroken = true;
  const hash = {
    of: (...key: [Uint8Array, number, number]) => (isBroken ? 7 : seeded.of(...key)),
    reseed: () => {
      isBroken = false;
    },
  };
  expect(chains(new KeyTable(hash))).toEqual(expected);
  expect(isBroken).toBe(false);
});

test('a hash depends on every byte, on the length and on its seed, not on where the bytes stand', () => {
  const hash = new SeededHash();
  const text = Buffer.from('abcdefghijk\0\0abcdefghijk');
  for (let length = 0; length <= 11; length++) {
    expect(hash.of(text, 13, 13 + length)).toBe(hash.of(text, 0, length));
  }
  const prefixes = Array.from({ length: 14 }, (_, length) => hash.of(text, 0, length));
  const changed = Array.from({ length: 11 }, (_, at) => {
    const copy = Buffer.from(text);
    copy[at] = 1;
    return hash.of(copy, 0, 11);
  });
  expect(new Set([...prefixes, ...changed]).size).toBe(25);
  expect(new SeededHash().of(text, 0, 11)).not.toBe(prefixes[11]);
});
