import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/base/errors.ts';
import { createFileSystemStore } from '../../../../src/files/file-system.ts';
import { type ReceiveHints, receive } from '../../../../src/load/receive/receive.ts';
import type { ReceivedFile } from '../../../../src/load/receive/received-file.ts';
import { runs } from '../../../support/runs.ts';
import { bytewise, collect, inPieces } from '../../formats/in-pieces.ts';

const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };

let directory: string;
let store: ReturnType<typeof createFileSystemStore>;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'sluice-json-'));
  store = createFileSystemStore(directory);
});

afterAll(() => rm(directory, { recursive: true }));

interface StoredFile extends ReceivedFile {
  readonly text: string;
}

async function take(
  text: string | Buffer,
  hints: ReceiveHints = {},
  ends: readonly number[] = [],
): Promise<StoredFile> {
  const bytes = Buffer.from(text as string);
  const signal = new AbortController().signal;
  const received = await receive(inPieces(bytes, ends), store, hints, limits, signal);
  const storedText = (await collect(store.open(received.ref))).toString();
  await store.remove(received.ref);
  return { ...received, text: storedText };
}

/**
 * Expects that the text is refused in the same way if it arrives byte by byte, and that no stored
 * file remains.
 */
async function refusal(text: string, hints: ReceiveHints = {}): Promise<string> {
  const problem = async (ends: readonly number[]) => {
    const error = await take(text, hints, ends).catch((reason: unknown) => reason);
    expect(error, String(error)).toBeInstanceOf(InputError);
    const { status, problems } = error as InputError;
    return `${status} ${problems[0].code}: ${problems[0].message} (${problems[0].details})`;
  };
  const refusalAtOnce = await problem([]);
  if (text.length < 10_000) expect(await problem(bytewise(Buffer.from(text)))).toBe(refusalAtOnce);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  expect(entries.filter((entry) => entry.isFile())).toEqual([]);
  return refusalAtOnce;
}

function recordsOf({ text }: StoredFile): unknown[] {
  const lines = text.replace(/^\ufeff/, '').split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const value = parse(line);
      return value === undefined ? line : value;
    });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** A layout of records in a file. If `isSpread` is true, each record has several lines. */
interface Stream {
  readonly before?: string;
  readonly after?: string;
  readonly between?: string;
  readonly isSpread?: true;
  readonly newline?: string;
}

const streams: Readonly<Record<string, Stream>> = {
  lines: { after: '\n' },
  'lines that end with CRLF': { after: '\r\n' },
  'lines that end with CR': { after: '\r' },
  'nothing between them': {},
  'blanks between them': { between: ' \t' },
  'several lines each': { isSpread: true, after: '\n' },
  'several lines each, nothing between them': { isSpread: true },
  'several lines each that end with CR': { isSpread: true, after: '\r', newline: '\r' },
  'a comma at the end of each line': { after: ', \n' },
  'a comma at the end of each line but the last': { between: ',\r\n' },
  'commas and CR': { after: ',\r' },
  'commas between them': { between: ',' },
  'several lines each, commas between them': { isSpread: true, between: ',\n' },
  'U+001E before each': { before: '\u001e', after: '\n' },
  'U+001E before each, over several lines': { isSpread: true, before: '\u001e', after: '\n' },
};

function writeStream(stream: Stream, rows: Rows, indent: string): string {
  const { before = '', after = '', between = '', isSpread = false, newline = '\n' } = stream;
  const text = (row: object) => JSON.stringify(row, null, isSpread ? indent : '').replaceAll('\n', newline);
  return rows.map((row) => before + text(row) + after).join(between);
}

interface Document {
  readonly records?: string;
  readonly of: (rows: Rows) => readonly unknown[];
}

