import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { parquetReadObjects } from 'hyparquet';
import { expressionBuilder, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { exportFormatFacts, exportFormats } from '../../src/domain/export.ts';
import { propertyNameProblem } from '../../src/domain/reject.ts';
import type { SourceOptions } from '../../src/domain/source.ts';
import { type SegmentTest, texts as textArray } from '../../src/export/filter.ts';
import { heading } from '../../src/export/write/csv.ts';
import { compileSegment } from '../../src/lookups/segments/compile-segment.ts';
import { text } from '../../src/lookups/segments/compile-test.ts';
import { compileForCopy, copyOut } from '../../src/postgres/copy-out.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import type { DB } from '../../src/postgres/schema.ts';
import {
  contentHashes,
  type ExportOptions,
  exportAll,
  records,
  storedBytes,
  texts,
} from '../support/files/export-files.ts';
import { hazardousText } from '../support/files/formulas.ts';
import {
  type FileOptions,
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
} from '../support/files/load-file.ts';
import { expectedOf, filters, store, stored } from '../support/oracles/export-oracle.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

/** On S3, these tests prove only that files are stored, not which rows are exported. */
const onS3 = process.env['SLUICE_TEST_STORAGE'] === 's3';
/** The content does not depend on the storage, so on S3 one format is enough. */
const formatsOf = <T>(all: readonly T[]): readonly T[] => (onS3 ? all.slice(0, 1) : all);

const t = await systemOfFile();

async function load(
  environmentId: number,
  content: string | Buffer,
  options: FileOptions = {},
): Promise<void> {
  const ended = await runManually(await startManually(t.system, environmentId, content, options));
  expect(ended).toMatchObject({ status: 'completed', failure: null, tally: { rejected: 0 } });
}

const keepApostrophes: FileOptions = { source: { apostrophes: 'keep' } };

const lines = (...items: readonly object[]) => items.map((item) => `${JSON.stringify(item)}\n`).join('');

async function exported(environmentId: number, options: ExportOptions = {}): Promise<Record<string, string>> {
  return texts(t.system, await exportAll(t.system, environmentId, options));
}

function ofPlan(environmentId: number, plans: readonly string[]): SegmentTest {
  return (user) =>
    compileSegment(
      { kind: 'property', property: 'plan', negated: false, test: { kind: 'one_of', values: plans } },
      { environmentId, now: new Date(), user },
    );
}

describe.skipIf(onS3)('the rows of an export', () => {
  test('an export with any filters has the rows of a naive evaluation, and nothing of another environment', async () => {
    await fc.assert(
      fc.asyncProperty(stored, stored, filters, async (data, foreign, wanted) => {
        const environmentId = await newEnvironment(t.system);
        await store(t.system.db, environmentId, data);
        await store(t.system.db, await newEnvironment(t.system), foreign);
        const { segment, excludedSegments, ...request } = wanted;
        const files = await exported(environmentId, {
          ...request,
          segment: segment === null ? null : ofPlan(environmentId, segment),
          excludedSegments: excludedSegments.map((plans) => ofPlan(environmentId, plans)),
        });
        const rowsOf = (name: string, id: string) =>
          records(files[`${name}.ndjson`]).map((record) => ({
            id: record[id],
            metadata: record['metadata'],
          }));
        const expected = expectedOf(data, wanted);
        expect(rowsOf('users', 'user_id')).toEqual(expected.users);
        expect(rowsOf('companies', 'company_id')).toEqual(expected.companies);
        expect(rowsOf('events', 'event_id')).toEqual(expected.events);
      }),
      { numRuns: runs(60) },
    );
  });

  // proves: snapshot
  test('an export has exactly the rows of its snapshot, despite later writes and removals', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(
      environmentId,
      lines({ user_id: 'a', metadata: { x: 1 } }, { user_id: 'b' }, { company_id: 'c' }),
    );
    const { db } = t.system;
    const files = await exported(environmentId, {
      onSnapshot: async () => {
        await sql`delete from users where environment_id = ${environmentId} and user_id = 'b'`.execute(db);
        await sql`update users set metadata = '{"x": 2}' where environment_id = ${environmentId}`.execute(db);
        await sql`insert into companies (environment_id, company_id) values (${environmentId}, 'new')`.execute(
          db,
        );
      },
    });
    expect(records(files['users.ndjson'])).toMatchObject([
      { user_id: 'a', metadata: { x: 1 } },
      { user_id: 'b' },
    ]);
    expect(records(files['companies.ndjson'])).toMatchObject([{ company_id: 'c' }]);
  });
});

