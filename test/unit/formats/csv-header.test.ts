import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { type CsvReading, readCsvHeader } from '../../../src/formats/csv-header.ts';

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
