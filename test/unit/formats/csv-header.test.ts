import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/base/errors.ts';
import { type CsvReading, readCsvHeader } from '../../../src/formats/csv-header.ts';
import { exportHeader } from '../../../src/formats/csv-text.ts';
import { hazardousText } from '../../support/files/formulas.ts';
import { openCsv } from './open-csv.ts';

const plain: CsvReading = {
  dialect: { delimiter: ',', quote: '"', escape: '"', comment: '', nulls: [] },
  ragged: 'refuse',
  headerRows: 1,
  columns: 0,
};
const readHeader = (text: string, final = false, reading = plain) =>
  readCsvHeader(Buffer.from(text), final, reading);

function refusal(text: string | Buffer, reading = plain): string[] {
  try {
    readCsvHeader(Buffer.from(text as string), true, reading);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as InputError).problems.map(
      (problem) => `${problem.code}: ${problem.message} (${problem.details})`,
    );
  }
  return [];
}

describe('csv header', () => {
  it('names are read without surrounding blanks, and with quotes undone', () => {
    expect(readHeader('user_id,"first ""name""","a\nb", plan \r\nx')).toEqual({
      header: { delimiter: ',', columns: ['user_id', 'first "name"', 'a\nb', 'plan'] },
      notes: [],
      end: 39,
      lines: 2,
    });
  });

  it('names in a file that the service wrote keep their blanks', () => {
    const columns = ['user_id', ' plan', 'first_seen_at', 'last_seen_at'];
    expect(readHeader(`${columns.join(',')}\n`)?.header.columns).toEqual(columns);
    expect(readHeader('user_id, plan,sluice_message\n')?.header.columns[1]).toBe(' plan');
  });

  it('a column without a name gets its position as its name, with a note', () => {
    const header = readHeader(',user_id,name,\n');
    expect(header?.header.columns).toEqual(['column_1', 'user_id', 'name', 'column_4']);
    expect(header?.notes).toEqual([
      'Column 1 has no name in the header; it is called "column_1".',
      'Column 4 has no name in the header; it is called "column_4".',
    ]);
  });

  it('every repeated name is refused with the cure, even the name of a position', () => {
    const [first, ...otherProblems] = refusal('a,b, a,column_5,,b,a\n');
    expect(first).toMatch(
      /names the column "a" more than once\. Rename one, or skip .*header=none and skip_rows=1.*map=1=user_id \(header: columns 1, 3, 7\)$/,
    );
    expect(otherProblems.map((problem) => problem.slice(-22))).toEqual([
      expect.stringContaining('columns 2, 6)'),
      expect.stringContaining('columns 4, 5)'),
    ]);
  });

  it('the names of several header records are joined', () => {
    const reading = { ...plain, headerRows: 2 };
    const header = readHeader('User,,Plan\n id , name,\nu1,Ann,pro\n', false, reading);
    expect(header).toMatchObject({ header: { columns: ['User id', 'name', 'Plan'] }, lines: 2, end: 23 });
    expect(readHeader('User,\n id', false, reading)).toBe(null);
  });

  it('2,500 columns are accepted, and 10,001 are refused', () => {
    const columns = (count: number) => Array.from({ length: count }, (_, i) => `c${i}`).join(',');
    expect(readHeader(`${columns(2500)}\n`)?.header?.columns).toHaveLength(2500);
    expect(refusal(`${columns(10_001)}\n`)[0]).toContain('The header has 10001 columns');
  });

  it('a header over its limit is refused before its end has arrived', () => {
    expect(() => readHeader('x'.repeat((1 << 20) + 1))).toThrow('The header is longer than');
  });

  it('a header that is not UTF-8 is refused with the place of the byte', () => {
    expect(refusal(Buffer.from('user_id,pr\xe9nom\n', 'latin1'))[0]).toBe(
      'unsupported_format: The header is not UTF-8 text (header: byte 11 is not UTF-8: 0xE9)',
    );
  });
});

const open = (text: string) => openCsv(Buffer.from(text));
const records = 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\nu3,Cy,Bern\n';

it.each(['user_id,,name,city', ',user_id,name,city', 'user_id,name,city,', 'user_id,name,"",, city'])(
  'a surplus delimiter without cells is refused: %s',
  (header) => {
    expect(() => open(`${header}\n${records}`)).toThrow(/cells without a name.*surplus delimiters/);
  },
);

