import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { type CsvReading, readCsvHeader } from '../../../src/formats/csv-header.ts';
import { exportHeader } from '../../../src/formats/csv-text.ts';
import { hazardousText } from '../../support/formulas.ts';
import { openCsv } from './open-csv.ts';

const plain: CsvReading = {
  dialect: { delimiter: ',', quote: '"', escape: '"', comment: '', nulls: [] },
  ragged: 'refuse',
  strayQuotes: 'refuse' as const,
  headerRows: 1,
  columns: 0,
  map: {},
  strict: false,
};
const strict: CsvReading = { ...plain, strict: true };
const read = (text: string, final = false, reading = plain) =>
  readCsvHeader(Buffer.from(text), final, reading);

function refusal(text: string | Buffer, reading = plain): string[] {
  try {
    readCsvHeader(Buffer.from(text as string), true, reading);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as InputError).problems.map((each) => `${each.code}: ${each.message} (${each.details})`);
  }
  return [];
}

describe('csv header', () => {
  it('reads names without the blanks round them, quotes undone', () => {
    expect(read('user_id,"first ""name""","a\nb", plan \r\nx')).toEqual({
      header: { delimiter: ',', columns: ['user_id', 'first "name"', 'a\nb', 'plan'] },
      notes: [],
      end: 39,
      lines: 2,
    });
  });

  it('keeps the blanks of names in a file that we wrote', () => {
    const columns = ['user_id', ' plan', 'first_seen_at', 'last_seen_at'];
    expect(read(`${columns.join(',')}\n`)?.header.columns).toEqual(columns);
    expect(read('user_id, plan,sluice_message\n')?.header.columns[1]).toBe(' plan');
  });

  it('gives a name to columns without one, or with one that another has, and says so', () => {
    const found = read(',user_id,name, name ,name_2,name,\n');
    expect(found?.header.columns).toEqual([
      'column_1',
      'user_id',
      'name',
      'name_3',
      'name_2',
      'name_4',
      'column_7',
    ]);
    expect(found?.notes).toEqual([
      'Column 1 has no name in the header; it is called "column_1".',
      'The header names the column "name" more than once; column 4 is called "name_3".',
      'The header names the column "name" more than once; column 6 is called "name_4".',
      'Column 7 has no name in the header; it is called "column_7".',
    ]);
    expect(read('column_2,\n')?.header.columns).toEqual(['column_2', 'column_2_2']);
  });

  it('refuses two columns of the same key, which map may have made', () => {
    expect(refusal('user_id,name, user_id\n')).toEqual([
      'invalid_field: The header names the column "user_id" more than once (header: columns 1, 3)',
    ]);
    expect(refusal('id,name,id\n', { ...plain, map: { id: 'user_id' } })).toHaveLength(1);
    expect(refusal('event_type,user_id,metadata,metadata\n')).toHaveLength(1);
  });

  it('joins the names of several records', () => {
    const reading = { ...plain, headerRows: 2 };
    const found = read('User,,Plan\n id , name,\nu1,Ann,pro\n', false, reading);
    expect(found).toMatchObject({ header: { columns: ['User id', 'name', 'Plan'] }, lines: 2, end: 23 });
    expect(read('User,\n id', false, reading)).toBe(null);
  });

  it('with strict_header names every repeated and every missing name', () => {
    expect(refusal('a,b,a,,b,a,\n', strict)).toEqual([
      'invalid_field: The header names the column "a" more than once (header: columns 1, 3, 6)',
      'invalid_field: The header names the column "b" more than once (header: columns 2, 5)',
      'invalid_field: The header has a column without a name (header: columns 4, 7)',
    ]);
  });

  it('refuses more columns than there may be, and takes thousands', () => {
    const columns = (count: number) => Array.from({ length: count }, (_, i) => `c${i}`).join(',');
    expect(read(`${columns(2500)}\n`)?.header?.columns).toHaveLength(2500);
    expect(refusal(`${columns(10_001)}\n`)[0]).toContain('The header has 10001 columns');
  });

  it('refuses a header longer than its limit, before its end has come', () => {
    expect(() => read('x'.repeat((1 << 20) + 1))).toThrow('The header is longer than');
  });

  it('refuses a header that is not UTF-8', () => {
    expect(refusal(Buffer.from('user_id,pr\xe9nom\n', 'latin1'))[0]).toBe(
      'unsupported_format: The header is not UTF-8 text (header: byte 11 is not UTF-8: 0xE9)',
    );
  });
});