/** Text that SQL, COPY, CSV or JSON could misread as syntax. */
const awkwardPiece = fc.oneof(
  fc.constantFrom(
    ...[
      "'",
      '"',
      '\\',
      '$1',
      "current_setting('sluice.p1')",
      '\n',
      '\r\n',
      '\t',
      ',',
      '{}',
      '\\.',
      '\\N',
      '=1+1',
    ],
    ...['\u0001', '\u0002', '\u007f', '\u2028', '😀', 'é', "'; drop table users; --", '%', '_', '*', ''],
  ),
  fc
    .string({ unit: 'binary', maxLength: 5 })
    .filter((piece) => piece.isWellFormed() && !piece.includes('\0')),
);
const awkward = fc.array(awkwardPiece, { maxLength: 6 }).map((pieces) => pieces.join(''));

const { nested } = fc.letrec<{ nested: unknown }>((tie) => ({
  nested: fc.oneof(
    { maxDepth: 2 },
    fc.oneof(awkward, fc.integer(), fc.boolean()),
    fc.array(tie('nested'), { maxLength: 3 }),
    fc.dictionary(awkward, tie('nested'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

describe.skipIf(onS3)('values', () => {
  test('values reach COPY unchanged, and never change the text of the statement', async () => {
    const query = (value: string, list: readonly string[]) =>
      compileForCopy({
        toOperationNode: () =>
          sql`select json_build_array(${text(value)}, to_json(${textArray(list)}), cast(${value} as text))::text
            where ${text(value)} = any(${textArray([...list, value])})`.toOperationNode() as never,
      });
    await inTransaction(t.system.pool, async ({ client }) => {
      await fc.assert(
        fc.asyncProperty(awkward, fc.array(awkward, { maxLength: 4 }), async (value, list) => {
          const select = query(value, list);
          expect(select.text).toBe(query('other', []).text);
          const pieces: Buffer[] = [];
          const never = new AbortController().signal;
          for await (const piece of copyOut(client, select, 'values', never)) pieces.push(piece);
          expect(JSON.parse(Buffer.concat(pieces).toString())).toEqual([value, list, value]);
        }),
        { numRuns: runs(150) },
      );
    });
  });

  test('a parameter that is not a text is refused before the statement is sent', () => {
    const query = expressionBuilder<DB>()
      .selectFrom('users')
      .select('user_id')
      .where('environment_id', '=', 1);
    expect(() => compileForCopy(query)).toThrow(/parameter/);
  });

  test('values of an export are unchanged in NDJSON and CSV', async () => {
    const record = fc.record({
      id: awkward.map((id) => `u${id}`.slice(0, 40).toWellFormed()),
      company: fc.option(
        awkward.map((id) => `c${id}`.slice(0, 40).toWellFormed()),
        { nil: null },
      ),
      plain: awkward,
      number: fc.constantFrom('0', '-5', '12345678901234567890.123456789', '1.50', '0.000001'),
      nested,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(record, { minLength: 1, maxLength: 8, selector: ({ id }) => id }),
        async (users) => {
          const environmentId = await newEnvironment(t.system);
          for (const { id, company, plain, number, nested } of users) {
            await sql`insert into users (environment_id, user_id, company_id, metadata) values (
              ${environmentId}, ${id}, ${company},
              jsonb_build_object('plain', ${plain}::text, 'number', ${number}::numeric, 'nested', ${JSON.stringify(nested)}::jsonb)
            )`.execute(t.system.db);
          }
          await list(environmentId, ['nested', 'number', 'plain']);
          const sorted = users.toSorted((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));

          const ndjson = (await exported(environmentId))['users.ndjson'] ?? '';
          expect(records(ndjson)).toEqual(
            sorted.map(({ id, company, plain, number, nested }) => ({
              user_id: id,
              company_id: company,
              metadata: { plain, number: Number(number), nested },
              first_seen_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
              last_seen_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
            })),
          );
          for (const { number } of users) expect(ndjson).toContain(`"number": ${number}`);

          const plainCsv = await exported(environmentId, { format: 'csv', escapeFormulas: false });
          const [header, ...rows] = parse(plainCsv['users.csv'] ?? '') as string[][];
          expect(header?.join()).toBe('user_id,company_id,nested,number,plain,first_seen_at,last_seen_at');
          const cells = rows.map(([id, company, nested, ...others]) => [
            id,
            company,
            cellValue(nested),
            ...others,
          ]);
          expect(cells.map((row) => row.slice(0, 5))).toEqual(
            sorted.map((user) => [user.id, user.company ?? '', cellOf(user.nested), user.number, user.plain]),
          );

          const escapedCsv = await exported(environmentId, { format: 'csv' });
          const [, ...escaped] = parse(escapedCsv['users.csv'] ?? '') as string[][];
          for (const [index, row] of escaped.entries()) {
            for (const [column, cell] of row.entries()) {
              const before = rows[index]?.[column] ?? '';
              // Cells with JSON or times are not formulas, because they begin with a brace or a
              // digit.
              expect(cell).toBe(isFormula(before) ? `'${before}` : before);
            }
          }
        },
      ),
      { numRuns: runs(12) },
    );
  });

  // proves: formulas
  test('values load back byte for byte from a CSV, with formulas defused or not', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          hazardousText.filter((name) => propertyNameProblem(name) === null && heading(name) === name),
          hazardousText.filter((value) => value !== ''),
          { minKeys: 1, maxKeys: 4, noNullPrototype: true },
        ),
        fc.uniqueArray(
          hazardousText.filter((id) => id.trim() !== ''),
          { minLength: 1, maxLength: 4 },
        ),
        fc.boolean(),
        async (metadata, ids, escapeFormulas) => {
          const environmentId = await newEnvironment(t.system);
          const [first = ''] = ids;
          await load(
            environmentId,
            lines(...ids.map((id) => ({ user_id: id, company_id: first, metadata }))),
          );
          const files = await exported(environmentId, { format: 'csv', escapeFormulas });
          const again = await newEnvironment(t.system);
          await load(again, files['users.csv'] ?? '', escapeFormulas ? {} : keepApostrophes);
          expect(await readProfiles(t.system, again)).toEqual(await readProfiles(t.system, environmentId));
        },
      ),
      { numRuns: runs(25) },
    );
  });

  // proves: loads-back
  test('values load back from a CSV as the texts of their cells, because CSV has no types and no empty text', async () => {
    const environmentId = await newEnvironment(t.system);
    const metadata = { n: -1.5, yes: true, list: [1, "'=x"], empty: '', text: "'=x", blank: ' ' };
    await load(environmentId, lines({ user_id: 'u', metadata }, { user_id: 'v', metadata: { empty: 'e' } }));
    for (const escapeFormulas of [true, false]) {
      const files = await exported(environmentId, { format: 'csv', escapeFormulas });
      const again = await newEnvironment(t.system);
      await load(again, files['users.csv'] ?? '', escapeFormulas ? {} : keepApostrophes);
      const { users } = await readProfiles(t.system, again);
      expect(users['u']?.metadata).toEqual({
        ...{ n: '-1.5', yes: 'true', list: '[1, "\'=x"]', text: "'=x", blank: ' ' },
      });
      expect(users['v']?.metadata).toEqual({ empty: 'e' });
    }
  });

  test('a CSV that a spreadsheet wrote again loads formulas without their apostrophe, unless it is to be kept', async () => {
    const csv = `user_id;phone;first_seen_at;last_seen_at\nu;'+49 1;;\nv;'tis;;\n`;
    const phones = async (source: SourceOptions) => {
      const id = await newEnvironment(t.system);
      const manual = await startManually(t.system, id, csv, { source });
      const { tally } = await runManually(manual);
      const { users } = await readProfiles(t.system, id);
      return [tally.rejected, ...Object.values(users).map(({ metadata }) => metadata['phone'])];
    };
    expect(await phones({})).toEqual([0, '+49 1', "'tis"]);
    expect(await phones({ apostrophes: 'remove' })).toEqual([0, '+49 1', "'tis"]);
    expect(await phones({ apostrophes: 'keep' })).toEqual([0, "'+49 1", "'tis"]);
  });

  test('numbers of either sign are not defused in a CSV, and all other formulas are', async () => {
    const environmentId = await newEnvironment(t.system);
    const plain = ['-5', '+1.5e3', 'a=1', ''];
    const formulas = ['-1+1', '=1', '@a', '\tx', '\rx', '-', '+', "'=1", '-5\n=1', '＝1'];
    const metadata = Object.fromEntries(
      [...plain, ...formulas].map((value, index) => [`v${String(index).padStart(2, '0')}`, value]),
    );
    await load(environmentId, lines({ user_id: '=u', company_id: '@c', metadata, '=name': 'x' }));
    const [header, row] = parse(
      (await exported(environmentId, { format: 'csv' }))['users.csv'] ?? '',
    ) as string[][];
    expect(header).toContain("'=name");
    expect(row?.slice(0, 2)).toEqual(["'=u", "'@c"]);
    expect(row?.slice(3, -2)).toEqual([...plain, ...formulas.map((value) => `'${value}`)]);
  });

  test('properties are columns in order, and a property named as a fixed column is distinct from it', async () => {
    const environmentId = await newEnvironment(t.system);
    const names = ['user_id', 'company_id', 'metadata', 'metadata.x', 'sluice_row', 'z', 'Z'];
    const metadata = Object.fromEntries(names.map((name, index) => [name, String(index)]));
    await load(environmentId, lines({ user_id: 'u', company_id: 'c', metadata }));
    await sql`update users set metadata = metadata || '{"first_seen_at": "8"}' where environment_id = ${environmentId}`.execute(
      t.system.db,
    );
    const csv = (await exported(environmentId, { format: 'csv' }))['users.csv'] ?? '';
    expect(csv.split('\n')[0]).toBe(
      'user_id,company_id,Z,metadata.company_id,metadata.first_seen_at,metadata.last_seen_at,' +
        'metadata.metadata,metadata.metadata.x,metadata.sluice_row,metadata.user_id,z,first_seen_at,last_seen_at',
    );
    const again = await newEnvironment(t.system);
    await load(again, csv);
    const [user] = records((await exported(again))['users.ndjson']);
    expect(user).toMatchObject({
      user_id: 'u',
      company_id: 'c',
      metadata: { ...metadata, first_seen_at: '8' },
    });
  });

  test('an export with more properties than a result has columns loses none', async () => {
    const environmentId = await newEnvironment(t.system);
    const metadata = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [`key ${index}`, `v${index}`]),
    );
    await load(
      environmentId,
      lines({ user_id: 'u', metadata }, { user_id: 'v', metadata: { 'key 3': 'x' } }),
    );
    const [u, v] = records((await exported(environmentId))['users.ndjson']);
    expect(u?.['metadata']).toEqual(metadata);
    expect(v?.['metadata']).toEqual({ 'key 3': 'x' });
    const csv = (await exported(environmentId, { format: 'csv' }))['users.csv'] ?? '';
    const [first, second] = parse(csv, { columns: true }) as Record<string, string>[];
    const { metadata: others = '', ...columns } = first ?? {};
    for (const name of ['user_id', 'company_id', 'first_seen_at', 'last_seen_at']) delete columns[name];
    expect(Object.keys(columns)).toHaveLength(1500);
    expect({ ...columns, ...JSON.parse(others) }).toEqual(metadata);
    expect(second).toMatchObject({ user_id: 'v', metadata: expect.stringMatching(/^$|^\{"key 3": "x"\}$/) });
  });

  test('events have all their columns in NDJSON and CSV', async () => {
    const environmentId = await newEnvironment(t.system);
    await store(t.system.db, environmentId, {
      users: [],
      companies: [],
      events: [
        {
          ...{ id: 'e2', name: 'n', user: 'u', company: null },
          ...{ insertedAt: '2026-03-01T01:02:03.000004Z', metadata: {} },
        },
        {
          ...{ id: 'e1', name: '=n', user: 'u', company: 'c' },
          ...{ insertedAt: '2026-03-01T01:02:03.4Z', metadata: { a: '"' } },
        },
      ],
    });
    expect((await exported(environmentId))['events.ndjson']).toBe(
      '{"event_id":"e2","event_type":"track","event_name":"n","user_id":"u","source":"test",' +
        '"inserted_at":"2026-03-01T01:02:03.000004Z","metadata":{}}\n' +
        '{"event_id":"e1","event_type":"track","event_name":"=n","user_id":"u","company_id":"c","source":"test",' +
        '"inserted_at":"2026-03-01T01:02:03.400000Z","metadata":{"a": "\\""}}\n',
    );
    expect((await exported(environmentId, { format: 'csv' }))['events.csv']).toBe(
      'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata\n' +
        'e2,track,n,u,,test,2026-03-01T01:02:03.000004Z,\n' +
        `e1,track,'=n,u,c,test,2026-03-01T01:02:03.400000Z,"{""a"": ""\\""""}"\n`,
    );
  });
});

