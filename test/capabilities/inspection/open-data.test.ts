import { describe, expect, test } from 'vitest';
import { inspectText as inspect } from './support/inspect-text.ts';

/** Files as public bodies publish them: the column that is the first to have a different value, and no date, in each record, or none. */
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

describe('a file none of whose columns is named like an id', () => {
  // proves: inspection
  test.each(files)('%s: each column shows what it holds, and %s is proposed', async (_, id, text) => {
    const found = await inspect(text, text.startsWith('#') ? { source: { comment: '#' } } : {});
    expect(found.problem?.problems[0].code).toBe('unrecognised_columns');
    expect(found.map).toEqual(id === null ? {} : { [id]: 'user_id' });
    expect(found.columns.length).toBeGreaterThan(1);
    for (const { type, filled, distinct, samples } of found.columns) {
      expect(type).not.toBeNull();
      expect(filled).toBeGreaterThanOrEqual(2);
      expect(samples.length).toBe(Math.min(3, distinct));
    }
    if (id === null) return;
    expect(found.columns.find(({ name }) => name === id)).toMatchObject({
      becomes: 'user_id',
      reason: 'the first column with a value in each of the 3 records looked at, and no value twice',
      filled: 3,
      distinct: 3,
    });
    const loaded = await inspect(text, {
      map: found.map,
      ...(text.startsWith('#') && { source: { comment: '#' } }),
    });
    expect([loaded.problem, loaded.rows]).toEqual([null, found.rows]);
  });

  // proves: inspection
  test('of a wide one fewer records are looked at, and all columns are shown', async () => {
    const columns = Array.from({ length: 10_000 }, (_, n) => `m${n}`);
    const lines = Array.from({ length: 500 }, (_, row) => `r${row}${',0'.repeat(columns.length - 1)}`);
    const found = await inspect(`${columns.join(',')}\n${lines.join('\n')}\n`);
    expect(found.map).toEqual({ m0: 'user_id' });
    expect(found.columns).toHaveLength(columns.length);
    expect(found.records).toBe(25);
    expect(found.whole_file).toBe(false);
  });
});
