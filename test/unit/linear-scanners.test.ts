import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, test } from 'vitest';
import { createGlob } from '../../src/base/glob.ts';
import { createIdMatcher } from '../../src/deletion/erase-files.ts';
import type { ChunkRange } from '../../src/domain/load.ts';
import { sniffCsv } from '../../src/formats/csv-sniff.ts';
import { detectFormat, layoutOfJson } from '../../src/formats/detect-format.ts';
import { arrayToNdjson, documentToNdjson } from '../../src/formats/json-document.ts';
import { plainLinesOf, sequenceToNdjson } from '../../src/formats/json-lines.ts';
import { parseJsonText } from '../../src/formats/json-text.ts';
import { parquetToNdjson } from '../../src/formats/parquet.ts';
import { findEncoding, toUtf8 } from '../../src/formats/text-encoding.ts';
import { planFile } from '../../src/load/map/column-plan.ts';
import { CsvRows } from '../../src/load/map/csv-rows.ts';
import { KeyTable } from '../../src/load/map/key-table.ts';
import { NdjsonRows } from '../../src/load/map/ndjson-rows.ts';
import { Rows } from '../../src/load/map/rows.ts';
import { RecordIndex } from '../../src/load/receive/record-index.ts';
import { rewriteChunk } from '../../src/load/receive/rewrite-csv.ts';
import { RejectCauses } from '../../src/load/rejects/causes.ts';
import { collidingKeys } from '../support/colliding-keys.ts';
import { expectLinear, KiB, numbered, repeated, type Scanner } from '../support/linear.ts';
import { inPieces } from './formats/in-pieces.ts';

const bytesOf =
  (...unit: number[]) =>
  (bytes: number): Buffer =>
    Buffer.alloc(bytes, Buffer.from(unit));
const latin1 = (text: (number: number) => string) => (bytes: number) =>
  Buffer.from(numbered(text)(bytes).toString('utf8'), 'latin1');

/** Indexes buffers of 256 KiB, as the receiver makes them, or of another size. */
const index =
  (format: 'csv' | 'ndjson', pieceBytes = 256 * KiB) =>
  (input: Buffer): void => {
    const records = new RecordIndex(format, 2 * KiB * KiB, 0);
    try {
      for (let at = 0; at < input.length; at += pieceBytes) {
        for (const _ of records.add(input.subarray(at, at + pieceBytes)));
      }
      for (const _ of records.end());
    } catch {
      // A refusal is also an answer.
    }
  };

/** Sniffs twice: with a header that names an id, and without a header. */
const sniff = (input: Buffer): void => {
  for (const source of [{}, { header: 'none' as const }]) {
    try {
      sniffCsv({ bytes: input, isWhole: true, hints: { source, map: {} } });
    } catch {
      // A refusal is also an answer.
    }
  }
};

const drain = async (source: AsyncIterable<Buffer>): Promise<void> => {
  try {
    for await (const _ of source);
  } catch {
    // A refusal is also an answer.
  }
};

const transcode = (name: string) => (input: Buffer) =>
  drain(toUtf8(inPieces(input, every(input, 1001)), name));
const encoding = (input: Buffer): void => {
  try {
    findEncoding(input, true, null);
  } catch {
    // As above.
  }
};

const array = (input: Buffer) => drain(arrayToNdjson(inPieces(input, every(input, 256 * KiB)), 'users'));
const sequence = (input: Buffer) => drain(sequenceToNdjson(inPieces(input, every(input, 256 * KiB))));
const documentAt =
  (path: readonly string[] | null) =>
  (input: Buffer): Promise<void> =>
    drain(
      documentToNdjson(
        inPieces(input, every(input, 256 * KiB)),
        { path, isOfRecord: (key) => key === 'user_id' },
        [],
      ),
    );
const plainLines = (input: Buffer) =>
  drain(plainLinesOf(inPieces(input, every(input, 256 * KiB)), { ends: 'cr', commas: true }));
const layout = (input: Buffer): void => {
  layoutOfJson(input, true, 'ndjson', { contentType: 'application/json' });
};
const every = (input: Buffer, bytes: number): number[] =>
  Array.from({ length: Math.floor(input.length / bytes) }, (_, piece) => (piece + 1) * bytes);

const parquet = (input: Buffer) =>
  drain(parquetToNdjson({ bytes: input.length, read: async (start, end) => input.subarray(start, end) }));

const parquetOf =
  (shapeOf: (bytes: number) => { columns: number; rows: number }, valueAt: (row: number) => unknown) =>
  (bytes: number): Buffer => {
    const { columns, rows } = shapeOf(bytes);
    const data = Array.from({ length: rows }, (_, row) => valueAt(row));
    const columnData = Array.from({ length: columns }, (_, column) => ({ name: `c${column}`, data }));
    return Buffer.from(parquetWriteBuffer({ columnData } as never));
  };

