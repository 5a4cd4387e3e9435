import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RejectCode } from '../../../src/domain/reject.ts';
import { Rows } from '../../../src/load/map/rows.ts';
import { runs } from '../../support/runs.ts';
import { type CopiedRow, readCopyText } from './copy-text.ts';
import { readCsvRows } from './read-rows.ts';

interface Outcome {
  readonly rows: readonly CopiedRow[];
  /** Refused records as `row:code`. */
  readonly rejects: readonly string[];
}

function readChunk(columns: readonly string[], delimiter: string, bytes: Buffer, rows = new Rows()): Outcome {
  readCsvRows({ delimiter, columns }, bytes, { rows });
  return {
    rows: readCopyText(rows.users.finish()),
    rejects: rows.rejects.map((reject) => `${reject.row}:${reject.code}`),
  };
}

function isBlank(raw: string, delimiter: string): boolean {
  const cell = `(?:"[ \\t]*"|[ \\t]*?)`;
  const separator = delimiter === '|' ? '\\|' : delimiter;
  return new RegExp(`^${cell}(?:${separator}${cell})*$`).test(raw.replace(/^[\r\n]+|[\r\n]+$/g, ''));
}

/** A simple reader for comparison. It creates one object per record. */
function readNaively(columns: readonly string[], delimiter: string, text: string): Outcome {
  const parsedRecords = parse(text, {
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    raw: true,
  }) as unknown as { raw: string; record: string[] }[];
  const records = parsedRecords.filter(({ raw }) => !isBlank(raw, delimiter)).map(({ record }) => record);
  const rows = new Map<string, CopiedRow>();
  const rejects: string[] = [];
  for (const [index, cells] of records.entries()) {
    const record = readRecord(columns, cells);
    if (typeof record === 'string') rejects.push(`${index + 1}:${record}`);
    else {
      const earlier = rows.get(record.key);
      rows.set(record.key, {
        ...record,
        properties: { ...earlier?.properties, ...record.properties },
        company: record.company ?? earlier?.company ?? null,
        flags: record.flags | (earlier?.flags ?? 0),
      });
    }
  }
  return { rows: [...rows.values()], rejects };
}

function readRecord(columns: readonly string[], cells: readonly string[]): CopiedRow | RejectCode {
  if (cells.length !== columns.length) return 'wrong_field_count';
  if (cells.some((cell) => cell.includes('\0'))) return 'nul_character';
  const value = (name: string) => cells[columns.indexOf(name)] ?? '';
  const key = value('user_id');
  if (key.trim() === '') return 'missing_id';
  if (Buffer.byteLength(key) > 256) return 'id_too_long';
  const company = value('company_id');
  if (company !== '' && company.trim() === '') return 'missing_id';
  const properties: Record<string, unknown> = {};
  let metadataProperties: object = {};
  let removes = false;
  for (const [index, name] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (cell === '' || name === 'user_id' || name === 'company_id') continue;
    if (name !== 'metadata') properties[name] = cell;
    else {
      const metadata = parseJson(cell);
      if (metadata === undefined) return 'invalid_json';
      if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return 'invalid_type';
      metadataProperties = metadata;
      // `removes` is true even if another column gives the property a value again. That costs time,
      // but the result is the same.
      removes = Object.values(metadata).includes(null);
    }
  }
  Object.assign(properties, metadataProperties);
  return { key, properties, company: company === '' ? null : company, flags: removes ? 1 : 0 };
}

function parseJson(cell: string): unknown {
  try {
    return JSON.parse(cell);
  } catch {
    return undefined;
  }
}

const piece = fc.constantFrom(
  ...'ab7 ",;\t|\n\r\\\0\b\vü€😀\u2028\u007f\u001f{}:\'',
  ...['""', '\r\n', '\\N', '\\.', 'null'],
);
const anyCell = fc.oneof(
  fc.constant(''),
  fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const metadataCell = fc.oneof(
  fc.constant(''),
  fc.constantFrom('[]', '7', '{', 'null'),
  fc
    .dictionary(
      fc.constantFrom('plan', 'x', 'ü"\\'),
      fc
        .oneof(anyCell, fc.integer(), fc.constant(null), fc.boolean())
        .filter((v) => !String(v).includes('\0')),
      { maxKeys: 3 },
    )
    .map((object) => JSON.stringify(object)),
);
const id = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('u1', 'u2', 'u3', 'ü') },
  { weight: 1, arbitrary: anyCell },
);

interface Sheet {
  readonly columns: readonly string[];
  readonly delimiter: string;
  readonly text: string;
}

