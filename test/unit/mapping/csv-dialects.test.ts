import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CsvDialect, marksOf } from '../../../src/formats/csv-dialect.ts';
import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import { createCsvScanner } from '../../../src/formats/csv-scanner.ts';
import { feedScanner } from '../formats/feed-scanner.ts';
import { readCopyText } from './copy-text.ts';
import { readCsvRows } from './read-rows.ts';

const columns = ['user_id', 'a', 'b'];
const plainDialect: CsvDialect = { delimiter: ',', quote: '"', escape: '"', comment: '', nulls: [] };
const headerOf = (dialect: Partial<CsvDialect>, ragged?: 'pad'): CsvHeader => ({
  delimiter: ',',
  columns,
  dialect: { ...plainDialect, ...dialect },
  ...(ragged && { ragged }),
});

function read(header: CsvHeader, text: string | Buffer) {
  const rows = readCsvRows(header, text);
  return {
    rows: readCopyText(rows.users.finish()).map(({ key, properties }) => [key, properties]),
    rejects: rows.rejects.map(({ code, row, line, byteOffset, raw }) => ({
      code,
      row,
      line,
      byteOffset,
      raw: Buffer.from(raw).toString(),
    })),
    records: rows.records.count,
  };
}

const dialect: fc.Arbitrary<CsvDialect> = fc
  .record({
    delimiter: fc.constantFrom(',', ';', '\t', '^', '||', ', ', '~|~', '¦', 'blanks'),
    quote: fc.constantFrom('"', "'", ''),
    escape: fc.constantFrom('quote', '\\', ''),
    comment: fc.constantFrom('', '#', '//'),
    nulls: fc.constantFrom([], ['\\N'], ['NULL', 'n/a']),
  })
  .map((each) => ({ ...each, escape: each.escape === 'quote' ? each.quote : each.escape }));

const piece = fc.constantFrom(...'ab "\',;\t|~^¦\n\\#/ü', '\r\n', 'NULL', '\\N');