const open = (text: string) => openCsv(Buffer.from(text));
const records = 'u1,Ann,"Rome, I"\nu2,Bob,Oslo\nu3,Cy,Bern\n';

describe('a delimiter too many in the header', () => {
  it.each(['user_id,,name,city', ',user_id,name,city', 'user_id,name,city,', 'user_id,name,"",, city'])(
    'is no column if no record has a cell for it: %s',
    (header) => {
      const { header: found, notes } = open(`${header}\n${records}`);
      expect(found.columns).toEqual(['user_id', 'name', 'city']);
      expect(notes.join()).toContain('cells without a name for which no record has a cell');
    },
  );

  // proves: stray-quotes
  it('is a column if a record has a cell for it', () => {
    const columns = (text: string) => open(text).header.columns.join();
    expect(columns(`user_id,,name,city\n${records}u4,x,Dee,Nice\n`)).toBe('user_id,column_2,name,city');
    expect(columns('user_id,name,\nu1,Ann,\nu2,Bob,\n')).toBe('user_id,name,column_3');
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
    expect(() => open(`${header}\n${records}`)).toThrow(/quote/);
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
    expect(() => open(`${header}\n${rows}`)).toThrow(/alike at .* \(delimiter\)/);
  });
});

describe('a header behind which every record has an empty cell more', () => {
  // proves: shifted-columns
  it.each([
    'user_id,namecity,plan\nu1,Ann,Rome,\nu2,Bob,Oslo,\n',
    'user_id;name\nu1;Ann;\nu2;Bob;;\n',
    'user_id,name\nu1,Ann,""\n',
  ])('is refused, since it may lack a delimiter: %j', (text) => {
    expect(() => open(text)).toThrow(
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
    expect(() => open(text)).toThrow(/ruler.*comment/);
  });
});

describe('the last column', () => {
  const lines = (count: number, filled: number) =>
    Array.from({ length: count }, (_, n) => `u${n},a,${n < filled ? 'x' : ''}\n`).join('');
  const lastColumn = (text: string) => open(text).header.lastColumn;

  // proves: shifted-columns
  it('is known to be empty from ten records on, if it is so in most of them', () => {
    expect(lastColumn(`user_id,name,note\n${lines(10, 4)}`)).toBe('empty');
    expect(lastColumn(`user_id,name,note\n${lines(10, 5)}`)).toBeUndefined();
    expect(lastColumn(`user_id,name,note\n${lines(9, 0)}`)).toBeUndefined();
  });
});

const headerOf = (text: string) => open(`${text}\n`).header;
const defusedIn = (text: string) => headerOf(text).defused ?? 'kept';

const events = 'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata';
const stream = 'event_type,user_id,company_id,inserted_at,event_id,event_name,source,metadata';

describe('an apostrophe before a formula', () => {
  // proves: formulas
  it('is known as ours, or as part of the value, in each export as we write it, whatever its properties are called', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          hazardousText.filter((name) => name !== ''),
          { maxLength: 4 },
        ),
        fc.constantFrom(['user_id', 'company_id'], ['company_id']),
        fc.boolean(),
        (properties, ids, escapeFormulas) => {
          const names = [...ids, ...properties, 'first_seen_at', 'last_seen_at'];
          const text = exportHeader(names, escapeFormulas);
          expect(headerOf(text).columns).toHaveLength(names.length);
          expect(defusedIn(text)).toBe(escapeFormulas ? 'undone' : 'kept');
        },
      ),
    );
    for (const names of [events, stream]) {
      expect(defusedIn(exportHeader(names.split(','), true))).toBe('undone');
      expect(defusedIn(exportHeader(names.split(','), false))).toBe('kept');
    }
  });

  // proves: formulas
  it.each([
    events,
    stream,
    stream.replaceAll(',', ';'),
    'user_id,name,first_seen_at,last_seen_at',
    '"user_id","name","first_seen_at","last_seen_at"',
    'last_seen_at\tuser_id\tfirst_seen_at',
    '"user_id",name,first_seen_at,last_seen_at,more',
  ])('is in doubt where the columns are those of an export, but not as we write them: %s', (text) => {
    expect(defusedIn(text)).toBe('doubtful');
  });

  // proves: formulas
  it.each(['user_id,name', 'user_id,last_seen_at', `${events},more`, '"user_id",name'])(
    'is part of the value in any other file: %s',
    (text) => {
      expect(defusedIn(text)).toBe('kept');
    },
  );
});
