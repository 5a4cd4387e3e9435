import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCsvScanner } from '../../../src/formats/csv-scanner.ts';
import { feedScanner } from './feed-scanner.ts';
import { referenceCsv } from './reference-csv.ts';

const COMMA = 44;
const noLimit = 1_000_000;

function scan(text: string, maxBytes = noLimit, ends?: readonly number[]) {
  const bytes = Buffer.from(text, 'latin1');
  return feedScanner(createCsvScanner(COMMA, maxBytes), bytes, ends ?? [bytes.length]);
}

/** What was refused and kept, as text. */
function outline(text: string, maxBytes = noLimit) {
  return scan(text, maxBytes).map((record) => [record.problem, text.slice(record.start, record.contentEnd)]);
}

function* allTexts(alphabet: readonly string[], length: number): Generator<string> {
  if (length === 0) yield '';
  else for (const head of allTexts(alphabet, length - 1)) for (const last of alphabet) yield head + last;
}

const everyByte = (text: string) => Array.from({ length: text.length }, (_, index) => index + 1);

const csvText = fc
  .array(fc.constantFrom('a', 'b', '"', '"', '""', ',', '\n', '\r', '\r\n', '"a"', ',"', '",'), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''));

/** Ends of buffers that cut `length` bytes anywhere. */
const cuts = (length: number) =>
  fc.uniqueArray(fc.integer({ min: 1, max: Math.max(1, length) }), { maxLength: 12 }).map((at) => {
    const inside = at.filter((end) => end < length).sort((a, b) => a - b);
    return [...inside, length];
  });

describe('csv scanner', () => {
  it('agrees with the reference on every short text, whole and byte by byte', () => {
    for (let length = 1; length <= 6; length++) {
      for (const text of allTexts(['a', '"', ',', '\n', '\r'], length)) {
        const expected = referenceCsv(text, ',', noLimit);
        const whole = scan(text);
        const bytewise = scan(text, noLimit, everyByte(text));
        if (
          JSON.stringify(whole) === JSON.stringify(expected) &&
          JSON.stringify(bytewise) === JSON.stringify(expected)
        )
          continue;
        expect(whole, JSON.stringify(text)).toEqual(expected);
        expect(bytewise, `byte by byte: ${JSON.stringify(text)}`).toEqual(expected);
      }
    }
  });

  it('agrees with the reference on any text, any limit and any split', () => {
    const input = csvText.chain((text) =>
      fc.tuple(fc.constant(text), cuts(text.length), fc.integer({ min: 0, max: 30 })),
    );
    fc.assert(
      fc.property(input, ([text, ends, maxBytes]) => {
        const expected = referenceCsv(text, ',', maxBytes);
        expect(scan(text, maxBytes)).toEqual(expected);
        expect(scan(text, maxBytes, ends)).toEqual(expected);
        expect(scan(text, maxBytes, everyByte(text))).toEqual(expected);
      }),
      { numRuns: 5000 },
    );
  });

  it('finds the records that csv-parse finds in well-formed files', () => {
    const cell = fc.string({
      unit: fc.constantFrom('a', 'ü', ' ', ',', '"', '\n', '\r', '\r\n'),
      maxLength: 6,
    });
    const quotedCell = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const table = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 8 });
    const input = fc.tuple(table, fc.constantFrom('\n', '\r\n', '\r'), fc.boolean(), fc.boolean());
    fc.assert(
      fc.property(input, ([rows, terminator, quoteAll, lastTerminated]) => {
        const write = (text: string) => (quoteAll || /[",\r\n]/.test(text) ? quotedCell(text) : text);
        const lines = rows.map((row) => row.map(write).join(','));
        const bytes = Buffer.from(lines.join(terminator) + (lastTerminated ? terminator : ''));
        const records = feedScanner(createCsvScanner(COMMA), bytes, [bytes.length]);
        const options = { record_delimiter: terminator, relax_column_count: true };
        expect(records.map((each) => bytes.toString('utf8', each.start, each.contentEnd))).toEqual(lines);
        expect(records.flatMap((each) => parse(bytes.subarray(each.start, each.end), options))).toEqual(
          parse(bytes, options),
        );
      }),
    );
  });

  it('takes LF, CRLF and CR in one file, and a last line without one', () => {
    expect(outline('a,b\nc\r\nd\re')).toEqual([
      [null, 'a,b'],
      [null, 'c'],
      [null, 'd'],
      [null, 'e'],
    ]);
  });

  it('refuses one line for a stray opening quote, and nothing after it', () => {
    const text = 'u1,"Ann\nu2,Bob\nu3,"C, D"\nu4,Eve\n';
    expect(outline(text)).toEqual([
      ['unclosed_quote', 'u1,"Ann'],
      [null, 'u2,Bob'],
      [null, 'u3,"C, D"'],
      [null, 'u4,Eve'],
    ]);
  });

  it('refuses a quote inside a cell and text after a closing quote', () => {
    expect(outline('a"b,c\n"a"b,c\nd,e\n')).toEqual([
      ['invalid_quote', 'a"b,c'],
      ['invalid_quote', '"a"b,c'],
      [null, 'd,e'],
    ]);
  });

  it('gives up an open quote at the limit', () => {
    expect(outline('a,"b\nc\nd\ne",f\ng\n', 9)).toEqual([
      ['unclosed_quote', 'a,"b'],
      [null, 'c'],
      [null, 'd'],
      ['invalid_quote', 'e",f'],
      [null, 'g'],
    ]);
    expect(outline('a,"b\nc\nd\ne",f\ng\n', 13)).toEqual([
      [null, 'a,"b\nc\nd\ne",f'],
      [null, 'g'],
    ]);
  });

  it('refuses a line over the limit and keeps its neighbours', () => {
    expect(outline(`a\n${'x'.repeat(11)}\nb\n${'y'.repeat(10)}\n`, 10)).toEqual([
      [null, 'a'],
      ['record_too_large', 'x'.repeat(11)],
      [null, 'b'],
      [null, 'y'.repeat(10)],
    ]);
  });

  it('says about a long line that it is too large before its end is there', () => {
    const scanner = createCsvScanner(COMMA, 5);
    const bytes = Buffer.from('abcdefgh');
    expect(scanner.next(bytes, 0, 5, false)).toBe(-1);
    expect(scanner.problem).toBe(null);
    expect(scanner.next(bytes, 0, 6, false)).toBe(-1);
    expect(scanner.problem).toBe('record_too_large');
  });

  it('finds the same again after going back in a buffer, and something else after a reset', () => {
    const scanner = createCsvScanner(COMMA);
    const bytes = Buffer.from('ab\ncd\n');
    expect(scanner.next(bytes, 3, 6, true)).toBe(6);
    expect(scanner.next(bytes, 0, 6, true)).toBe(3);
    bytes.write('abcde\n');
    scanner.reset();
    expect(scanner.next(bytes, 0, 6, true)).toBe(6);
  });
});
