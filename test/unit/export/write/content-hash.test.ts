import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ContentHash, endsBlock } from '../../../../src/export/write/content-hash.ts';
import { csvText, ndjsonText, type RowBlock } from '../../../../src/export/write/rows.ts';
import { packSums, sumIn } from '../../../../src/lake/group-sums.ts';

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

/** Cuts a list at these places. */
function cut<T>(list: readonly T[], places: readonly number[]): T[][] {
  const ends = [...new Set(places.map((place) => place % (list.length + 1)))].sort((a, b) => a - b);
  return [...ends, list.length].map((end, at) => list.slice(ends[at - 1] ?? 0, end));
}

const ids = fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 300 });
const places = fc.array(fc.nat(), { maxLength: 8 });

// proves: loads-back
test('the content hash is that of the rows, however they come in pieces, read or as the sums of row groups', () => {
  fc.assert(
    fc.property(ids, places, fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), (list, at, areRead) => {
      const rows = list.map((id) => rowOf(id));
      const pieces = cut(rows, at);
      const expected = hashOf([rows]);
      expect(hashOf(pieces)).toBe(expected);
      const sums = packSums(
        pieces.map((piece) => {
          const content = new ContentHash('events', ndjsonText);
          content.add(blockOf(piece));
          return content.sum();
        }),
      );
      const content = new ContentHash('events', ndjsonText);
      for (const [group, piece] of pieces.entries()) {
        const sum = areRead[group] === true ? null : sumIn(sums, group);
        content.addGroup({ sum }, () => [blockOf(piece)]);
      }
      expect(content.digest()).toBe(expected);
    }),
  );
});

// proves: loads-back
test('another value, a row more, a row less or a row twice is another content hash', () => {
  const rows = Array.from({ length: 500 }, (_, n) => rowOf(`id-${n}`, n));
  const found = new Set([hashOf([rows]), hashOf([[]])]);
  for (let at = 0; at < rows.length; at++) {
    found.add(hashOf([rows.toSpliced(at, 1)]));
    found.add(hashOf([rows.toSpliced(at, 1, rowOf(`id-${at}`, -1))]));
    found.add(hashOf([rows.toSpliced(at, 0, rows[at] as string)]));
  }
  expect(found.size).toBe(2 + 3 * rows.length);
  const header = new ContentHash('events', csvText);
  header.addHeader(Buffer.from('event_id\n'));
  expect(header.digest()).not.toBe(hashOf([[]], csvText));
});

test('blocks end after some 64 rows, whatever ids are like', () => {
  for (const idOf of [String, (n: number) => `event-${n}`, (n: number) => `${n}`.padStart(40, '0')]) {
    const ends = Array.from({ length: 20_000 }, (_, n) => endsBlock(Buffer.from(`${idOf(n)}"`), 0));
    const share = 20_000 / ends.filter(Boolean).length;
    expect(share).toBeGreaterThan(40);
    expect(share).toBeLessThan(100);
  }
});
