import fc from 'fast-check';
import { expect, it } from 'vitest';
import { plainMarks } from '../../../src/formats/csv-dialect.ts';
import { createCsvScanner } from '../../../src/formats/csv-scanner.ts';
import { runs } from '../../support/runs.ts';
import { type FedRecord, feedScanner } from './feed-scanner.ts';

const noLimit = 1_000_000;

function scan(text: string, maxBytes = noLimit, ends?: readonly number[]) {
  const bytes = Buffer.from(text, 'latin1');
  return feedScanner(
    createCsvScanner(plainMarks({ delimiter: ',' }), maxBytes),
    bytes,
    ends ?? [bytes.length],
  );
}

function outline(text: string, maxBytes = noLimit) {
  return scan(text, maxBytes).map((record) => [record.problem, text.slice(record.start, record.contentEnd)]);
}

function* allTexts(alphabet: readonly string[], length: number): Generator<string> {
  if (length === 0) yield '';
  else
    for (const head of allTexts(alphabet, length - 1))
      for (const character of alphabet) yield head + character;
}

const everyByte = (text: string) => Array.from({ length: text.length }, (_, index) => index + 1);

const csvText = fc
  .array(fc.constantFrom('a', 'b', '"', '"', '""', ',', '\n', '\r', '\r\n', '"a"', ',"', '",'), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''));

const writeCell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const cuts = (length: number) =>
  fc.uniqueArray(fc.integer({ min: 1, max: Math.max(1, length) }), { maxLength: 12 }).map((places) => {
    const inside = places.filter((end) => end < length).sort((a, b) => a - b);
    return [...inside, length];
  });

function checkAgainstReference(text: string, records: readonly FedRecord[], maxBytes: number): void {
  let at = 0;
  for (const record of records) {
    expect(record.start).toBe(at);
    at = record.end;
    const wellFormed = referenceRecord(text, record.start, ',');
    const fits = wellFormed !== null && wellFormed.contentEnd - record.start <= maxBytes;
    const where = `record at ${record.start} of ${JSON.stringify(text)}`;
    expect(record.problem === null, where).toBe(fits);
    if (fits) expect([record.contentEnd, record.end], where).toEqual([wellFormed.contentEnd, wellFormed.end]);
    const content = text.slice(record.start, record.contentEnd);
    expect(record.blank, where).toBe(fits && /^(?:[ \t]*|"[ \t]*")(?:,(?:[ \t]*|"[ \t]*"))*$/.test(content));
    expect(record.lines, where).toBe(text.slice(record.start, at).match(/\r\n|\r|\n/g)?.length ?? 0);
  }
  expect(at).toBe(text.length);
}

it('every text of up to 5 characters has exactly its well-formed records accepted', () => {
  for (let length = 1; length <= 5; length++) {
    for (const text of allTexts(['a', '"', ',', '\n', '\r'], length)) {
      const records = scan(text);
      checkAgainstReference(text, records, noLimit);
      if (JSON.stringify(scan(text, noLimit, everyByte(text))) === JSON.stringify(records)) continue;
      expect(scan(text, noLimit, everyByte(text)), JSON.stringify(text)).toEqual(records);
    }
  }
});

it('any text has exactly its well-formed records accepted, for any limit and split', () => {
  const input = csvText.chain((text) =>
    fc.tuple(fc.constant(text), cuts(text.length), fc.integer({ min: 0, max: 30 })),
  );
  fc.assert(
    fc.property(input, ([text, ends, maxBytes]) => {
      const records = scan(text, maxBytes);
      checkAgainstReference(text, records, maxBytes);
      expect(scan(text, maxBytes, ends)).toEqual(records);
      expect(scan(text, maxBytes, everyByte(text))).toEqual(records);
    }),
    { numRuns: runs(2000) },
  );
});

