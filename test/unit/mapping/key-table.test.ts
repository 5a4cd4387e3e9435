import { expect, test } from 'vitest';
import { KeyTable, SeededHash } from '../../../src/load/map/key-table.ts';

const bytes = Buffer.from(Array.from({ length: 3000 }, (_, n) => `${n % 2000}`.padStart(4, '0')).join(''));

function chains(table: KeyTable): number[][] {
  for (let at = 0; at < bytes.length; at += 4) table.add(bytes, at, at + 4);
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  return rows.filter((row) => table.isHead(row)).map((row) => table.chain(row));
}

test('rows with one key are a chain, even if a hash collides until its next seed', () => {
  const expectedChains = Array.from({ length: 2000 }, (_, n) => (n < 1000 ? [n, n + 2000] : [n]));
  expect(chains(new KeyTable())).toEqual(expectedChains);
  const seeded = new SeededHash();
  let isBroken = true;
  const hash = {
    of: (...key: [Uint8Array, number, number]) => (isBroken ? 7 : seeded.of(...key)),
    reseed: () => {
      isBroken = false;
    },
  };
  expect(chains(new KeyTable(hash))).toEqual(expectedChains);
  expect(isBroken).toBe(false);
});

test('a hash depends on its bytes, their length and its seed, not on their position', () => {
  const hash = new SeededHash();
  const text = Buffer.from('abcdefghijk\0\0abcdefghijk');
  for (let length = 0; length <= 11; length++) {
    expect(hash.of(text, 13, 13 + length)).toBe(hash.of(text, 0, length));
  }
  const prefixes = Array.from({ length: 14 }, (_, length) => hash.of(text, 0, length));
  const changedHashes = Array.from({ length: 11 }, (_, at) => {
    const copy = Buffer.from(text);
    copy[at] = 1;
    return hash.of(copy, 0, 11);
  });
  expect(new Set([...prefixes, ...changedHashes]).size).toBe(25);
  expect(new SeededHash().of(text, 0, 11)).not.toBe(prefixes[11]);
});
