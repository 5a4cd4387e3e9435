import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CsvDialect, type CsvForm, marksOf } from '../../../src/formats/csv-dialect.ts';
import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import { createCsvScanner } from '../../../src/formats/csv-scanner.ts';
import { rewriteChunk } from '../../../src/load/receive/rewrite-csv.ts';
import { runs } from '../../support/runs.ts';
import { feedScanner } from '../formats/feed-scanner.ts';
import { bytewise } from '../formats/in-pieces.ts';
import { readCopyText } from './copy-text.ts';
import { readCsvRows } from './read-rows.ts';

const columns = ['user_id', 'a', 'b'];
const plainDialect: CsvDialect = { delimiter: ',', quote: '"', escape: '"', comment: '', nulls: [] };
const plainHeader: CsvHeader = { delimiter: ',', columns };
const formOf = (dialect: Partial<CsvDialect>, ragged: CsvForm['ragged'] = 'refuse'): CsvForm => ({
  dialect: { ...plainDialect, ...dialect },
  ragged,
});

/** Rewrites the records as the receiver does, and then reads them as the worker does. */
function rewriteAndRead(form: CsvForm, text: string | Buffer) {
  const chunk = { form, width: columns.length, bytes: Buffer.from(text), oversized: null };
  const plain = rewriteChunk(chunk);
  return { ...readPlain({ ...plainHeader, isRewritten: true }, Buffer.from(plain.text)), lines: plain.lines };
}

function readPlain(header: CsvHeader, text: string | Buffer) {
  const rows = readCsvRows(header, text);
  return {
    rows: readCopyText(rows.users.finish()).map(({ key, properties }) => [key, properties]),
    rejects: rows.rejects.map(({ code, row, line, raw }) => ({
      code,
      row,
      line,
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
  .map((fields) => ({ ...fields, escape: fields.escape === 'quote' ? fields.quote : fields.escape }));

const piece = fc.constantFrom(...'ab "\',;\t|~^¦\n\\#/ü', '\r\n', 'NULL', '\\N');

describe('a CSV in any dialect', () => {
  // proves: csv-dialects
  it('the receiver and the worker see the same records for any bytes and buffers', () => {
    const text = fc.array(piece, { maxLength: 40 }).map((parts) => parts.join(''));
    const input = fc.tuple(dialect, text, fc.uniqueArray(fc.nat(60), { maxLength: 8 }));
    fc.assert(
      fc.property(input, ([anyDialect, content, cuts]) => {
        const form = formOf(anyDialect);
        const marks = marksOf(form.dialect);
        const bytes = Buffer.from(content);
        const ends = [
          ...cuts.filter((at) => at > 0 && at < bytes.length).sort((a, b) => a - b),
          bytes.length,
        ];
        const allRecords = feedScanner(createCsvScanner(marks), bytes, [bytes.length]);
        expect(feedScanner(createCsvScanner(marks), bytes, ends)).toEqual(allRecords);
        expect(feedScanner(createCsvScanner(marks), bytes, bytewise(bytes))).toEqual(allRecords);
        const { records, lines } = rewriteAndRead(form, bytes);
        expect(lines).toBe(allRecords.reduce((sum, record) => sum + record.lines, 0));
        const count = allRecords.filter((record) => !record.blank).length;
        // A record without any value is a blank line, which is not counted. The scanner knows
        // neither escapes nor null marks, so it may count such a record.
        if (anyDialect.nulls.length > 0 || anyDialect.escape === '\\')
          expect(records).toBeLessThanOrEqual(count);
        else expect(records).toBe(count);
      }),
      { numRuns: runs(300) },
    );
  });

  it("a ' between letters is an apostrophe, in quotes or not, and no other is", () => {
    const form = formOf({ quote: "'", escape: "'" });
    const text =
      "u1,'O'Brien, J.',it's\nu2,'L'été','é'é'\nu3,'O''Neil',x\nu4,'kids' cap',x\nu5,kids' cap,x\n";
    expect(rewriteAndRead(form, text)).toMatchObject({
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
      rewriteAndRead(formOf({ quote: "'", escape: "'", delimiter: '¦' }), "u1¦'¦'¦'a'b'\nu2¦'¦'¦b\n"),
    ).toMatchObject({ rows: [['u2', { a: '¦', b: 'b' }]], rejects: [{ code: 'invalid_quote', row: 1 }] });
  });

  // proves: csv-dialects
  it('a refused record has the row and line of the source, and its rewritten text', () => {
    const text = "'u1';'a\nb';x\n# none\n'u2';'it''s';\\N;more\n'u3' x;1;2\nu4;1;2\n";
    const form = formOf({ delimiter: ';', quote: "'", escape: "'", comment: '#', nulls: ['\\N'] });
    const result = rewriteAndRead(form, text);
    expect(result.rows).toEqual([
      ['u1', { a: 'a\nb', b: 'x' }],
      ['u4', { a: '1', b: '2' }],
    ]);
    expect(result.rejects).toEqual([
      { code: 'wrong_field_count', row: 2, line: 5, raw: "u2,it's,,more" },
      { code: 'invalid_quote', row: 3, line: 6, raw: "'u3' x;1;2" },
    ]);
  });

  it('a backslash must precede a special character, or a letter of a database export', () => {
    const quotedForm = formOf({ escape: '\\' });
    expect(rewriteAndRead(quotedForm, 'u1,"a\\"b\\\\",C:\\\\x\nu2,"C:\\new",x\nu3,x\\,y,z\n')).toMatchObject({
      rows: [
        ['u1', { a: 'a"b\\', b: 'C:\\x' }],
        ['u3', { a: 'x,y', b: 'z' }],
      ],
      rejects: [{ code: 'invalid_escape', row: 2, raw: 'u2,"C:\\new",x' }],
    });
    const tabbedForm = formOf({ delimiter: '\t', quote: '', escape: '\\', nulls: ['\\N'] });
    expect(rewriteAndRead(tabbedForm, 'u1\ta\\nb\t\\N\nu2\tsay "hi"\tx\\\ny\nu3\t\\q\tx\n')).toMatchObject({
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

  it('surplus cells are accepted if empty, and records without any value are blank', () => {
    const result = readPlain(header, text);
    expect(result.rows).toEqual(fitting);
    expect(result.rejects.map(({ code, row, line }) => [code, row, line])).toEqual([
      ['wrong_field_count', 2, 3],
      ['wrong_field_count', 3, 4],
      ['wrong_field_count', 6, 11],
    ]);
  });

  it('missing cells are padded if ragged is pad, and surplus values are refused', () => {
    const result = rewriteAndRead(formOf({}, 'pad'), text);
    expect(result.rows).toEqual([fitting[0], ['u2', { a: '1' }], ...fitting.slice(1)]);
    expect(result.rejects.map(({ code, row }) => [code, row])).toEqual([
      ['wrong_field_count', 3],
      ['wrong_field_count', 6],
    ]);
  });
});
