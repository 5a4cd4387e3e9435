import { parquetWriteBuffer } from 'hyparquet-writer';
import { expect, test } from 'vitest';
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
import { collidingKeys } from '../support/files/colliding-keys.ts';
import { expectLinear, KiB, numbered, repeated, type Scanner } from '../support/oracles/linear.ts';
import { inPieces } from './formats/in-pieces.ts';

const bytesOf =
  (...unit: number[]) =>
  (bytes: number): Buffer =>
    Buffer.alloc(bytes, Buffer.from(unit));
const latin1 = (text: (number: number) => string) => (bytes: number) =>
  Buffer.from(numbered(text)(bytes).toString('utf8'), 'latin1');

const attempt = (work: () => unknown): void => {
  try {
    work();
  } catch {
    // The input may be refused, because only the time is measured.
  }
};

/**
 * Returns a function that indexes the input in buffers of the given size. Default: 256 KiB, as in
 * the receiver.
 */
const index =
  (format: 'csv' | 'ndjson', pieceBytes = 256 * KiB) =>
  (input: Buffer): void => {
    const records = new RecordIndex(format, 2 * KiB * KiB, 0);
    attempt(() => {
      for (let at = 0; at < input.length; at += pieceBytes) {
        for (const _ of records.add(input.subarray(at, at + pieceBytes)));
      }
      for (const _ of records.end());
    });
  };

/**
 * Sniffs the input twice: first to find a header that names an id, and then as a file without a
 * header.
 */
const sniff = (input: Buffer): void => {
  for (const source of [{}, { header: 'none' as const }])
    attempt(() => sniffCsv({ bytes: input, isWhole: true, hints: { source, map: {} } }));
};

const drain = async (source: AsyncIterable<Buffer>): Promise<void> => {
  try {
    for await (const _ of source);
  } catch {
    // The input may be refused, because only the time is measured.
  }
};

const transcode = (name: string) => (input: Buffer) =>
  drain(toUtf8(inPieces(input, every(input, 1001)), name));
const encoding = (input: Buffer): void => attempt(() => findEncoding(input, true, null));

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

/**
 * Refused texts of about `bytes` bytes. For these texts, it takes longest to find the reason of the
 * refusal.
 */
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
/**
 * Number of records into which the bytes are split. One record would not do, because a refused
 * record keeps at most 64 KiB.
 */
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

const overRefused =
  (run: (raw: Buffer) => unknown) =>
  ({ length }: Buffer): void => {
    for (const generate of refusedTexts) {
      const raw = generate(length / refusedRecords);
      for (let record = 0; record < refusedRecords / refusedTexts.length; record++) run(raw);
    }
  };

const columnNames = (count: number) => Array.from({ length: count }, (_, column) => `c${column}`);

type Case = readonly [name: string, generate: Scanner['generate'], run: Scanner['run']];