// proves: quoted-cells
it('no line from inside a quoted cell is accepted behind a faulty quote', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', ' '), minLength: 1, maxLength: 3 });
  const phantom = fc.constantFrom('u9,phantom', 'x', 'u8,"q",z', ',', '"u7",y');
  const cell = fc.oneof(
    word,
    fc.array(fc.oneof(word, phantom), { minLength: 2, maxLength: 4 }).map((lines) => lines.join('\n')),
  );
  const record = fc.array(cell, { minLength: 2, maxLength: 3 });
  const table = fc.array(record, { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(table, fc.nat(), fc.constantFrom(' oops', 'x', ' "b" c', ' "'), (rows, at, junk) => {
      const lines = rows.map((row) => row.map((cell) => writeCell(cell)).join(','));
      const text = `${lines.join('\n')}\n`;
      const closing = [...text.matchAll(/[^,\n"]"(?=[,\n])/g)].map((match) => match.index + 2);
      const where = closing[at % closing.length];
      if (where === undefined) return;
      const faulty = text.slice(0, where) + junk + text.slice(where);
      const accepted = scan(faulty).filter((row) => row.problem === null);
      const originals = new Set(lines);
      for (const row of accepted)
        expect(originals, JSON.stringify(faulty)).toContain(faulty.slice(row.start, row.contentEnd));
    }),
    { numRuns: runs(2000) },
  );
});

// proves: quoted-cells
it.each<readonly [string, string, readonly string[]]>([
  ['LF, CRLF and CR end records, and the last line needs none', 'a,b\nc\r\nd\re', ['a,b', 'c', 'd', 'e']],
  [
    'a stray opening quote without another one costs only its line',
    'u1,"Ann\nu2,Bob\nu3,Eve\n',
    ['!unclosed_quote u1,"Ann', 'u2,Bob', 'u3,Eve'],
  ],
  [
    'a possible cell of several lines is refused as one record',
    'u1,"line one\nu2,phantom\nend" oops\nu3,x\nu4,"C, D"\n',
    ['!invalid_quote u1,"line one\nu2,phantom\nend" oops', 'u3,x', 'u4,"C, D"'],
  ],
  [
    'scanning continues behind a quote that may end a cell',
    'u1,"Ann\nu2,Bob\nu3,"C, D"\nu4,Eve\n',
    ['!invalid_quote u1,"Ann\nu2,Bob\nu3,"C, D"', 'u4,Eve'],
  ],
  [
    'a cell of several lines with undoubled quotes is refused as one record',
    'u1,"say "hi"\nu2,phantom\nend",z\nu3,x\n',
    ['!invalid_quote u1,"say "hi"\nu2,phantom\nend",z', 'u3,x'],
  ],
  [
    'no record starts inside a closed cell behind a fault on its line',
    'u1,"a"b,"x\nu2,phantom\ny"\nu3,x\n',
    ['!invalid_quote u1,"a"b,"x\nu2,phantom\ny"', 'u3,x'],
  ],
  [
    'a record starts behind the line of a stray quote, even after a cell of several lines',
    '"a\nb","stray\nc,d\n',
    ['!unclosed_quote "a\nb","stray', 'c,d'],
  ],
  [
    'a quote inside a cell and text after a closing quote are refused',
    'a"b,c\n"a"b,c\nd,e\n',
    ['!invalid_quote a"b,c', '!invalid_quote "a"b,c', 'd,e'],
  ],
])('%s', (_, text, records) => {
  const lines = outline(text).map(([problem, content]) =>
    problem === null ? content : `!${problem} ${content}`,
  );
  expect(lines).toEqual(records);
});

// proves: quoted-cells
it('a closed cell over the limit is refused as one record with its true end', () => {
  const text = 'a,"b\nc,d\nd,e\ne",f\ng\n';
  expect(outline(text, 9)).toEqual([
    ['record_too_large', 'a,"b\nc,d\nd,e\ne",f'],
    [null, 'g'],
  ]);
  expect(scan(text, 9, everyByte(text))).toEqual(scan(text, 9));
  expect(outline(text, 17)).toEqual([
    [null, 'a,"b\nc,d\nd,e\ne",f'],
    [null, 'g'],
  ]);
});

/**
 * A simple implementation to compare the scanner with. `text` is decoded as latin1, so one
 * character is one byte.
 */
function referenceRecord(
  text: string,
  start: number,
  delimiter: string,
): { readonly contentEnd: number; readonly end: number } | null {
  let at = start;
  for (;;) {
    const isQuoted = text[at] === '"';
    const cell = isQuoted ? /"(?:[^"]|"")*"(?!")/y : new RegExp(`[^"\\r\\n${delimiter}]*`, 'y');
    cell.lastIndex = at;
    const match = cell.exec(text);
    if (match === null) return null;
    at += match[0].length;
    const next = text[at];
    if (next === undefined) return { contentEnd: at, end: at };
    if (next === '\n' || next === '\r') {
      return { contentEnd: at, end: at + (text.startsWith('\r\n', at) ? 2 : 1) };
    }
    if (next !== delimiter) return null;
    at++;
  }
}
