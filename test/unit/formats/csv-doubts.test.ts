import { describe, expect, it } from 'vitest';
import type { SourceOptions } from '../../../src/domain/source.ts';
import { readCsvHeader } from '../../../src/formats/csv-header.ts';
import { sniffCsv } from '../../../src/formats/csv-sniff.ts';

interface Header {
  readonly columns: readonly string[];
  /** The text behind the header. */
  readonly rest: string;
  readonly notes: string;
}

function read(text: string, map: Record<string, string> = {}, source: SourceOptions = {}): Header {
  const bytes = Buffer.from(text);
  const sniffed = sniffCsv({ bytes, isWhole: true, hints: { source, map } });
  const found = readCsvHeader(bytes.subarray(sniffed.start), true, sniffed.reading);
  if (found === null) throw new Error('no header');
  return {
    columns: found.header.columns,
    rest: bytes.toString('utf8', sniffed.start + found.end),
    notes: [...sniffed.notes, ...found.notes].join(' '),
  };
}

const records = 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\nu3,Cy,Bern\n';

describe('a delimiter too many in the header', () => {
  it.each(['user_id,,name,city', ',user_id,name,city', 'user_id,name,city,', 'user_id,name,"",, city'])(
    'is no column if no record has a cell for it: %s',
    (header) => {
      const { columns, notes } = read(`${header}\n${records}`);
      expect(columns).toEqual(['user_id', 'name', 'city']);
      expect(notes).toContain('cells without a name for which no record has a cell');
    },
  );

  // proves: stray-quotes
  it('is a column if a record has a cell for it', () => {
    expect(read(`user_id,,name,city\n${records}u4,x,Dee,Nice\n`).columns).toEqual([
      'user_id',
      'column_2',
      'name',
      'city',
    ]);
    expect(read('user_id,name,\nu1,Ann,\nu2,Bob,\n').columns).toEqual(['user_id', 'name', 'column_3']);
  });
});

describe('a header with a quote too many, or without a delimiter beside a quote', () => {
  // proves: stray-quotes
  it.each([
    'user_id,"name,city',
    'user_id,"name,"city"',
    'user_id,""name",city',
    'user_id,na"me,city',
    'user_id,name"city"',
    'user_id,"name"city',
  ])('is refused, whatever the records say: %s', (header) => {
    expect(() => read(`${header}\n${records}`)).toThrow(/quote/);
  });
});

describe('a header with other delimiters than the records', () => {
  // proves: stray-quotes
  it.each([
    ['user_id;name;city', 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\n'],
    ['user_id name city', 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\n'],
    ['user_id name city', 'u1,Ann Bo,Rome\nu2,"Bob","Oslo town"\nu3,Eve,An der Ruhr\nu4,x y,z\n'],
    ['user_id,name,city', 'u1\tAnn\tRome, I\nu2\tBob\tOslo\n'],
    ['user_id;name;city', 'u1,Ann\nu2,Bob\n'],
    ['user_id;name;city', 'u1,a|b,c|d\nu2,a|b,c|d\n'],
  ])('is refused: the few records that fit it by chance would have wrong values: %s', (header, rows) => {
    expect(() => read(`${header}\n${rows}`)).toThrow(/alike at .* \(delimiter\)/);
  });
});

describe('a header behind which every record has an empty cell more', () => {
  // proves: shifted-columns
  it.each([
    'user_id,namecity,plan\nu1,Ann,Rome,\nu2,Bob,Oslo,\n',
    'user_id;name\nu1;Ann;\nu2;Bob;;\n',
    'user_id,name\nu1,Ann,""\n',
  ])('is refused, since it may lack a delimiter: %j', (text) => {
    expect(() => read(text)).toThrow(
      /empty cell behind the \d columns of the header.*ragged=pad.*\(header\)/,
    );
  });
});

describe('a table drawn for reading', () => {
  // proves: shifted-columns
  it.each([
    '| user_id | name |\n|---------|------|\n| u1 | Ann |\n',
    '+---------+------+\n| user_id | name |\n+---------+------+\n| u1      | Ann  |\n+---------+------+\n',
    ' user_id | name \n---------+------\n u1      | Ann\n(1 row)\n',
    'user_id,name\n-------,----\nu1     ,Ann\n',
    'user_id  name\n=======  ====\nu1       Ann\n',
  ])('is refused, whose padded cells would be other values, and its ruler a record: %j', (text) => {
    expect(() => read(text)).toThrow(/ruler.*comment/);
  });
});

describe('the last column', () => {
  const lines = (count: number, filled: number) =>
    Array.from({ length: count }, (_, n) => `u${n},a,${n < filled ? 'x' : ''}\n`).join('');
  const lastColumn = (text: string) => {
    const bytes = Buffer.from(text);
    const { reading } = sniffCsv({ bytes, isWhole: true, hints: { source: {}, map: {} } });
    return readCsvHeader(bytes, true, reading)?.header.lastColumn;
  };

  // proves: shifted-columns
  it('is known to be empty from ten records on, if it is so in most of them', () => {
    expect(lastColumn(`user_id,name,note\n${lines(10, 4)}`)).toBe('empty');
    expect(lastColumn(`user_id,name,note\n${lines(10, 5)}`)).toBeUndefined();
    expect(lastColumn(`user_id,name,note\n${lines(9, 0)}`)).toBeUndefined();
  });
});
