import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_STRAY_QUOTES, MAX_VALUE_BYTES } from '../../../src/domain/limits.ts';
import { readStrayQuote } from '../../../src/formats/csv-cell-table.ts';

const read = (line: string, columns: number) => readStrayQuote(line, ',', columns);

describe('a quote too many at the start of a cell', () => {
  // proves: stray-quotes
  it('leaves the line refused where the cell may go on in the next line', () => {
    expect(read('u1,"line one', 2)).toBeNull();
    expect(read('u1,"He said "hello', 2)).toBeNull();
    expect(read('u1,x,"', 3)).toBeNull();
  });

  // proves: stray-quotes
  it('leaves the line refused where anything else is wrong with its quotes, or a backslash shows another dialect', () => {
    const lines = [
      'u1,a"b,c',
      'u1,"a"b,c',
      'u1,"a" b,"c"',
      'u1,""a"",c',
      'u1,"a,b"c,"d"',
      'u1,"",b",c',
      'u1,"1,b"c,"d"',
      'u1,"2,"say \\"hi","b"',
    ];
    for (const line of lines) {
      for (let columns = 1; columns <= 5; columns++) expect(read(line, columns), line).toBeNull();
    }
  });

  it('is not looked for in lines that are too long or have too many quotes', () => {
    const quoted = (count: number) => ['u1', '"2', ...Array.from({ length: count }, () => '"a"')].join(',');
    expect(read(quoted(MAX_STRAY_QUOTES - 1), MAX_STRAY_QUOTES + 1)).not.toBeNull();
    expect(read(quoted(MAX_STRAY_QUOTES), MAX_STRAY_QUOTES + 2)).toBeNull();
    expect(read(`u1,"2,"${'a'.repeat(MAX_VALUE_BYTES)}"`, 3)).toBeNull();
  });

  // proves: stray-quotes
  it('gives the cells back that were written, wherever one quote was put before one of them', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', 'b', ',', '"', ' '), maxLength: 6 });
    const cells = fc.array(cell, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(cells, fc.nat(), (written, index) => {
        const stray = index % written.length;
        const line = written
          .map((text, at) => {
            const proper = /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
            return at === stray ? `"${proper}` : proper;
          })
          .join(',');
        const found = readStrayQuote(line, ',', written.length);
        if (found !== null)
          expect(found).toEqual(written.map((text, at) => (at === stray ? `"${text}` : text)));
      }),
      { numRuns: 3000 },
    );
  });
});