const documents: Readonly<Record<string, Document>> = {
  'an array': { of: (rows) => [rows] },
  users: { of: (users) => [{ users }] },
  'data between other things': {
    of: (data) => [{ meta: { data: [{}] }, total: 1, data, next: [[1]], batch: 'x' }],
  },
  'events before another array': { of: (events) => [{ events, teams: [{ id: 1 }] }] },
  'data.users': {
    records: 'data.users',
    of: (users) => [{ users: [{}], data: { groups: [{ users: [{}] }], users, data: { users: [{}] } } }],
  },
  'a key with a dot and a backslash': {
    records: 'a\\.b.c\\\\d.é',
    of: (rows) => [{ a: { b: [{}] }, 'a.b': { 'c\\d': { e: [], é: rows } } }],
  },
  'the second of an array': {
    records: '1.rows',
    of: (rows) => [[{ rows: [{}] }, { rows }, { rows: [{}] }]],
  },
  'an array in an array': { records: '1', of: (rows) => [[[{}], rows]] },
  'several documents': {
    records: 'data',
    of: (rows) => [rows.slice(0, 1), rows.slice(1)].map((data) => ({ page: 1, data })),
  },
};

const rows = fc.array(
  fc
    .dictionary(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
    .map((otherMembers) => ({ ...otherMembers, user_id: 'u' })),
  { minLength: 1, maxLength: 6 },
);
const indent = fc.constantFrom(' ', '\t', '    ', '');
const mark = fc.constantFrom('', '\ufeff');
const filename = fc.constantFrom(undefined, 'a.json', 'a.ndjson', 'a.txt');

async function expectRows(values: Rows, text: string, hints: ReceiveHints, ends: readonly number[]) {
  const file = await take(text, hints, ends);
  expect(recordsOf(file)).toEqual(values.map((row) => JSON.parse(JSON.stringify(row))));
  expect(file.totalRows).toBe(values.length);
}

/**
 * Positions at which buffers end, as shares (0 to 1) of the text. If there are no positions, each
 * byte is a buffer.
 */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });

function endsOf(text: string, shares: readonly number[]): number[] {
  const bytes = Buffer.from(text);
  if (shares.length === 0) return bytewise(bytes);
  return shares.map((share) => Math.round(share * bytes.length)).sort((a, b) => a - b);
}

// proves: json-layouts
it.each(Object.entries(streams))('records with %s give the same rows for any buffers', async (_, stream) => {
  await fc.assert(
    fc.asyncProperty(rows, indent, mark, filename, cuts, async (values, spaces, bom, name, shares) => {
      const text = bom + writeStream(stream, values, spaces);
      await expectRows(values, text, { filename: name }, endsOf(text, shares));
    }),
    { numRuns: runs(60) },
  );
});
it.each(Object.entries(documents))(
  'records in %s give the same rows for any buffers',
  async (_, { of, records }) => {
    await fc.assert(
      fc.asyncProperty(rows, indent, mark, cuts, async (values, spaces, bom, shares) => {
        const texts = of(values).map((document) => JSON.stringify(document, null, spaces));
        const text = bom + texts.join('\n');
        const source = records === undefined ? {} : { records };
        await expectRows(values, text, { source }, endsOf(text, shares));
      }),
      { numRuns: runs(60) },
    );
  },
);

