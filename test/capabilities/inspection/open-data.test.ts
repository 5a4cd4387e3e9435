import { expect, test } from 'vitest';
import { inspectText as inspect } from './support/inspect-text.ts';

/**
 * Files published by public bodies, each with a title, the column that identifies a record, and the
 * content. The column is the first one whose values are distinct, complete and not dates. `null` if
 * there is no such column.
 */
const files: readonly (readonly [string, string | null, string])[] = [
  [
    'election results',
    'AGS',
    '# Endgültiges Ergebnis\nLand;AGS;Gültig\nBB;12051000;40\nBB;12052000;41\nBB;12053000;40\n',
  ],
  [
    'earthquakes',
    null,
    'time,mag,place\n2024-01-01T00:10:00Z,4.1,Chile\n2024-01-01T00:20:00Z,4.1,Peru\n2024-01-01T00:31:00Z,5.0,Chile\n',
  ],
  ['school lunches', null, 'School,Menu,Price\nEast,A,3\nEast,B,3\nWest,A,3\n'],
  ['trees', 'OBJEKTID', 'Gattung,OBJEKTID,Höhe\nQuercus,1,12\nQuercus,2,\nTilia,3,12\n'],
];

// proves: inspection
test.each(files)('%s show the values of each column, with %s as the id', async (_, id, text) => {
  const inspection = await inspect(text, text.startsWith('#') ? { source: { comment: '#' } } : {});
  expect(inspection.problem?.problems[0].code).toBe('unrecognised_columns');
  expect(inspection.map).toEqual(id === null ? {} : { [id]: 'user_id' });
  expect(inspection.columns.length).toBeGreaterThan(1);
  for (const { type, filled, distinct, samples } of inspection.columns) {
    expect(type).not.toBeNull();
    expect(filled).toBeGreaterThanOrEqual(2);
    expect(samples.length).toBe(Math.min(3, distinct));
  }
  if (id === null) return;
  expect(inspection.columns.find(({ name }) => name === id)).toMatchObject({
    becomes: 'user_id',
    reason: 'the first column with a value in each of the 3 records looked at, and no value twice',
    filled: 3,
    distinct: 3,
  });
  const mapped = await inspect(text, {
    map: inspection.map,
    ...(text.startsWith('#') && { source: { comment: '#' } }),
  });
  expect([mapped.problem, mapped.rows]).toEqual([null, inspection.rows]);
});

// proves: inspection
test('fewer records of a wide file are read, and all its columns are shown', async () => {
  const columns = Array.from({ length: 10_000 }, (_, n) => `m${n}`);
  const lines = Array.from({ length: 500 }, (_, row) => `r${row}${',0'.repeat(columns.length - 1)}`);
  const inspection = await inspect(`${columns.join(',')}\n${lines.join('\n')}\n`);
  expect(inspection.map).toEqual({ m0: 'user_id' });
  expect(inspection.columns).toHaveLength(columns.length);
  expect(inspection.records).toBe(25);
  expect(inspection.whole_file).toBe(false);
});