const sheet: fc.Arbitrary<Sheet> = fc
  .record({
    columns: fc
      .shuffledSubarray(['plan', 'x', 'na"me', 'ü\\', 'company_id', 'metadata', 'a longer name'])
      .chain((otherColumns) =>
        fc.shuffledSubarray(['user_id', ...otherColumns], { minLength: otherColumns.length + 1 }),
      ),
    delimiter: fc.constantFrom(',', ';', '\t', '|'),
    terminator: fc.constantFrom('\n', '\r\n', '\r'),
    lastEnded: fc.boolean(),
  })
  .chain(({ columns, delimiter, terminator, lastEnded }) => {
    const cellOf = (name: string) => {
      if (name === 'user_id') return id;
      return name === 'metadata' ? metadataCell : anyCell;
    };
    const writeRecord = (cells: readonly string[], quotes: number): string =>
      cells
        .map((cell, index) => {
          const mustQuote = cell.includes(delimiter) || /["\r\n]/.test(cell);
          return mustQuote || ((quotes >> index) & 1) === 1 ? `"${cell.replaceAll('"', '""')}"` : cell;
        })
        .join(delimiter);
    const record = fc
      .tuple(fc.tuple(...columns.map(cellOf)), fc.nat(255), fc.integer({ min: 0, max: 20 }))
      .map(([cells, quotes, luck]) => {
        if (luck === 0) return writeRecord(cells.slice(0, -1), quotes | 1);
        return writeRecord(luck === 1 ? [...cells, 'more'] : cells, quotes);
      });
    return fc.array(record, { minLength: 1, maxLength: 12 }).map((lines) => ({
      columns,
      delimiter,
      text: lines.join(terminator) + (lastEnded ? terminator : ''),
    }));
  });

it('every record gives the row that csv-parse and JSON.stringify would give', () => {
  const rows = new Rows();
  fc.assert(
    fc.property(sheet, ({ columns, delimiter, text }) => {
      expect(readChunk(columns, delimiter, Buffer.from(text), rows)).toEqual(
        readNaively(columns, delimiter, text),
      );
    }),
    { numRuns: runs(1_000) },
  );
});

it('20,000 keys are kept apart, and their repetitions are merged', () => {
  const lines = Array.from({ length: 40_000 }, (_, index) => `k${index % 20_000},${index}`);
  const { rows, rejects } = readChunk(['user_id', 'n'], ',', Buffer.from(lines.join('\n')));
  expect(rejects).toEqual([]);
  expect(rows).toHaveLength(20_000);
  for (const { key, properties } of rows)
    expect(properties).toEqual({ n: String(20_000 + Number(key.slice(1))) });
});

it('the rows of a chunk are read even if every byte grows when it is escaped', () => {
  const cell = '"'.repeat(15_000);
  const lines = Array.from({ length: 20 }, (_, index) => `u${index},"${cell.replaceAll('"', '""')}"`);
  const { rows } = readChunk(['user_id', 'q'], ',', Buffer.from(lines.join('\n')));
  expect(rows).toHaveLength(20);
  expect(rows.every(({ properties }) => properties['q'] === cell)).toBe(true);
});

// proves: stray-quotes
it('a surplus quote at the start of a cell refuses its record', () => {
  const columns = ['user_id', 'n', 'name'];
  const lines = ['u1,"12,"Acme, Inc."', 'u2,""12","b"', 'u3,a"b,c', 'u4,"12,"a"b,"c"', 'u5,"7","é, x"'];
  const bytes = Buffer.from(lines.join('\n'));
  const result = readChunk(columns, ',', bytes);
  expect(result.rows.map(({ key }) => key)).toEqual(['u5']);
  expect(result.rejects).toEqual([1, 2, 3, 4].map((row) => `${row}:invalid_quote`));
});

// proves: stray-quotes
it('a header that is repeated between records is refused', () => {
  const lines = [
    'u1,Ann,7',
    'user_id,name,n',
    '"user_id","name", n ',
    'user_id,Ann,7',
    '\ufeffuser_id,name,n',
  ];
  const { rows, rejects } = readChunk(['user_id', 'name', 'n'], ',', Buffer.from(lines.join('\n')));
  expect(rows.map(({ key }) => key)).toEqual(['u1', 'user_id']);
  expect(rejects).toEqual(['2:repeated_header', '3:repeated_header', '5:repeated_header']);
  expect(readChunk(['user_id', 'metadata'], ',', Buffer.from('user_id,metadata')).rejects).toEqual([
    '1:repeated_header',
  ]);
});

// proves: shifted-columns
it('a record with a surplus empty cell is refused if it fills the mostly empty column', () => {
  const bytes = Buffer.from('u1,Acme, Inc.,\nu2,Bob,,\nu3,"Cy\\",x,\nu4,Dee,x');
  const columns = ['user_id', 'name', 'note'];
  const rows = readCsvRows({ delimiter: ',', columns, lastColumn: 'empty' }, bytes);
  expect(readCopyText(rows.users.finish()).map(({ key }) => key)).toEqual(['u2', 'u4']);
  expect(rows.rejects.map(({ row, code }) => `${row}:${code}`)).toEqual([
    '1:wrong_field_count',
    '3:wrong_field_count',
  ]);
});
