import { expect, test } from 'vitest';
import type { CsvReadAs, ReadAs } from '../../../src/domain/source.ts';
import { describeReading } from '../../../src/load/import-file.ts';

const csv: CsvReadAs = {
  delimiter: ',',
  quote: '"',
  escape: '"',
  comment: '',
  nulls: [],
  ragged: 'refuse',
  headerLine: 1,
  columns: ['user_id'],
  columnCount: 1,
};
const readAs: ReadAs = {
  format: 'csv',
  encoding: 'utf-8',
  csv,
  sheet: null,
  sheets: null,
  member: null,
  notes: [],
};

test.each<[Partial<ReadAs>, string]>([
  [{}, 'CSV, utf-8, commas between cells, header on line 1'],
  [
    { encoding: 'windows-1252', csv: { ...csv, delimiter: ';', headerLine: 3 } },
    'CSV, windows-1252, semicolons between cells, header on line 3',
  ],
  [
    { csv: { ...csv, delimiter: '|~|', quote: '', escape: '', headerLine: null, ragged: 'pad' } },
    'CSV, utf-8, |~| between cells, no quotes, short records padded, no header',
  ],
  [
    { csv: { ...csv, delimiter: '\t', quote: "'", escape: '\\', comment: '#', nulls: ['NULL', '\\N'] } },
    "CSV, utf-8, tabs between cells, quotes ', backslash before quotes, no records in lines that start with #, empty where NULL or \\N, header on line 1",
  ],
  [{ format: 'ndjson', csv: null }, 'NDJSON, utf-8'],
  [
    { format: 'xlsx', encoding: null, sheet: 'Kunden', member: 'k.xlsx', csv: { ...csv } },
    'Excel workbook, k.xlsx of the archive, sheet Kunden, commas between cells, header on line 1',
  ],
])('the reading %j is described in one line', (reading, line) => {
  expect(describeReading({ readAs: { ...readAs, ...reading } })).toEqual([line]);
});

test('each note has its own line, without control characters', () => {
  const notes = ['Line 1 was passed over.', 'Column\u001b[31m 7 has no name.'];
  const [, ...lines] = describeReading({ readAs: { ...readAs, notes } });
  expect(lines).toEqual(['Line 1 was passed over.', 'Column�[31m 7 has no name.']);
});
