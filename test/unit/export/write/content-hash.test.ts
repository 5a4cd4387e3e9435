import fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvText, ndjsonText, type RowBlock } from '../../../../src/export/write/rows.ts';
import { ContentHash } from '../../../../src/export/write/write-export.ts';

const rowOf = (id: string, n = 0) => `${JSON.stringify({ event_id: id, n })}\n`;

function blockOf(rows: readonly string[]): RowBlock {
  let end = 0;
  const ends = rows.map((row) => {
    end += Buffer.byteLength(row);
    return end;
  });
  return { bytes: Buffer.from(rows.join('')), ends };
}

function hashOf(blocks: readonly (readonly string[])[], text = ndjsonText): string {
  const content = new ContentHash('events', text);
  for (const block of blocks) content.add(blockOf(block));
  return content.digest();
}

function cut<T>(list: readonly T[], places: readonly number[]): T[][] {
  const ends = [...new Set(places.map((place) => place % (list.length + 1)))].sort((a, b) => a - b);
  return [...ends, list.length].map((end, at) => list.slice(ends[at - 1] ?? 0, end));
}

const ids = fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 300 });
const places = fc.array(fc.nat(), { maxLength: 8 });

// proves: loads-back
test('the content hash depends on the rows, not on the blocks that bring them', () => {
  fc.assert(
    fc.property(ids, places, (list, at) => {
      const rows = list.map((id) => rowOf(id));
      expect(hashOf(cut(rows, at))).toBe(hashOf([rows]));
    }),
  );
});

// proves: loads-back
test('a changed, added, missing or repeated row changes the content hash', () => {
  const rows = Array.from({ length: 500 }, (_, n) => rowOf(`id-${n}`, n));
  const hashes = new Set([hashOf([rows]), hashOf([[]])]);
  for (let at = 0; at < rows.length; at++) {
    hashes.add(hashOf([rows.toSpliced(at, 1)]));
    hashes.add(hashOf([rows.toSpliced(at, 1, rowOf(`id-${at}`, -1))]));
    hashes.add(hashOf([rows.toSpliced(at, 0, rows[at] as string)]));
  }
  expect(hashes.size).toBe(2 + 3 * rows.length);
  const header = new ContentHash('events', csvText);
  header.addHeader(Buffer.from('event_id\n'));
  expect(header.digest()).not.toBe(hashOf([[]], csvText));
});