describe('a CSV in any dialect', () => {
  // proves: csv-dialects
  it('has the same records to the receiver and to the worker, whatever the bytes and wherever buffers end', () => {
    const text = fc.array(piece, { maxLength: 40 }).map((parts) => parts.join(''));
    const input = fc.tuple(dialect, text, fc.uniqueArray(fc.nat(60), { maxLength: 8 }));
    fc.assert(
      fc.property(input, ([found, content, cuts]) => {
        const header = headerOf(found);
        const bytes = Buffer.from(content);
        const ends = [
          ...cuts.filter((at) => at > 0 && at < bytes.length).sort((a, b) => a - b),
          bytes.length,
        ];
        const whole = feedScanner(createCsvScanner(marksOf(header)), bytes, [bytes.length]);
        expect(feedScanner(createCsvScanner(marksOf(header)), bytes, ends)).toEqual(whole);
        const everyByte = Array.from({ length: bytes.length }, (_, at) => at + 1);
        expect(feedScanner(createCsvScanner(marksOf(header)), bytes, everyByte)).toEqual(whole);
        expect(read(header, bytes).records).toBe(whole.filter((record) => !record.blank).length);
      }),
      { numRuns: 300 },
    );
  });

  it("takes a ' between letters for an apostrophe, in quotes or not, and no other", () => {
    const header = headerOf({ quote: "'", escape: "'" });
    const text =
      "u1,'O'Brien, J.',it's\nu2,'L'été','é'é'\nu3,'O''Neil',x\nu4,'kids' cap',x\nu5,kids' cap,x\n";
    expect(read(header, text)).toMatchObject({
      rows: [
        ['u1', { a: "O'Brien, J.", b: "it's" }],
        ['u2', { a: "L'été", b: "é'é" }],
        ['u3', { a: "O'Neil", b: 'x' }],
      ],
      rejects: [
        { code: 'invalid_quote', row: 4 },
        { code: 'invalid_quote', row: 5 },
      ],
    });
    expect(
      read(headerOf({ quote: "'", escape: "'", delimiter: '¦' }), "u1¦'¦'¦'a'b'\nu2¦'¦'¦b\n"),
    ).toMatchObject({ rows: [['u2', { a: '¦', b: 'b' }]], rejects: [{ code: 'invalid_quote', row: 1 }] });
  });

  // proves: csv-dialects
  it('keeps of a refused record what the source has: its bytes, place and line', () => {
    const text = "'u1';'a\nb';x\n# none\n'u2';'it''s';\\N;more\n'u3' x;1;2\nu4;1;2\n";
    const header = headerOf({ delimiter: ';', quote: "'", escape: "'", comment: '#', nulls: ['\\N'] });
    const found = read(header, text);
    expect(found.rows).toEqual([
      ['u1', { a: 'a\nb', b: 'x' }],
      ['u4', { a: '1', b: '2' }],
    ]);
    expect(found.rejects).toEqual([
      { code: 'wrong_field_count', row: 2, line: 5, byteOffset: 20, raw: "'u2';'it''s';\\N;more" },
      { code: 'invalid_quote', row: 3, line: 6, byteOffset: 41, raw: "'u3' x;1;2" },
    ]);
  });

  it('refuses a backslash before a character that needs none, and reads the letters of databases where there are no quotes', () => {
    const quoted = headerOf({ escape: '\\' });
    expect(read(quoted, 'u1,"a\\"b\\\\",C:\\\\x\nu2,"C:\\new",x\nu3,x\\,y,z\n')).toMatchObject({
      rows: [
        ['u1', { a: 'a"b\\', b: 'C:\\x' }],
        ['u3', { a: 'x,y', b: 'z' }],
      ],
      rejects: [{ code: 'invalid_escape', row: 2, raw: 'u2,"C:\\new",x' }],
    });
    const tabbed = headerOf({ delimiter: '\t', quote: '', escape: '\\', nulls: ['\\N'] });
    expect(read(tabbed, 'u1\ta\\nb\t\\N\nu2\tsay "hi"\tx\\\ny\nu3\t\\q\tx\n')).toMatchObject({
      rows: [
        ['u1', { a: 'a\nb' }],
        ['u2', { a: 'say "hi"', b: 'x\ny' }],
      ],
      rejects: [{ code: 'invalid_escape', row: 3 }],
    });
  });
});

describe('records with more or fewer cells than the header', () => {
  const header: CsvHeader = { delimiter: ',', columns };
  const text = 'u1,1,2,,"", \nu2,1\nu3,1,2,x\nu4,"1",2,\nu5,"q\nr",2,\n,,\n"",""\n \nu6,1,"2",""""\n';
  const fitting = [
    ['u1', { a: '1', b: '2' }],
    ['u4', { a: '1', b: '2' }],
    ['u5', { a: 'q\nr', b: '2' }],
  ];

  it('are taken if all surplus cells are empty, and are blank lines if there is nothing in any cell', () => {
    const found = read(header, text);
    expect(found.rows).toEqual(fitting);
    expect(found.rejects.map(({ code, row, line }) => [code, row, line])).toEqual([
      ['wrong_field_count', 2, 3],
      ['wrong_field_count', 3, 4],
      ['wrong_field_count', 6, 11],
    ]);
  });

  it('are filled up with empty cells where ragged is pad, and refused for surplus cells with something in them', () => {
    for (const padded of [{ ...header, ragged: 'pad' as const }, headerOf({}, 'pad')]) {
      const found = read(padded, text);
      expect(found.rows).toEqual([fitting[0], ['u2', { a: '1' }], ...fitting.slice(1)]);
      expect(found.rejects.map(({ code, row }) => [code, row])).toEqual([
        ['wrong_field_count', 3],
        ['wrong_field_count', 6],
      ]);
    }
  });
});