const rows = new Rows();
const chunk = (input: Buffer): ChunkRange => ({
  byteStart: 0,
  byteEnd: input.length,
  firstRow: 1,
  firstLine: 1,
  rowCount: 0,
  oversized: false,
});

const csvRows =
  (columns: readonly string[]) =>
  (input: Buffer): void => {
    rows.reset();
    Array.from(
      new CsvRows({ delimiter: ',', columns }, planFile({ columns }, {}, 'auto'), rows).read(
        chunk(input),
        input,
      ),
    );
    rows.users.finish();
  };

const dialect =
  (escapes: string, delimiter: string, nulls: readonly string[] = ['n/a', 'x']) =>
  (input: Buffer): void => {
    const form = { delimiter, quote: '"', escape: escapes, comment: '#', nulls };
    rewriteChunk({ form: { dialect: form, ragged: 'pad' }, width: 2, bytes: input, oversized: null });
  };

const ndjsonRows = (input: Buffer): void => {
  rows.reset();
  Array.from(new NdjsonRows({ entity: 'auto', map: {} }, rows).read(chunk(input), input));
  rows.users.finish();
};

const ids = Array.from({ length: 50 }, (_, number) => `${','.repeat(20 + number)}"`);
const matchIds = createIdMatcher(ids);
const stars = createGlob(`${'*a'.repeat(100)}*!`);

/** Worst inputs for causes: refused records of about this many bytes. */
const refusedTexts: readonly ((bytes: number) => Buffer)[] = [
  (bytes) => Buffer.from(`x${' '.repeat(bytes)}x`),
  ...[
    ' \u200b',
    ',',
    '"a,',
    "'a',",
    '\\"',
    '1',
    '1,',
    '1/',
    'aB',
    '{[(',
    '[, \n',
    '"\n',
    ' (',
    '-',
    '\0',
  ].map((text) => repeated(text)),
  bytesOf(0xc3, 0xe9),
];
/** A refused record keeps at most 64 KiB, so many records make up the bytes. */
const refusedRecords = 256;

const causes = {
  csv: new RejectCauses({ header: { delimiter: ',', columns: ['user_id', 'a'] }, columnMap: {} }),
  json: new RejectCauses({ header: null, columnMap: {} }),
};
const codes = [
  'wrong_field_count',
  'invalid_json',
  'missing_id',
  'unknown_event_type',
  'invalid_date',
] as const;
const cause = (raw: Buffer): void => {
  for (const code of codes) {
    const reject = { code, raw, column: 'a', row: 1, line: 1, byteOffset: 0, message: '' };
    causes.csv.of(reject);
    causes.json.of(reject);
  }
};

const ofRefused = (name: string, run: (raw: Buffer) => unknown): Scanner => ({
  name,
  generate: (bytes) => Buffer.alloc(bytes),
  run: ({ length }) => {
    for (const generate of refusedTexts) {
      const raw = generate(length / refusedRecords);
      for (let record = 0; record < refusedRecords / refusedTexts.length; record++) run(raw);
    }
  },
});

const columnNames = (count: number) => Array.from({ length: count }, (_, column) => `c${column}`);