/** Returns whether a cell is a formula or looks like a defused formula. */
function isFormula(written: string): boolean {
  const cell = written.replace(/^'+/, '');
  return /^[=+\-@\t\r\n＝＋－＠]/.test(cell) && Number.isNaN(numberOf(cell));
}

/** Returns the number that a spreadsheet would read from a cell. NaN if it would read text. */
function numberOf(cell: string): number {
  return /^[-+]?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(cell) ? Number(cell) : Number.NaN;
}

/**
 * Returns the expected content of a cell. Nested values are compared as values, because jsonb
 * decides where their text has spaces.
 */
function cellOf(value: unknown): unknown {
  if (value === null) return '';
  return typeof value === 'object' ? value : cellValue(String(value));
}

function cellValue(cell = ''): unknown {
  return /^[[{]/.test(cell) ? tryParse(cell) : cell;
}

function tryParse(cell: string): unknown {
  try {
    return JSON.parse(cell);
  } catch {
    return cell;
  }
}

async function list(environmentId: number, names: readonly string[]): Promise<void> {
  const rows = names.map((key) => ({
    environment_id: environmentId,
    entity: 'users',
    key,
    display_name: key,
    data_type: 'string',
  }));
  await t.system.db.insertInto('properties').values(rows).execute();
}

describe('files', () => {
  let environmentId = 0;
  const rows = 800;
  beforeAll(async () => {
    environmentId = await newEnvironment(t.system);
    await sql`insert into users (environment_id, user_id, metadata)
      select ${environmentId}::int, 'u' || i, jsonb_build_object('text', md5(i::text), 'lines', E'a\n"' || i)
      from generate_series(1, ${rows}::int) i`.execute(t.system.db);
    await list(environmentId, ['lines', 'text']);
  });

  test.each(['none', 'gzip'] as const)(
    'an export is split between rows (%s), with the header in each CSV',
    async (compression) => {
      const options = { format: 'csv', compression, datasets: ['users'], splitBytes: 10_000 } as const;
      const written = await exportAll(t.system, environmentId, options);
      const parts = written.files.slice(0, -1);
      expect(parts.length).toBeGreaterThan(compression === 'none' ? 5 : 1);
      const extension = compression === 'none' ? '.csv' : '.csv.gz';
      expect(parts.slice(0, 2).map(({ filename }) => filename)).toEqual([
        `users${extension}`,
        `users-0002${extension}`,
      ]);
      const whole = await exportAll(t.system, environmentId, { ...options, splitBytes: 1e9 });
      const [header, ...all] = parse((await texts(t.system, whole))[`users${extension}`] ?? '') as string[][];
      const files = await texts(t.system, written);
      const together: string[][] = [];
      for (const { filename, rows: count, bytes } of parts) {
        const [partHeader, ...some] = parse(files[filename] ?? '') as string[][];
        expect(partHeader).toEqual(header);
        expect(some).toHaveLength(count);
        if (compression === 'none') expect(bytes).toBeLessThan(10_000 + 200);
        together.push(...some);
      }
      expect(together).toEqual(all);
      expect(all).toHaveLength(rows);
      expect(await contentHashes(t.system, written)).toEqual(await contentHashes(t.system, whole));
    },
  );

  // proves: manifest
  test('the manifest of an export lists its files and its options', async () => {
    const options = { userIds: ['u1', 'u2'], exclusions: [{ kind: 'user', pattern: 'u2*' }] } as const;
    const written = await exportAll(t.system, environmentId, options);
    const stored = await storedBytes(t.system, written);
    const manifest = JSON.parse(stored['manifest.json']?.toString() ?? '');
    expect(written.files.at(-1)?.dataset).toBe('manifest');
    expect(manifest).toMatchObject({
      application: { name: 'sluice' },
      environment: { name: 'its environment', app_token: 'NX-00000000' },
      job_id: 'the job',
      snapshot_at: written.snapshotAt.toISOString(),
      options: { user_id: ['u1', 'u2'], exclusions: 'user:u2*' },
      datasets: [
        { dataset: 'users', rows: 1, content_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
        { dataset: 'companies', rows: 0 },
        { dataset: 'events', rows: 0, content_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
    });
    expect(manifest.files).toEqual(written.files.slice(0, -1).map(({ ref: _, ...listed }) => listed));
  });

  // proves: other-readers
  test.each([['parquet', 20_000, parquetRecords, readParquetUser]] as const)(
    'an export in %s has the same rows for an independent reader, in as many files as needed',
    async (format, splitBytes, readRows, readUser) => {
      const written = await exportAll(t.system, environmentId, { format, splitBytes });
      const stored = await storedBytes(t.system, written);
      const bytesOf = (filename: string) => stored[filename] ?? Buffer.alloc(0);
      const users: Record<string, unknown>[] = [];
      for (const { filename, rows: count } of written.files.filter(({ dataset }) => dataset === 'users')) {
        const some = await readRows(bytesOf(filename));
        expect(some).toHaveLength(count);
        users.push(...some);
      }
      expect(users).toHaveLength(rows);
      expect(stored).toHaveProperty([`users-0002.${format}`]);
      expect(users.map(readUser)).toEqual(records((await exported(environmentId))['users.ndjson']));
      expect(await readRows(bytesOf(`companies.${format}`))).toEqual([]);
    },
  );
});

const parquetRecords = (bytes: Uint8Array) => parquetReadObjects({ file: Uint8Array.from(bytes).buffer });

function readParquetUser({ metadata, first_seen_at, last_seen_at, ...user }: Record<string, unknown>) {
  return {
    ...user,
    metadata: JSON.parse(metadata as string),
    // Compares the times without their microseconds, because JavaScript dates have only
    // milliseconds.
    first_seen_at: expect.stringContaining((first_seen_at as Date).toISOString().slice(0, -1)),
    last_seen_at: expect.stringContaining((last_seen_at as Date).toISOString().slice(0, -1)),
  };
}

describe('an export loaded into an empty environment', () => {
  // proves: loads-back
  test.each(formatsOf(exportFormats.filter((each) => exportFormatFacts[each].isLossless)))(
    'users and companies of an export in %s load back with the same content hash',
    async (format) => {
      const from = await newEnvironment(t.system);
      await load(
        from,
        [
          '{"user_id":"a","company_id":"c1","metadata":{"n":12345678901234567890,"d":1.50,"o":{"b":[1,null]},"e":""}}',
          '{"user_id":"b","metadata":{"first_seen_at":"mine","q":"\\"\\\\\\n\\u0001é😀","user_id":"own"}}',
          '{"user_id":"c"}',
          '{"company_id":"c1","metadata":{"seats":-0.5,"metadata":{"metadata":1}}}',
          ...Array.from({ length: 400 }, (_, n) =>
            JSON.stringify({ user_id: `u${n}`, metadata: { n, yes: true } }),
          ),
        ].join('\n'),
      );
      const first = await exportAll(t.system, from, { format, splitBytes: 5_000 });
      const into = await newEnvironment(t.system);
      const stored = await storedBytes(t.system, first);
      for (const { filename, dataset } of first.files) {
        if (dataset === 'users' || dataset === 'companies')
          await load(into, stored[filename] ?? '', { filename });
      }
      const second = await exportAll(t.system, into, { format });
      expect(await contentHashes(t.system, second)).toEqual(await contentHashes(t.system, first));
      const ndjson = await exportAll(t.system, into, { format: 'ndjson' });
      expect(await contentHashes(t.system, ndjson)).toEqual(await contentHashes(t.system, first));
    },
  );

  // proves: loads-back
  test.each(formatsOf(exportFormats))(
    'an export in %s loads back with the same content hash, events included',
    async (format) => {
      const from = await newEnvironment(t.system);
      await load(
        from,
        lines({ user_id: 'a', company_id: 'c', plan: 'pro', n: '1' }, { company_id: 'c', x: 'y' }),
      );
      await sql`select ensure_events_partition('2026-01-02'), ensure_events_partition('2026-02-02')`.execute(
        t.system.db,
      );
      await sql`insert into events
          (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
        select ${from}::int, 'e' || i, case when i % 3 = 0 then 'page_view' else 'track' end, '=name ' || i % 5,
          'u' || i % 50, case when i % 2 = 0 then 'c' || i % 7 end, 'test',
          '2026-01-20T00:00:00.000001Z'::timestamptz + i * interval '130 minutes',
          case when i % 4 = 0 then '{}' else jsonb_build_object('n', 12345678901234567890, 'o', array[i, null], 'url', '/x') end
        from generate_series(1, 300) i`.execute(t.system.db);
      const first = await exportAll(t.system, from, { format, splitBytes: 8_000 });
      const into = await newEnvironment(t.system);
      const stored = await storedBytes(t.system, first);
      for (const { filename, dataset } of first.files) {
        if (dataset !== 'manifest') await load(into, stored[filename] ?? '', { filename });
      }
      const second = await exportAll(t.system, into, { format, splitBytes: 8_000 });
      expect(await contentHashes(t.system, second)).toEqual(await contentHashes(t.system, first));
      // Loads a stream into a new environment, twice. The second load must add nothing.
      const stream = await exportAll(t.system, from, { format, layout: 'stream' });
      const whole = await newEnvironment(t.system);
      const file = (await storedBytes(t.system, stream))[`stream.${format}`] ?? '';
      await load(whole, file, { filename: `stream.${format}` });
      await load(whole, file, { filename: `stream.${format}` });
      const third = await contentHashes(t.system, await exportAll(t.system, whole, { format: 'ndjson' }));
      const plain = await exportAll(t.system, from, { format: 'ndjson' });
      expect(third['users']).toBe((await contentHashes(t.system, plain))['users']);
      const rows = async (id: number) =>
        records((await exported(id, { layout: 'stream', datasets: ['events'] }))['stream.ndjson']);
      expect(await rows(whole)).toEqual(await rows(from));
    },
  );
});

describe('an interrupted export', () => {
  let environmentId = 0;
  beforeAll(async () => {
    environmentId = await newEnvironment(t.system);
    await sql`insert into users (environment_id, user_id, metadata)
      select ${environmentId}::int, 'u' || i, jsonb_build_object('text', repeat(md5(i::text), 100))
      from generate_series(1, 4000) i`.execute(t.system.db);
  });

  async function expectNothingLeft(before: readonly string[]): Promise<void> {
    expect(await t.storedFiles()).toEqual(before);
    await waitFor('no export to run in Postgres', async () => {
      const { rows } = await sql<{ query: string }>`select query from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_xmin is not null
          and query like 'copy (%'`.execute(t.system.db);
      return rows.length === 0 ? true : null;
    });
  }

  test('an export that is aborted half-way leaves no file and no statement', async () => {
    const before = await t.storedFiles();
    const stop = new AbortController();
    const reason = new Error('no longer wanted');
    const exporting = exportAll(t.system, environmentId, {
      compression: 'gzip',
      splitBytes: 20_000,
      signal: stop.signal,
      onProgress: (rows) => {
        if (rows > 1000) stop.abort(reason);
      },
    });
    await expect(exporting).rejects.toBe(reason);
    await expectNothingLeft(before);
  });

  test('an export that is aborted before its first row ends its statement', async () => {
    const before = await t.storedFiles();
    const stop = new AbortController();
    const slow: SegmentTest = () => sql<boolean>`(select pg_sleep(60))::text is not null`;
    const exporting = exportAll(t.system, environmentId, { segment: slow, signal: stop.signal });
    const failed = expect(exporting).rejects.toThrow('aborted');
    await waitFor('the statement to run', async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep' and query like 'copy (%'`.execute(
        t.system.db,
      );
      return rows.length > 0 ? true : null;
    });
    stop.abort();
    await failed;
    await expectNothingLeft(before);
  });

  test('an export whose session is ended fails and leaves nothing', async () => {
    const before = await t.storedFiles();
    const exporting = exportAll(t.system, environmentId, {
      onSnapshot: async ({ backendPid }) => {
        await sql`select pg_terminate_backend(${backendPid}::int)`.execute(t.system.db);
      },
    });
    await expect(exporting).rejects.toThrow();
    await expectNothingLeft(before);
  });
});