describe('a damaged record', () => {
  const damage = fc.record({
    row: fc.nat(5),
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    kind: fc.constantFrom('leave out', 'put in', 'exchange'),
    by: fc.constantFrom(...'"{},:\\\n\r\u001e []1x\u00e9'),
  });

  // proves: json-layouts
  it.each(Object.entries(streams))(
    'a damaged record never becomes another one or costs others: %s',
    async (_, stream) => {
      const write = (values: Rows, spaces: string) => writeStream(stream, values, spaces);
      await fc.assert(
        fc.asyncProperty(
          rows,
          damage,
          indent,
          cuts,
          async (values, { row, at, kind, by }, spaces, shares) => {
            const preceding = values.slice(0, row % values.length);
            const text = write(values, spaces);
            const start = write(preceding, spaces).length;
            const end = write(values.slice(0, preceding.length + 1), spaces).length;
            const position = start + Math.floor(at * (end - start));
            const middle = kind === 'leave out' ? '' : by;
            const suffix = text.slice(kind === 'put in' ? position : position + 1);
            // The change may cut a surrogate pair in half. `toWellFormed` replaces the half that
            // remains.
            const damaged = (text.slice(0, position) + middle + suffix).toWellFormed();
            const file = await take(damaged, {}, endsOf(damaged, shares)).catch((reason: unknown) => {
              expect(reason).toBeInstanceOf(InputError);
              return null;
            });
            // A text that does not start like JSON is read as a CSV whose header does not contain
            // an id.
            if (file === null || file.format === 'csv') return;
            // Records without an id are refused, so only records with an id are compared.
            const records = recordsOf(file).filter(hasId);
            const originals = JSON.parse(JSON.stringify(values)) as unknown[];
            const damagedText =
              text.slice(start, position) + middle + suffix.slice(0, suffix.length - (text.length - end));
            const damagedValue = parse(
              damagedText
                .toWellFormed()
                .replaceAll('\u001e', '')
                .replace(/^[,\s]+|[,\s]+$/g, ''),
            );
            const allowedRecords = originals.flatMap((value, index) =>
              index === preceding.length ? [value, damagedValue ?? value] : [value],
            );
            expect(isPartOf(records, allowedRecords), JSON.stringify([damaged, records])).toBe(true);
          },
        ),
        { numRuns: runs(100) },
      );
    },
  );

  const hasId = (record: unknown) => typeof record === 'object' && record !== null && 'user_id' in record;

  function isPartOf(records: readonly unknown[], allowed: readonly unknown[]): boolean {
    let at = 0;
    for (const record of records) {
      while (at < allowed.length && JSON.stringify(allowed[at]) !== JSON.stringify(record)) at++;
      if (at++ === allowed.length) return false;
    }
    return true;
  }
});

describe('a broken record in a sequence', () => {
  const pretty = (note: string) => `{\n  "user_id": "u1",\n  "note": ${note}\n}\n`;
  const good = (id: string) => `{\n  "user_id": "${id}"\n}\n`;

  it.each([
    ['a comma too many', pretty('1,')],
    ['a value without quotes', pretty('none')],
    ['a Windows path', pretty('"C:\\users"')],
    ['two numbers', pretty('1 2')],
    ['a brace too many', `${pretty('1')}}\n`],
    ['an end that is missing', pretty('1').slice(0, -2)],
  ])('a record with %s is refused, but not the next record, which starts a line', async (_, record) => {
    const text = `${good('u0')}${record}${good('u2')}`;
    for (const ends of [[], bytewise(Buffer.from(text))]) {
      const objects = recordsOf(await take(text, {}, ends)).filter((value) => typeof value === 'object');
      expect(objects.at(0)).toEqual({ user_id: 'u0' });
      if (!record.endsWith('1\n')) expect(objects.at(-1)).toEqual({ user_id: 'u2' });
    }
  });

  it('a record that is cut at the end of the file is refused alone', async () => {
    const cut = '{\n  "user_id": "u1",\n  "na';
    expect(recordsOf(await take(good('u0') + cut))).toEqual([{ user_id: 'u0' }, '{"user_id":"u1","na']);
    const spoilt = `${good('u0')}{"user_id": x\n}\n`;
    expect(recordsOf(await take(spoilt))).toEqual([{ user_id: 'u0' }, expect.stringContaining('x')]);
  });

  // proves: json-layouts
  it('a sequence is refused if a line of a text could be taken for a record', async () => {
    const text = `${good('u0')}${pretty('"one\n}\n{"user_id":"phantom"}\n"')}${good('u2')}`;
    expect(await refusal(text)).toMatch(
      /^400 invalid_json: .*byte 0xa in a string.* \(line 6, column 15 \(byte 57\)\)$/,
    );
  });
});