const scanners: readonly Scanner[] = [
  { name: 'CSV: blank lines before the header', generate: repeated('\n'), run: index('csv') },
  { name: 'CSV: a blank line without end', generate: repeated(' '), run: index('csv') },
  { name: 'CSV: blank lines between records', generate: repeated('\n', 'user_id\n'), run: index('csv') },
  { name: 'CSV: lines of a blank', generate: repeated(' \n', 'user_id\n'), run: index('csv') },
  { name: 'CSV: CR only', generate: repeated('a\r', 'user_id\r'), run: index('csv') },
  { name: 'CSV: a header without end', generate: repeated('a,'), run: index('csv') },
  { name: 'CSV: a header of many names', generate: numbered((n) => `c${n},`, '', '\n'), run: index('csv') },
  { name: 'CSV: a header of quotes', generate: repeated('"",'), run: index('csv') },
  { name: 'CSV: stray quotes', generate: repeated('a"\n"', 'user_id\n'), run: index('csv') },
  { name: 'CSV: doubled quotes', generate: repeated('""""\n', 'user_id\n"'), run: index('csv') },
  {
    name: 'CSV: a quote that is never closed',
    generate: repeated('""\n', 'user_id\n"\n'),
    run: index('csv'),
  },
  {
    name: 'CSV: a quoted cell in buffers of a byte',
    generate: repeated('\n', 'user_id\n"'),
    run: index('csv', 1),
  },
  { name: 'CSV in another dialect: backslashes', generate: repeated('\\"\n'), run: dialect('\\', ';;') },
  { name: 'CSV in another dialect: comments', generate: repeated('#\n'), run: dialect('"', '~~') },
  {
    name: 'CSV in another dialect: a line of delimiters',
    generate: repeated('~~'),
    run: dialect('"', '~~', []),
  },
  {
    name: 'CSV in another dialect: parts of delimiters',
    generate: repeated('~a'),
    run: dialect('"', '~~', []),
  },
  { name: 'CSV in another dialect: blanks', generate: repeated('a   '), run: dialect('"', 'blanks') },
  {
    name: 'CSV in another dialect: a long cell',
    generate: repeated('a""', '"'),
    run: dialect('"', '~~', []),
  },
  {
    name: 'CSV in another dialect: short records',
    generate: repeated('a~~b\n'),
    run: dialect('"', '~~', []),
  },
  { name: 'CSV in another dialect: escapes', generate: repeated('\\~\\q'), run: dialect('\\', '~~', []) },
  { name: 'CSV: a line in buffers of a byte', generate: repeated('a', 'user_id\n'), run: index('csv', 1) },
  { name: 'the dialect: quotes', generate: repeated('"'), run: sniff },
  { name: 'the dialect: every delimiter', generate: repeated('a,b;c\td|e^f~g:h i||l\'m"n\n'), run: sniff },
  { name: 'the dialect: stray quotes', generate: repeated('u,"a\n\'\\"#x\n', 'user_id,name\n'), run: sniff },
  { name: 'the dialect: wide records', generate: repeated(`${'a,'.repeat(9000)}\n`), run: sniff },
  {
    name: 'Parquet: columns',
    generate: parquetOf(
      (bytes) => ({ columns: Math.ceil(bytes / 256), rows: 20 }),
      (row) => `v${row}`,
    ),
    run: parquet,
  },
  {
    name: 'Parquet: rows of lists',
    generate: parquetOf(
      (bytes) => ({ columns: 1, rows: Math.ceil(bytes / 16) }),
      (row) => [{ a: row }, null],
    ),
    run: parquet,
  },
  { name: 'NDJSON: blank lines', generate: repeated('\n'), run: index('ndjson') },
  { name: 'NDJSON: a line without end', generate: repeated('\r'), run: index('ndjson') },
  { name: 'NDJSON: a line in buffers of a byte', generate: repeated('['), run: index('ndjson', 1) },
  { name: 'JSON array: blanks', generate: repeated(' '), run: array },
  { name: 'JSON array: empty elements', generate: repeated('{},', '['), run: array },
  { name: 'JSON array: nesting', generate: repeated('[', '[{"a":'), run: array },
  { name: 'JSON array: a key without end', generate: repeated('a', '{"'), run: array },
  { name: 'JSON sequence: empty objects', generate: repeated('{}'), run: sequence },
  { name: 'JSON sequence: broken records', generate: repeated('{x\n}\n', '{\n}\n'), run: sequence },
  { name: 'JSON sequence: no end', generate: repeated('\n}', '{}\n'), run: sequence },
  { name: 'JSON document: many keys', generate: numbered((n) => `"k${n}":1,`, '{'), run: documentAt(null) },
  {
    name: 'JSON document: objects inside one another',
    generate: repeated(`${'{"a":'.repeat(20)}1${'}'.repeat(20)},`, '{"a":['),
    run: documentAt(['a', '7', 'a', 'a', 'a']),
  },
  { name: 'JSON document: nesting', generate: repeated('{"a":'), run: documentAt(['a', 'a', 'a', 'b']) },
  { name: 'NDJSON: commas and blanks', generate: repeated(', \r'), run: plainLines },
  { name: 'the layout of JSON: braces', generate: repeated('{'), run: layout },
  { name: 'the layout of JSON: broken lines', generate: repeated('{x\n'), run: layout },
  {
    name: 'the layout of JSON: one object',
    generate: numbered((n) => `"k${n}":[{}],`, '{', '"k":1}'),
    run: layout,
  },
  { name: 'the format: blanks', generate: repeated(' \n'), run: (input) => detectFormat(input, {}) },
  {
    name: 'the format: nesting',
    generate: repeated('[', '{"a":'),
    run: (input) => detectFormat(input, { format: undefined, contentType: 'application/json' }),
  },
  {
    name: 'UTF-16: halves of surrogate pairs',
    generate: (bytes) => Buffer.alloc(bytes, Buffer.of(0, 0xd8)),
    run: transcode('utf-16le'),
  },
  { name: 'a code page: no characters', generate: bytesOf(0x81), run: transcode('windows-1252') },
  { name: 'the encoding', generate: repeated('a'), run: encoding },
  { name: 'the encoding: marks', generate: latin1((n) => `${n} \x80 \x92\n`), run: encoding },
  { name: 'the encoding: broken characters', generate: bytesOf(0xc3, 0xc3, 0xa9), run: encoding },
  {
    name: 'rows of a CSV: short records',
    generate: numbered((n) => `u${n},x\n`),
    run: csvRows(['user_id', 'a']),
  },
  { name: 'rows of a CSV: blank lines', generate: repeated('\n\r'), run: csvRows(['user_id', 'a']) },
  { name: 'rows of a CSV: quotes', generate: repeated('"u""","""\n"\n'), run: csvRows(['user_id', 'a']) },
  {
    name: 'rows of a CSV: stray quotes',
    generate: repeated(`"${'u'.repeat(60)}\n`),
    run: csvRows(['user_id', 'a']),
  },
  {
    name: 'rows of a CSV: a surplus quote among many',
    generate: repeated('u,"1,"a","b","c","d"\n'),
    run: csvRows(['user_id', ...columnNames(5)]),
  },
  {
    name: 'rows of a CSV: surplus quotes in long records',
    generate: repeated(`u,"1,${'"a",'.repeat(14)}${'a'.repeat(60 * KiB)}\n`),
    run: csvRows(['user_id', ...columnNames(17)]),
  },
  {
    name: 'rows of a CSV: many columns',
    generate: repeated(`u${',x'.repeat(999)}\n`),
    run: csvRows(['user_id', ...columnNames(999)]),
  },
  {
    name: 'rows of a CSV: metadata',
    generate: repeated('u,"{""a"":[1,2]}"\n'),
    run: csvRows(['user_id', 'metadata']),
  },
  {
    name: 'rows of NDJSON: new properties',
    generate: numbered((n) => `{"user_id":1,"p${n}":1}\n`),
    run: ndjsonRows,
  },
  {
    name: 'rows of NDJSON: alternating names and missing ends',
    generate: numbered(
      (n) => `{"user_id":${n},"p${n % 1_000}":{"a":"\\n"},"q${n % 7}":[[1.50]]${n % 2 ? '}' : ''}\n`,
    ),
    run: ndjsonRows,
  },
  { name: 'rows of NDJSON: nesting', generate: repeated(`${'['.repeat(50_000)}\n`), run: ndjsonRows },
  { name: 'rows of NDJSON: "metadata"', generate: repeated('"metadata"', '{"user_id":"'), run: ndjsonRows },
  { name: 'JSON: nesting', generate: repeated('['), run: (input) => parseJsonText(input.toString()) },
  { name: 'JSON: digits', generate: repeated('1'), run: (input) => parseJsonText(input.toString()) },
  {
    name: 'JSON: many long numbers',
    generate: numbered(() => '1234567890123456,', '[', '1]'),
    run: (input) => parseJsonText(input.toString()),
  },
  {
    name: 'ids of delimiters in a refused record',
    generate: (bytes) => Buffer.alloc(Math.min(bytes, 1e9), ','),
    run: (input) => eachRaw(input, matchIds),
  },
  {
    name: 'ids in a refused record of escapes',
    generate: repeated('\\u002c""'),
    run: (input) => eachRaw(input, matchIds),
  },
  { name: 'a pattern of stars', generate: repeated('a'), run: (input) => stars(input.toString('latin1')) },
  { name: 'a map against a header', generate: numbered((n) => `c${n},`), run: mapColumns },
  {
    name: 'keys of one bucket',
    generate: (bytes) => Buffer.from(colliding.slice(0, Math.floor(bytes / keyBytes)).join('')),
    run: enterKeys,
  },
  ofRefused('the causes of refused records', cause),
];

/** Matches pieces that are too short to count as truncated. */
function eachRaw(input: Buffer, matches: (raw: Uint8Array) => boolean): void {
  for (let at = 0; at < input.length; at += 60_000) matches(input.subarray(at, at + 60_000));
}

/** Keys of one length, in one text. */
const colliding = collidingKeys(8 * KiB);
const keyBytes = colliding[0]?.length ?? 0;

function enterKeys(input: Buffer): void {
  const table = new KeyTable();
  for (let at = 0; at < input.length; at += keyBytes) table.add(input, at, at + keyBytes);
}

/** Maps as many columns as the header has, all with other names. */
function mapColumns(input: Buffer): void {
  const columns = input.toString().split(',');
  expect(() =>
    planFile({ columns }, Object.fromEntries(columns.map((name) => [`${name}x`, name])), 'auto'),
  ).toThrow();
}

// proves: linear
describe('the time of a scanner', () => {
  test.each(scanners)('$name: twice the bytes cost at most 3 times the time', expectLinear);
});