const cases: readonly Case[] = [
  ['CSV: blank lines before the header', repeated('\n'), index('csv')],
  ['CSV: a blank line without end', repeated(' '), index('csv')],
  ['CSV: blank lines between records', repeated('\n', 'user_id\n'), index('csv')],
  ['CSV: lines of a blank', repeated(' \n', 'user_id\n'), index('csv')],
  ['CSV: CR only', repeated('a\r', 'user_id\r'), index('csv')],
  ['CSV: a header without end', repeated('a,'), index('csv')],
  ['CSV: a header of many names', numbered((n) => `c${n},`, '', '\n'), index('csv')],
  ['CSV: a header of quotes', repeated('"",'), index('csv')],
  ['CSV: stray quotes', repeated('a"\n"', 'user_id\n'), index('csv')],
  ['CSV: doubled quotes', repeated('""""\n', 'user_id\n"'), index('csv')],
  ['CSV: a quote that is never closed', repeated('""\n', 'user_id\n"\n'), index('csv')],
  ['CSV: a quoted cell in buffers of a byte', repeated('\n', 'user_id\n"'), index('csv', 1)],
  ['CSV in another dialect: backslashes', repeated('\\"\n'), dialect('\\', ';;')],
  ['CSV in another dialect: comments', repeated('#\n'), dialect('"', '~~')],
  ['CSV in another dialect: a line of delimiters', repeated('~~'), dialect('"', '~~', [])],
  ['CSV in another dialect: parts of delimiters', repeated('~a'), dialect('"', '~~', [])],
  ['CSV in another dialect: blanks', repeated('a   '), dialect('"', 'blanks')],
  ['CSV in another dialect: a long cell', repeated('a""', '"'), dialect('"', '~~', [])],
  ['CSV in another dialect: short records', repeated('a~~b\n'), dialect('"', '~~', [])],
  ['CSV in another dialect: escapes', repeated('\\~\\q'), dialect('\\', '~~', [])],
  ['CSV: a line in buffers of a byte', repeated('a', 'user_id\n'), index('csv', 1)],
  ['the dialect: quotes', repeated('"'), sniff],
  ['the dialect: every delimiter', repeated('a,b;c\td|e^f~g:h i||l\'m"n\n'), sniff],
  ['the dialect: stray quotes', repeated('u,"a\n\'\\"#x\n', 'user_id,name\n'), sniff],
  ['the dialect: wide records', repeated(`${'a,'.repeat(9000)}\n`), sniff],
  [
    'Parquet: columns',
    parquetOf(
      (bytes) => ({ columns: Math.ceil(bytes / 256), rows: 20 }),
      (row) => `v${row}`,
    ),
    parquet,
  ],
  [
    'Parquet: rows of lists',
    parquetOf(
      (bytes) => ({ columns: 1, rows: Math.ceil(bytes / 16) }),
      (row) => [{ a: row }, null],
    ),
    parquet,
  ],
  ['NDJSON: blank lines', repeated('\n'), index('ndjson')],
  ['NDJSON: a line without end', repeated('\r'), index('ndjson')],
  ['NDJSON: a line in buffers of a byte', repeated('['), index('ndjson', 1)],
  ['JSON array: blanks', repeated(' '), array],
  ['JSON array: empty elements', repeated('{},', '['), array],
  ['JSON array: nesting', repeated('[', '[{"a":'), array],
  ['JSON array: a key without end', repeated('a', '{"'), array],
  ['JSON sequence: empty objects', repeated('{}'), sequence],
  ['JSON sequence: broken records', repeated('{x\n}\n', '{\n}\n'), sequence],
  ['JSON sequence: no end', repeated('\n}', '{}\n'), sequence],
  ['JSON document: many keys', numbered((n) => `"k${n}":1,`, '{'), documentAt(null)],
  [
    'JSON document: objects inside one another',
    repeated(`${'{"a":'.repeat(20)}1${'}'.repeat(20)},`, '{"a":['),
    documentAt(['a', '7', 'a', 'a', 'a']),
  ],
  ['JSON document: nesting', repeated('{"a":'), documentAt(['a', 'a', 'a', 'b'])],
  ['NDJSON: commas and blanks', repeated(', \r'), plainLines],
  ['the layout of JSON: braces', repeated('{'), layout],
  ['the layout of JSON: broken lines', repeated('{x\n'), layout],
  ['the layout of JSON: one object', numbered((n) => `"k${n}":[{}],`, '{', '"k":1}'), layout],
  ['the format: blanks', repeated(' \n'), (input) => detectFormat(input, {})],
  [
    'the format: nesting',
    repeated('[', '{"a":'),
    (input) => detectFormat(input, { format: undefined, contentType: 'application/json' }),
  ],
  [
    'UTF-16: halves of surrogate pairs',
    (bytes) => Buffer.alloc(bytes, Buffer.of(0, 0xd8)),
    transcode('utf-16le'),
  ],
  ['a code page: no characters', bytesOf(0x81), transcode('windows-1252')],
  ['the encoding', repeated('a'), encoding],
  ['the encoding: marks', latin1((n) => `${n} \x80 \x92\n`), encoding],
  ['the encoding: broken characters', bytesOf(0xc3, 0xc3, 0xa9), encoding],
  ['rows of a CSV: short records', numbered((n) => `u${n},x\n`), csvRows(['user_id', 'a'])],
  ['rows of a CSV: blank lines', repeated('\n\r'), csvRows(['user_id', 'a'])],
  ['rows of a CSV: quotes', repeated('"u""","""\n"\n'), csvRows(['user_id', 'a'])],
  ['rows of a CSV: stray quotes', repeated(`"${'u'.repeat(60)}\n`), csvRows(['user_id', 'a'])],
  [
    'rows of a CSV: a surplus quote among many',
    repeated('u,"1,"a","b","c","d"\n'),
    csvRows(['user_id', ...columnNames(5)]),
  ],
  [
    'rows of a CSV: surplus quotes in long records',
    repeated(`u,"1,${'"a",'.repeat(14)}${'a'.repeat(60 * KiB)}\n`),
    csvRows(['user_id', ...columnNames(17)]),
  ],
  [
    'rows of a CSV: many columns',
    repeated(`u${',x'.repeat(999)}\n`),
    csvRows(['user_id', ...columnNames(999)]),
  ],
  ['rows of a CSV: metadata', repeated('u,"{""a"":[1,2]}"\n'), csvRows(['user_id', 'metadata'])],
  ['rows of NDJSON: new properties', numbered((n) => `{"user_id":1,"p${n}":1}\n`), ndjsonRows],
  [
    'rows of NDJSON: alternating names and missing ends',
    numbered((n) => `{"user_id":${n},"p${n % 1_000}":{"a":"\\n"},"q${n % 7}":[[1.50]]${n % 2 ? '}' : ''}\n`),
    ndjsonRows,
  ],
  ['rows of NDJSON: nesting', repeated(`${'['.repeat(50_000)}\n`), ndjsonRows],
  ['rows of NDJSON: "metadata"', repeated('"metadata"', '{"user_id":"'), ndjsonRows],
  ['JSON: nesting', repeated('['), (input) => parseJsonText(input.toString())],
  ['JSON: digits', repeated('1'), (input) => parseJsonText(input.toString())],
  [
    'JSON: many long numbers',
    numbered(() => '1234567890123456,', '[', '1]'),
    (input) => parseJsonText(input.toString()),
  ],
  [
    'ids of delimiters in a refused record',
    (bytes) => Buffer.alloc(Math.min(bytes, 1e9), ','),
    (input) => eachRaw(input, matchIds),
  ],
  ['ids in a refused record of escapes', repeated('\\u002c""'), (input) => eachRaw(input, matchIds)],
  ['a pattern of stars', repeated('a'), (input) => stars(input.toString('latin1'))],
  ['a map against a header', numbered((n) => `c${n},`), mapColumns],
  [
    'keys of one bucket',
    (bytes) => Buffer.from(colliding.slice(0, Math.floor(bytes / keyBytes)).join('')),
    enterKeys,
  ],
  ['the causes of refused records', (bytes) => Buffer.alloc(bytes), overRefused(cause)],
];

/**
 * Calls `matches` for each piece of the input. The pieces are short enough not to count as
 * truncated.
 */
function eachRaw(input: Buffer, matches: (raw: Uint8Array) => boolean): void {
  for (let at = 0; at < input.length; at += 60_000) matches(input.subarray(at, at + 60_000));
}

const colliding = collidingKeys(8 * KiB);
const keyBytes = colliding[0]?.length ?? 0;

function enterKeys(input: Buffer): void {
  const table = new KeyTable();
  for (let at = 0; at < input.length; at += keyBytes) table.add(input, at, at + keyBytes);
}

function mapColumns(input: Buffer): void {
  const columns = input.toString().split(',');
  expect(() =>
    planFile({ columns }, Object.fromEntries(columns.map((name) => [`${name}x`, name])), 'auto'),
  ).toThrow();
}

// proves: linear
test.each(cases)('%s: twice the bytes cost at most 3 times the time', (name, generate, run) =>
  expectLinear({ name, generate, run }),
);