it.each([
  ['broken lines', '{"user_id":"u0"}\n{"user_id":\n{"user_id":"u2"}\nx\n'],
  ['a first line that is broken', '{"user_id":"u0"\n{"user_id":"u1"}\n{"user_id":"u2"}\n'],
  ['a first line that is cut in the middle of an object', '{"a":{"b":\n{"user_id":"u1"}\n{"user_id":"u2"}\n'],
  ['a record without an end', '{"user_id":"u0","a'],
  ['two records on one of its lines', '{"user_id":"u0"}\n{"user_id":"u1"}{"user_id":"u2"}\n'],
  ['carriage returns inside', '{"user_id":\r"u0"}\n{"user_id":"u1"}\r\n'],
])('plain NDJSON with %s is stored unchanged', async (_, text) => {
  const file = await take(text);
  expect(file.text).toBe(text);
  expect(file.readAs).toMatchObject({ format: 'ndjson', notes: [] });
});

it('an object with an id is a record, even with arrays of objects', async () => {
  const record = { user_id: 'u1', items: [{ sku: 1 }] };
  for (const text of [JSON.stringify(record), JSON.stringify(record, null, 2)]) {
    const file = await take(text, { filename: 'user.json' });
    expect(recordsOf(file)).toEqual([record]);
    expect(file.object).toEqual({ keys: ['user_id', 'items'], arrays: ['items'] });
  }
  const mappedFile = await take('{"id":"u1","items":[{"sku":1}]}', { map: { id: 'user_id' } });
  expect(recordsOf(mappedFile)).toHaveLength(1);
});

it('an object that may be a record or hold an array of records is refused', async () => {
  const ambiguity =
    '400 invalid_field: The document may be a record itself, or hold an array of them; say records=users for the array, or format=ndjson for one record (records)';
  const text = '{"company_id":"acme","users":[{"user_id":"u1"}]}';
  expect(await refusal(text)).toBe(ambiguity);
  expect(recordsOf(await take(text, { format: 'ndjson' }))).toHaveLength(1);
  expect(recordsOf(await take(text, { source: { records: 'users' } }))).toEqual([{ user_id: 'u1' }]);
  expect(await refusal('{"id":"7","items":[{"id":"u1"}]}', { map: { id: 'user_id' } })).toContain(
    'records=items',
  );
});

describe('the records of a document', () => {
  it('several arrays under known keys are refused with the options', async () => {
    expect(await refusal('{"users":[{"user_id":"u1"}],"companies":[{"company_id":"c1"}]}')).toBe(
      '400 invalid_field: The document holds several arrays of objects; say which has the records: records=users or records=companies (records)',
    );
    expect(await refusal('{"users":[{}],"users":[{}]}')).toContain('more than one array "users"');
  });

  it('an array behind 3 MiB of other text is found', async () => {
    const about = { about: 'x'.repeat(3 << 20), users: [{ user_id: 'u1' }] };
    for (const text of [
      JSON.stringify(about, null, 1),
      `{"log":[{"a":1}],${JSON.stringify(about).slice(1)}`,
    ]) {
      expect(recordsOf(await take(text))).toEqual(about.users);
    }
    const nested = JSON.stringify({ list: { of: [{ user_id: 'u1' }] }, about: about.about });
    expect(await refusal(nested)).toContain(
      '400 missing_field: The document has no array of records under a key that is known; say where the records are, such as records=list.of',
    );
  });

  // proves: json-layouts
  it('a record that is not UTF-8 is refused alone, and its bytes are kept', async () => {
    const bad = Buffer.from('{"user_id":"u2","name":"J\xf6rg"}', 'latin1');
    const words = '"é é é é é é é é é é"';
    const bytes = Buffer.concat([
      Buffer.from(`\ufeff{"note":${words},"users":[{"user_id":"u1"},`),
      bad,
      Buffer.from(',{"user_id":"u3"}],"end":"'),
      Buffer.of(0xc3, 0x28),
      Buffer.from('"}'),
    ]);
    const lines = Buffer.concat([
      Buffer.from('{"user_id":"u1"}\n'),
      bad,
      Buffer.from('\n{"user_id":"u3"}\n'),
    ]);
    for (const hints of [{}, { source: { records: 'users' } }]) {
      for (const ends of [[], bytewise(bytes)]) {
        const signal = new AbortController().signal;
        const received = await receive(inPieces(bytes, ends), store, hints, limits, signal);
        expect(await collect(store.open(received.ref))).toEqual(lines);
        await store.remove(received.ref);
      }
    }
  });
});