// proves: stray-quotes
it('a surplus delimiter with a cell in a record makes a column', () => {
  const columns = (text: string) => open(text).header.columns.join();
  expect(columns(`user_id,,name,city\n${records}u4,x,Dee,Nice\n`)).toBe('user_id,column_2,name,city');
  expect(columns('user_id,name,\nu1,Ann,\nu2,Bob,\n')).toBe('user_id,name,column_3');
});

// proves: stray-quotes
it.each([
  'user_id,"name,city',
  'user_id,"name,"city"',
  'user_id,""name",city',
  'user_id,na"me,city',
  'user_id,name"city"',
  'user_id,"name"city',
])('a stray quote in the header is refused: %s', (header) => {
  expect(() => open(`${header}\n${records}`)).toThrow(/quote/);
});

// proves: stray-quotes
it.each([
  ['user_id;name;city', 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\n'],
  ['user_id name city', 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\n'],
  ['user_id name city', 'u1,Ann Bo,Rome\nu2,"Bob","Oslo town"\nu3,Eve,An der Ruhr\nu4,x y,z\n'],
  ['user_id,name,city', 'u1\tAnn\tRome, I\nu2\tBob\tOslo\n'],
  ['user_id;name;city', 'u1,Ann\nu2,Bob\n'],
  ['user_id;name;city', 'u1,a|b,c|d\nu2,a|b,c|d\n'],
])('a header with other delimiters is refused, even if a few records fit: %s', (header, rows) => {
  expect(() => open(`${header}\n${rows}`)).toThrow(/alike at .* \(delimiter\)/);
});

// proves: shifted-columns
it.each([
  'user_id,namecity,plan\nu1,Ann,Rome,\nu2,Bob,Oslo,\n',
  'user_id;name\nu1;Ann;\nu2;Bob;;\n',
  'user_id,name\nu1,Ann,""\n',
])('a header followed by one empty cell in every record is refused: %j', (text) => {
  expect(() => open(text)).toThrow(/empty cell behind the \d columns of the header.*ragged=pad.*\(header\)/);
});

// proves: shifted-columns
it.each([
  '| user_id | name |\n|---------|------|\n| u1 | Ann |\n',
  '+---------+------+\n| user_id | name |\n+---------+------+\n| u1      | Ann  |\n+---------+------+\n',
  ' user_id | name \n---------+------\n u1      | Ann\n(1 row)\n',
  'user_id,name\n-------,----\nu1     ,Ann\n',
  'user_id  name\n=======  ====\nu1       Ann\n',
])('a drawn table with padded cells and a ruler is refused: %j', (text) => {
  expect(() => open(text)).toThrow(/ruler.*comment/);
});

describe('the last column', () => {
  const lines = (count: number, filled: number) =>
    Array.from({ length: count }, (_, n) => `u${n},a,${n < filled ? 'x' : ''}\n`).join('');
  const lastColumn = (text: string) => open(text).header.lastColumn;

  // proves: shifted-columns
  it('a mostly empty last column is recognised from ten records on', () => {
    expect(lastColumn(`user_id,name,note\n${lines(10, 4)}`)).toBe('empty');
    expect(lastColumn(`user_id,name,note\n${lines(10, 5)}`)).toBeUndefined();
    expect(lastColumn(`user_id,name,note\n${lines(9, 0)}`)).toBeUndefined();
  });
});

const headerOf = (text: string) => open(`${text}\n`).header;
const isDefused = (text: string) => headerOf(text).defused ?? false;

const events = 'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata';
const stream = 'event_type,user_id,company_id,inserted_at,event_id,event_name,source,metadata';

// proves: formulas
it('an apostrophe before a formula is removed from the values of an export', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        hazardousText.filter((name) => name !== ''),
        { maxLength: 4 },
      ),
      fc.constantFrom(['user_id', 'company_id'], ['company_id']),
      (properties, ids) => {
        const names = [...ids, ...properties, 'first_seen_at', 'last_seen_at'];
        const text = exportHeader(names, true);
        expect(headerOf(text).columns).toHaveLength(names.length);
        expect(isDefused(text)).toBe(true);
      },
    ),
  );
  for (const names of [events, stream, stream.replaceAll(',', ';')]) expect(isDefused(names)).toBe(true);
});

// proves: formulas
it.each(['user_id,name', 'user_id,last_seen_at', `${events},more`])(
  'an apostrophe before a formula stays in the values of another file: %s',
  (text) => {
    expect(isDefused(text)).toBe(false);
  },
);
