import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_STRAY_QUOTES, MAX_VALUE_BYTES } from '../../../src/domain/limits.ts';
import { readStrayQuote } from '../../../src/formats/csv-cell-table.ts';

const read = (line: string, columns: number) => readStrayQuote(line, ',', columns);

describe('a quote too many at the start of a cell', () => {
  it('is part of an unquoted cell, if the cells behind it are well-formed and the line has as many cells as columns', () => {
    expect(read('u1,"12,Ann,"Acme, Inc.",x', 5)).toEqual(['u1', '"12', 'Ann', 'Acme, Inc.', 'x']);
    expect(read('"u1,12,"a ""b"" c","d"', 4)).toEqual(['"u1', '12', 'a "b" c', 'd']);
  });

  it('is part of a quoted cell that starts with two', () => {
    expect(read('u1,""Acme, Inc.",x', 3)).toEqual(['u1', '"Acme, Inc.', 'x']);
    expect(read('""u 1",x', 2)).toEqual(['"u 1', 'x']);
    expect(read('u1,x,""screen, 10"""', 3)).toEqual(['u1', 'x', '"screen, 10"']);
  });

  it('leaves the line refused where the cells then are not as many as the columns', () => {
    expect(read('u1,"12,Ann,"Acme, Inc.",x', 4)).toBeNull();
    expect(read('u1,"12,Ann,"Acme, Inc.",x', 6)).toBeNull();
  });

  // proves: stray-quotes
  it('leaves the line refused where the cell may go on in the next line', () => {
    expect(read('u1,"line one', 2)).toBeNull();
    expect(read('u1,"He said "hello', 2)).toBeNull();
    expect(read('u1,x,"', 3)).toBeNull();
  });

  // proves: stray-quotes
  it('leaves the line refused where anything else is wrong with its quotes', () => {
    const lines = [
      'u1,a"b,c',
      'u1,"a"b,c',
      'u1,"a" b,"c"',
      'u1,""a"",c',
      'u1,"a,b"c,"d"',
      'u1,"",b",c',
      'u1,"1,b"c,"d"',
    ];
    for (const line of lines) {
      for (let columns = 1; columns <= 5; columns++) expect(read(line, columns), line).toBeNull();
    }
  });

  it('leaves the line refused where two quotes are too many', () => {
    expect(read('"u1,"2,"a","b"', 4)).toBeNull();
  });

  it('leaves a line with a backslash before a quote refused: it was written in another dialect', () => {
    expect(read('u1,"2,"say \\"hi","b"', 4)).toBeNull();
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
