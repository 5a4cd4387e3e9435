import fc from 'fast-check';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { instantOfMicros } from '../../../../src/base/instant.ts';
import { columnsOf } from '../../../../src/domain/export.ts';
import { StoredFileWriter } from '../../../../src/export/write/attempt-files.ts';
import { ParquetFile } from '../../../../src/export/write/parquet.ts';
import { ndjsonWriter } from '../../../../src/export/write/rows.ts';
import type { GroupFile } from '../../../../src/export/write/split-files.ts';
import { runs } from '../../../support/runs.ts';

interface User {
  readonly user_id: string;
  readonly company_id: string | null;
  readonly metadata: string;
  readonly first_seen_at: bigint;
  readonly last_seen_at: bigint;
}

const maxRows = 300;
const rows = { dataset: 'users', request: { includeRemoved: false } } as const;
const columns = columnsOf('users', { includeRemoved: false });

/** Short and long strings. Some are repeated or empty, and some are not ASCII or need escapes. */
const anyText = fc.oneof(
  fc.constantFrom('', 'a', 'ab', '"', '\\', '\u0002\n', 'é', '😀', '\ufeffx', 'x'.repeat(100)),
  fc.string({ maxLength: 90, unit: 'binary' }),
);
const anyMicros = fc.oneof(
  fc.bigInt(0n, 4_102_444_800_000_000n),
  fc.bigInt(-62_167_219_200_000_000n, 253_402_300_799_000_000n),
);
const anyUser: fc.Arbitrary<User> = fc.record({
  user_id: anyText,
  company_id: fc.oneof(fc.constant(null), anyText),
  metadata: fc.oneof(
    fc.constant('{}'),
    fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify({ value })),
  ),
  first_seen_at: anyMicros,
  last_seen_at: anyMicros,
});
/** Users, some of them repeated, so that the file has a dictionary. */
const anyUsers = fc
  .tuple(fc.array(anyUser, { minLength: 1, maxLength: 40 }), fc.array(fc.nat(), { maxLength: maxRows }))
  .map(([users, places]) =>
    [...users, ...places.map((at) => users[at % users.length] as User)].slice(0, maxRows),
  );

function rowOf({ user_id, company_id, metadata, first_seen_at, last_seen_at }: User): string {
  const company = company_id === null ? '' : JSON.stringify(company_id);
  return `${[JSON.stringify(user_id), company, metadata, first_seen_at, last_seen_at].join('\u0002')}\n`;
}

function blockOf(users: readonly User[]) {
  const rows = users.map((user) => Buffer.from(rowOf(user)));
  let length = 0;
  const ends = rows.map((row) => {
    length += row.length;
    return length;
  });
  return { bytes: Buffer.concat(rows), ends };
}

async function write(
  create: (output: StoredFileWriter) => GroupFile,
  groups: readonly (readonly User[])[],
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const writer = {
    ref: 'stored' as never,
    write: async (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)),
    commit: async () => 'stored' as never,
    discard: async () => undefined,
  };
  const storedFile = new StoredFileWriter(writer, 'none');
  const file = create(storedFile);
  for (const group of groups) {
    const { bytes, ends } = blockOf(group);
    for (const [row, end] of ends.entries()) file.addRow(bytes, row === 0 ? 0 : (ends[row - 1] ?? 0), end);
    await file.endGroup();
  }
  await file.end();
  await storedFile.finish();
  return Buffer.concat(pieces);
}

const toParquet = (groups: readonly (readonly User[])[]) =>
  write((storedFile) => new ParquetFile(rows, storedFile, maxRows), groups);

const parsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString(),
} as never;

async function readParquet(file: Buffer): Promise<unknown[]> {
  const rows = await parquetReadObjects({
    file: Uint8Array.from(file).buffer,
    parsers,
  });
  return rows.map((row) => ({ ...row, company_id: row['company_id'] ?? null }));
}

// proves: other-readers
test('a Parquet reader reads every value of every row group', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyUsers, { minLength: 1, maxLength: 3 }), async (groups) => {
      expect(await readParquet(await toParquet(groups))).toEqual(groups.flat());
    }),
    { numRuns: runs(100) },
  );
});

test('a row group states its minimum, maximum and number of missing values', async () => {
  await fc.assert(
    fc.asyncProperty(anyUsers, async (users) => {
      const ids = users.map(({ user_id }) => Buffer.from(user_id)).toSorted(Buffer.compare);
      const times = users.map(({ last_seen_at }) => last_seen_at).toSorted((a, b) => (a < b ? -1 : 1));
      const file = await toParquet([users]);
      const [group] = parquetMetadata(Uint8Array.from(file).buffer, { parsers }).row_groups;
      const statistics = group?.columns.map(({ meta_data }) => meta_data?.statistics);
      // Statistics contain only the beginning of a long value, so only short values are compared.
      const isExact = (text: Buffer | undefined): boolean => text !== undefined && text.length <= 16;
      if (isExact(ids[0])) expect(statistics?.[0]).toMatchObject({ min_value: ids[0]?.toString() });
      if (isExact(ids.at(-1))) expect(statistics?.[0]).toMatchObject({ max_value: ids.at(-1)?.toString() });
      const missing = users.filter(({ company_id }) => company_id === null).length;
      expect(statistics?.[1]).toMatchObject({ null_count: BigInt(missing) });
      expect(statistics?.[2]).toBeUndefined();
      expect(statistics?.[4]).toMatchObject({ min_value: times[0], max_value: times.at(-1) });
    }),
    { numRuns: runs(100) },
  );
});

// proves: other-readers
test('texts with colliding hashes are read back as often as they were written', async () => {
  const slots = 1024;
  const hashOf = (text: string): number => {
    let hash = 0x811c9dc5 | 0;
    for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
    return (hash ^ (hash >>> 15)) & (slots - 1);
  };
  const colliding: string[] = [];
  for (let n = 0; colliding.length < 60; n++) if (hashOf(`t${n}`) === 7) colliding.push(`t${n}`);
  const users = [...colliding, ...colliding, ...colliding].map((user_id) => ({
    user_id,
    company_id: null,
    metadata: '{}',
    first_seen_at: 0n,
    last_seen_at: 0n,
  }));
  expect(await readParquet(await toParquet([users]))).toEqual(users);
});

test('rows become NDJSON with names, unchanged values and times in UTC', () => {
  const writer = ndjsonWriter(columns);
  fc.assert(
    fc.property(anyUsers, (users) => {
      const instant = (micros: bigint): string => JSON.stringify(instantOfMicros(Number(micros)));
      const rows = users.map(({ user_id, company_id, metadata, first_seen_at, last_seen_at }) => {
        const company = `"company_id":${JSON.stringify(company_id)},`;
        const times = `"first_seen_at":${instant(first_seen_at)},"last_seen_at":${instant(last_seen_at)}`;
        return `{"user_id":${JSON.stringify(user_id)},${company}"metadata":${metadata},${times}}\n`;
      });
      const { bytes, ends } = writer(blockOf(users));
      expect(bytes.toString()).toBe(rows.join(''));
      expect(ends.map((end, row) => bytes.toString('utf8', ends[row - 1] ?? 0, end))).toEqual(rows);
    }),
  );
});
