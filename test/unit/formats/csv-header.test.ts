import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { readCsvHeader, skipBlankLines } from '../../../src/formats/csv-header.ts';

const read = (text: string, final = false) => readCsvHeader(Buffer.from(text), final);

function refusal(text: string | Buffer): string[] {
  try {
    readCsvHeader(Buffer.from(text as string), true);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as InputError).problems.map((each) => `${each.code}: ${each.message} (${each.details})`);
  }
  return [];
}

describe('csv header', () => {
  it('finds the delimiter that is most frequent outside quotes', () => {
    const delimiter = (text: string) => read(`${text}\n`)?.header?.delimiter;
    expect(delimiter('a,b;c,d')).toBe(',');
    expect(delimiter('a;b;c,d')).toBe(';');
    expect(delimiter('a\tb\tc')).toBe('\t');
    expect(delimiter('a|b')).toBe('|');
    expect(delimiter('"a,b,c";d')).toBe(';');
    expect(delimiter('user_id')).toBe(',');
  });

  it('reads names as they are written, quotes undone', () => {
    expect(read('user_id,"first ""name""","a\nb", plan \r\nx')).toEqual({
      header: { delimiter: ',', columns: ['user_id', 'first "name"', 'a\nb', ' plan '] },
      end: 39,
      lines: 2,
    });
  });

  it('waits for the end of the header, and takes one without an end as the last', () => {
    expect(read('user_id,na')).toBe(null);
    expect(read('user_id,"na\n')).toBe(null);
    expect(read('user_id,name\r')).toBe(null);
    expect(read('user_id,name', true)?.header?.columns).toEqual(['user_id', 'name']);
  });

  it('passes over lines with nothing in them', () => {
    const blank = (text: string, final = false) => skipBlankLines(Buffer.from(text), final);
    expect(blank(' \t\r\n\r \n  user_id\n')).toEqual({ end: 7, lines: 3, isOpen: false });
    expect(blank('\n \r')).toEqual({ end: 1, lines: 1, isOpen: true });
    expect(blank('\n \r', true)).toEqual({ end: 3, lines: 2, isOpen: true });
    expect(blank('\n  ')).toEqual({ end: 1, lines: 1, isOpen: true });
  });

  it('names every repeated and every missing name', () => {
    expect(refusal('a,b,a,,b,a,\n')).toEqual([
      'invalid_field: The header names the column "a" more than once (header: columns 1, 3, 6)',
      'invalid_field: The header names the column "b" more than once (header: columns 2, 5)',
      'invalid_field: The header has a column without a name (header: columns 4, 7)',
    ]);
  });

  it('names no more problems, and of each no more columns, than anybody reads', () => {
    const twice = Array.from({ length: 5000 }, (_, i) => `c${i}`).join(',');
    expect(refusal(`${twice},${twice}\n`)).toHaveLength(100);
    expect(refusal(`${'a,'.repeat(9999)}a\n`)[0]).toMatch(/ 99, 100, …\)$/);
  });

  it('refuses a header with malformed quotes', () => {
    expect(refusal('a,b"c,d\n')[0]).toContain('invalid_field: The header has a quote inside a name');
    expect(refusal('a,"b,c\n1,2,3\n')[0]).toContain('an opening quote that is never closed');
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
      'unsupported_format: The header is not UTF-8 text (header)',
    );
  });
});