describe('any document', () => {
  const knownKeys = ['users', 'companies', 'events', 'batch', 'data', 'records', 'items', 'results', 'rows'];
  const key = fc.constantFrom('users', 'data', 'rows', 'a', 'b.c', '0', '1');
  const { document } = fc.letrec<{ document: Json; value: Json }>((tie) => ({
    document: fc.dictionary(key, tie('value'), { maxKeys: 5 }),
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom<Json>(null, 1, 'x', {}, []),
      fc.array(fc.record({ n: fc.nat(9) }), { maxLength: 3 }),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('document'),
    ),
  }));
  type Json = unknown;

  // proves: json-layouts
  it('the records are at the specified path, or the only objects under a known key', async () => {
    const path = fc.option(fc.array(key, { minLength: 1, maxLength: 4 }));
    let arrayCount = 0;
    let otherCount = 0;
    await fc.assert(
      fc.asyncProperty(document, path, indent, cuts, async (value, keys, spaces, shares) => {
        const text = JSON.stringify(value, null, spaces);
        const expectedRecords = keys === null ? onlyKnown(value) : arrayAt(value, keys);
        const records = keys?.map((key) => key.replace('.', '\\.')).join('.');
        const hints = { filename: 'a.json', ...(records !== undefined && { source: { records } }) };
        const file = await take(text, hints, endsOf(text, shares)).catch(() => null);
        const isDocument = file !== null && file.readAs.format === 'json';
        if (expectedRecords === null) otherCount++;
        else arrayCount++;
        expect(isDocument ? recordsOf(file) : null).toEqual(expectedRecords);
      }),
      { numRuns: runs(400) },
    );
    expect(Math.min(arrayCount, otherCount)).toBeGreaterThan(5);
  });

  const arrayAt = (value: Json, keys: readonly string[]): unknown[] | null => {
    let inner = value;
    for (const key of keys) {
      const isContainer = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key);
      if (!isContainer) return null;
      inner = (inner as Record<string, unknown>)[key];
    }
    return Array.isArray(inner) && inner.length > 0 ? inner : null;
  };

  const onlyKnown = (value: Json): unknown[] | null => {
    const arrays = Object.entries(value as object).flatMap(([name, inner]) =>
      knownKeys.includes(name) && Array.isArray(inner) && isObject(inner[0]) ? [inner] : [],
    );
    return arrays.length === 1 ? (arrays[0] ?? null) : null;
  };

  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
});

describe('the notes on a document', () => {
  const notesOf = async (text: string, hints: ReceiveHints = {}) => (await take(text, hints)).readAs.notes;

  it('the notes of a job name the array of records and the skipped arrays', async () => {
    const text = '{"data":[{"user_id":"u1"}],"included":[{"id":1}]}';
    expect(await notesOf(text)).toEqual([
      'Records are under data.',
      'Other arrays of objects were passed over: included.',
    ]);
    expect(await notesOf(text, { source: { records: 'included' } })).toEqual(['Records are under included.']);
    expect(await notesOf('[{"user_id":"u1"}]')).toEqual([]);
    expect((await take(text)).readAs).toMatchObject({ format: 'json', encoding: 'utf-8', csv: null });
  });
});
