import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import fc from 'fast-check';
import { type ColumnMetaData, type FileMetaData, parquetMetadata } from 'hyparquet';
import { ByteWriter, type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import { Sandboxes } from '../../../src/base/sandbox/sandboxes.ts';
import { parquetToNdjson } from '../../../src/formats/parquet.ts';
import { openCodecs } from '../../../src/formats/parquet-codecs.ts';
import { columnOf } from '../../../src/formats/parquet-values.ts';
import { type Converted, type Stretch, textOf } from '../../../src/load/receive/unpack.ts';
import { bundleOptions } from '../../../tools/bundle-options.ts';
import { runs } from '../../support/runs.ts';
import { collect, refusalOf, wholeFile } from './in-pieces.ts';

const bufferOf = (columnData: readonly ColumnSource[], options: object = {}): Buffer =>
  Buffer.from(parquetWriteBuffer({ columnData: [...columnData], ...options }));

const bytesOf = (file: Buffer, notes: string[] = []) => collect(parquetToNdjson(wholeFile(file), notes));

const linesOf = async (file: Buffer, notes: string[] = []) =>
  (await bytesOf(file, notes)).toString().split('\n').slice(0, -1);

/** Returns a file written by DuckDB 1.5, with 40 rows of values of all DuckDB types. */
const sample = (codec: string) => readFileSync(new URL(`samples/duckdb-${codec}.parquet`, import.meta.url));

const rowsOf = async (file: Buffer) => (await linesOf(file)).map((line) => JSON.parse(line) as unknown);

const refusal = (file: Buffer) => refusalOf(linesOf(file));

const count = 5_000;
const column = (name: string, valueAt: (row: number) => unknown, type?: string): ColumnSource =>
  ({
    name,
    data: Array.from({ length: count }, (_, row) => valueAt(row)),
    ...(type && { type }),
  }) as ColumnSource;

describe('a Parquet file', () => {
  test.each([
    ['with nothing', 'UNCOMPRESSED'],
    ['with Snappy', 'SNAPPY'],
  ])('a file of several groups and pages, packed %s, is read as NDJSON', async (_name, codec) => {
    const file = bufferOf(
      [
        column('user_id', (row) => `u${row}é`, 'STRING'),
        column('plan', (row) => (row % 3 === 0 ? null : 'pro'), 'STRING'),
        column('n', (row) => row, 'INT32'),
        column('big', (row) => BigInt(row) * 1_000_000_007_000n, 'INT64'),
        column('half', (row) => row / 2, 'DOUBLE'),
        column('yes', (row) => row % 2 === 0, 'BOOLEAN'),
        column('at', (row) => new Date(1_790_000_000_000 + row), 'TIMESTAMP'),
      ],
      { codec, rowGroupSize: 1_500, pageSize: 2_000 },
    );
    const lines = (await linesOf(file)).map((line) => line.replace(/"big":(\d+)/, '"big":"$1"'));
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
      Array.from({ length: count }, (_, row) => ({
        user_id: `u${row}é`,
        ...(row % 3 === 0 ? {} : { plan: 'pro' }),
        n: row,
        big: String(BigInt(row) * 1_000_000_007_000n),
        half: row / 2,
        yes: row % 2 === 0,
        at: new Date(1_790_000_000_000 + row).toISOString().replace('Z', '000Z'),
      })),
    );
  });

  test('metadata of JSON text is kept unchanged, and a column of JSON is JSON', async () => {
    const file = bufferOf([
      { name: 'user_id', data: ['a', 'b'], type: 'STRING' },
      { name: 'metadata', data: ['{"n": 12345678901234567890.10}', '{"x"\n{"user_id":"c"}'], type: 'STRING' },
      { name: 'tags', data: [['x', 1], { y: null }], type: 'JSON' },
    ] as never);
    expect(await linesOf(file)).toEqual([
      '{"user_id":"a","metadata":{"n": 12345678901234567890.10},"tags":["x",1]}',
      '{"user_id":"b","metadata":"{\\"x\\"\\n{\\"user_id\\":\\"c\\"}","tags":{"y":null}}',
    ]);
  });

  test('lists, maps and structs are read across pages', async () => {
    const schema = [
      { name: 'root', num_children: 3 },
      { name: 'user_id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
      { name: 'tags', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
      { name: 'place', repetition_type: 'OPTIONAL', num_children: 2 },
      { name: 'city', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
      { name: 'zip', type: 'INT32', repetition_type: 'OPTIONAL' },
    ];
    const rows = Array.from({ length: 700 }, (_, row) => ({
      user_id: `u${row}`,
      tags: row % 5 === 0 ? [] : Array.from({ length: row % 4 }, (__, tag) => `t${tag}`),
      place: { city: `c${row}`, zip: row },
    }));
    const file = bufferOf(
      (['user_id', 'tags', 'place'] as const).map((name) => ({
        name,
        data: rows.map((row) => row[name]),
      })) as never,
      { schema, rowGroupSize: 300, pageSize: 500 },
    );
    expect(await rowsOf(file)).toEqual(rows);
  });

  // proves: columnar-exact
  test.each(['zstd', 'lz4_raw', 'gzip', 'brotli'])(
    'a file of another program, packed with %s, is read with exact values of all types',
    async (codec) => {
      const lines = Array.from({ length: 40 }, (_, row) => {
        const deep = row % 2 === 0 ? 'null' : (row / 4).toFixed(2);
        const lists = ['"list":[],', '', ...Array(2).fill(`"list":[{"a":${row},"b":["x",null]},null],`)];
        return [
          `{"user_id":"u${row}",${row % 3 === 0 ? '' : `"plan":"plan ${row % 4}",`}"half":${row / 4}`,
          `"price":${row * 123_456_789_012}.000`,
          '"forever":"9999-12-31T23:59:59.999999Z"',
          `"ns":"2023-11-14T22:13:20.123456${row === 0 ? '' : String(row).padStart(3, '0')}Z"`,
          '"at":"13:45:07.5","far":"12024-02-29","past":"-0043-03-15","every":"P1M2DT3.5S"',
          '"uid":"12345678-9abc-def0-1234-56789abcdef0","raw":"qgD/","txt":"plain"',
          `"u32":${4_294_960_000 + row},"yes":${row % 2 === 0},${lists[row % 4]}"map":{"k${row % 2}":${row},"z":null}`,
          `"struct":{"city":"c${row}","in":{"deep":${deep}}}}`,
        ].join(',');
      });
      expect(await linesOf(sample(codec))).toEqual(lines);
    },
  );

  // proves: columnar-exact
  test('undeclared bytes are read as text or Base64, and declared text unchanged', async () => {
    const raw = [Buffer.from('plain é'), Buffer.of(0xff, 0xfe), Buffer.from('a\0b'), Buffer.alloc(0)];
    const file = bufferOf([
      { name: 'user_id', data: ['a', 'b', 'c', 'd'], type: 'STRING' },
      { name: 'raw', data: raw, type: 'BYTE_ARRAY' },
    ] as never);
    expect(await linesOf(file)).toEqual([
      '{"user_id":"a","raw":"plain é"}',
      '{"user_id":"b","raw":"//4="}',
      '{"user_id":"c","raw":"YQBi"}',
      '{"user_id":"d","raw":""}',
    ]);
    const schema = [
      { name: 'root', num_children: 1 },
      { name: 'name', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
    ];
    const names = [Buffer.from('Zo\xeb', 'latin1'), Buffer.from('\ufffd \u{10000}')];
    const text = await bytesOf(bufferOf([{ name: 'name', data: names }] as never, { schema }));
    // The reader passes on an invalid byte, so that the loader refuses the record. The readers of
    // all formats do this.
    expect(text).toEqual(
      Buffer.concat([
        Buffer.from('{"name":"Zo'),
        Buffer.of(0xff),
        Buffer.from('"}\n{"name":"\ufffd \u{10000}"}\n'),
      ]),
    );
  });

  // proves: columnar-exact
  test('numbers beyond JSON are omitted and reported with their first place', async () => {
    const notes: string[] = [];
    const scores = [1.5, Number.NaN, Number.POSITIVE_INFINITY, -0.25];
    const file = bufferOf([
      { name: 'user_id', data: ['a', 'b', 'c', 'd'], type: 'STRING' },
      { name: 'score', data: scores, type: 'DOUBLE' },
    ] as never);
    expect(await linesOf(file, notes)).toEqual([
      '{"user_id":"a","score":1.5}',
      '{"user_id":"b"}',
      '{"user_id":"c"}',
      '{"user_id":"d","score":-0.25}',
    ]);
    expect(notes).toEqual([
      '2 values were left out that JSON cannot hold (NaN, an infinity, a time beyond 24 hours), the first in row 2, column "score".',
    ]);
  });

  // proves: columnar-exact
  test('instants and times of every unit are read exactly', () => {
    let omitted = 0;
    const omit = () => {
      omitted++;
      return 'null';
    };
    const textOf = (element: object, value: number | bigint | Uint8Array) =>
      columnOf({ element: { name: 'c', ...element }, path: ['c'], children: [], count: 1 }, omit).toJson(
        value,
      );
    const timestamp = (unit: string) => ({ type: 'INT64', logical_type: { type: 'TIMESTAMP', unit } });
    const time = (unit: string) => ({ type: 'INT64', logical_type: { type: 'TIME', unit } });
    for (const [element, value, text] of [
      [
        { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
        16_725_225_600_123_457n,
        '2500-01-01T00:00:00.123457Z',
      ],
      [timestamp('MICROS'), 253_402_300_799_999_999n, '9999-12-31T23:59:59.999999Z'],
      [timestamp('MICROS'), 9_007_199_253_999_999n, '2255-06-05T23:47:33.999999Z'],
      [timestamp('MILLIS'), 253_402_300_800_001n, '10000-01-01T00:00:00.001000Z'],
      [timestamp('MILLIS'), -62_167_219_200_001n, '-0001-12-31T23:59:59.999000Z'],
      [timestamp('MILLIS'), 9_223_372_036_854_775_807n, '292278994-08-17T07:12:55.807000Z'],
      [timestamp('NANOS'), -1n, '1969-12-31T23:59:59.999999999Z'],
      [{ type: 'INT96' }, 90_000_000_001_000n, '1970-01-02T01:00:00.000001Z'],
      [{ type: 'INT32', converted_type: 'TIME_MILLIS' }, 49_507_500, '13:45:07.5'],
      [time('MICROS'), 1n, '00:00:00.000001'],
      [time('NANOS'), 86_400_000_000_000n, '24:00:00'],
      [{ type: 'INT32', converted_type: 'DATE' }, 2_147_483_647, '5881580-07-11'],
      [
        { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 12, converted_type: 'INTERVAL' },
        new Uint8Array(12),
        'PT0S',
      ],
    ] as const) {
      expect(textOf(element, value), text).toBe(JSON.stringify(text));
    }
    expect(textOf(time('MICROS'), -1n)).toBe('null');
    expect(omitted).toBe(1);
  });

  // proves: hostile-files
  test('a row with more text than a record may have is refused by its place', async () => {
    const schema = [
      { name: 'root', num_children: 1 },
      { name: 'tags', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
    ];
    const data = [['a'], Array(40_000).fill('x'.repeat(1_000))];
    const file = bufferOf([{ name: 'tags', data }] as never, { schema });
    expect(file.length).toBeLessThan(1_000_000);
    expect(await refusal(file)).toBe(
      'The Parquet file is damaged or not understood: row 2, column "tags" brings the row to more than 33554432 characters, which no record may have',
    );
  });

  const withFooter = (change: (metadata: FileMetaData, chunk: ColumnMetaData) => void, metadata?: string) => {
    const file = bufferOf([{ name: 'user_id', data: ['a', 'b', 'c'], type: 'STRING' }] as never);
    const footer = parquetMetadata(new Uint8Array(file));
    const chunk = footer.row_groups[0]?.columns[0]?.meta_data;
    if (chunk === undefined) throw new Error('no column');
    change(footer, chunk);
    const writer = new ByteWriter();
    writeMetadata(writer, footer as Parameters<typeof writeMetadata>[1]);
    const data = file.subarray(0, file.length - 8 - footer.metadata_length);
    return Buffer.concat([data, writer.getBytes(), Buffer.from(metadata ?? 'PAR1')]);
  };

  // proves: hostile-files
  test.each([
    [
      'a row group above the bound',
      withFooter(({ row_groups: [group] }) => Object.assign(group ?? {}, { total_byte_size: 200_000_000n })),
      'a row group has 200000000 bytes; at most 167772160 are taken. Write smaller row groups',
    ],
    [
      'a row group of packed bytes above the bound',
      withFooter((_, chunk) => Object.assign(chunk, { total_compressed_size: 1n << 40n })),
      'a row group has 1099511627776 bytes; at most 167772160 are taken. Write smaller row groups',
    ],
    [
      'a column beyond its end',
      withFooter((_, chunk) => Object.assign(chunk, { total_compressed_size: 100_000n })),
      'a column lies outside of the file',
    ],
    [
      'a column before its beginning',
      withFooter((_, chunk) => Object.assign(chunk, { data_page_offset: -8n })),
      'a column lies outside of the file',
    ],
    [
      'more rows than values',
      withFooter(({ row_groups: [group] }) => Object.assign(group ?? {}, { num_rows: 1n << 50n })),
      'a column has fewer values than there are rows',
    ],
    [
      'an unknown codec',
      withFooter((_, chunk) => Object.assign(chunk, { codec: 'LZO' })),
      'it is packed with LZO; write it with ZSTD, Snappy, LZ4_RAW, gzip, Brotli or none',
    ],
    [
      'another codec than that of its pages',
      withFooter((_, chunk) => Object.assign(chunk, { codec: 'GZIP' })),
      'it cannot be decoded',
    ],
    [
      'columns in another file',
      withFooter(({ row_groups: [group] }) =>
        Object.assign(group?.columns[0] ?? {}, { file_path: 'b.parquet' }),
      ),
      'its columns are encrypted, or in other files',
    ],
    [
      'a type that is not read',
      withFooter(({ schema: [, column] }) => Object.assign(column ?? {}, { converted_type: 'BSON' })),
      'columns of BSON are not read',
    ],
    ['an encrypted footer', withFooter(() => undefined, 'PARE'), 'it is encrypted'],
    [
      'a footer longer than the file',
      Buffer.from('PAR1\0\0\0\0\xff\xff\0\0PAR1', 'latin1'),
      'its footer is longer than the file',
    ],
    [
      'a footer above the bound',
      Buffer.from('PAR1\0\0\0\0\xff\xff\xff\xffPAR1', 'latin1'),
      'its footer has 4294967295 bytes',
    ],
    ['no footer', Buffer.from('PAR1 and nothing else'), 'it ends early: it has no footer'],
  ])('a file with %s is refused with the reason', async (_name, file, reason) => {
    expect(await refusal(file)).toBe(`The Parquet file is damaged or not understood: ${reason}`);
  });

  // proves: hostile-files
  test('a file that is cut or changed anywhere is read or refused, within its limits', async () => {
    const count = 200;
    const intact = bufferOf(
      [
        { name: 'user_id', data: Array.from({ length: count }, (_, row) => `u${row}`), type: 'STRING' },
        {
          name: 'plan',
          data: Array.from({ length: count }, (_, row) => (row % 3 ? 'a' : null)),
          type: 'STRING',
        },
        { name: 'n', data: Array.from({ length: count }, (_, row) => row), type: 'INT32' },
      ] as never,
      { codec: 'UNCOMPRESSED' },
    );
    const files = [intact, intact, intact, intact, ...['zstd', 'lz4_raw', 'gzip', 'brotli'].map(sample)];
    const change = fc.record({
      file: fc.constantFrom(...files),
      changes: fc.array(fc.record({ at: fc.nat(5_000), byte: fc.nat(255) }), { maxLength: 4 }),
      cut: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(5_000)),
    });
    // The program is built in advance, because a process that compiles it starts ten times slower.
    const contents = `import { serveTasks } from './src/base/sandbox/sandbox.ts';
      import { loadTasks } from './src/load/sandbox-tasks.ts';
      serveTasks(loadTasks);`;
    const outdir = join(packageRoot, 'dist/test');
    await build({ ...bundleOptions, stdin: { contents, resolveDir: packageRoot }, outdir });
    const program = pathToFileURL(join(outdir, 'stdin.js'));
    const sandboxes = new Sandboxes(program, pino({ level: 'silent' }), { itemMs: 3_000 });
    onTestFinished(() => sandboxes.close());
    await fc.assert(
      fc.asyncProperty(change, async ({ file, changes, cut }) => {
        const changedBytes = Buffer.from(file);
        for (const { at, byte } of changes) changedBytes[at % file.length] = byte;
        const bytes = changedBytes.subarray(0, file.length - (cut % file.length));
        const items = sandboxes.run<Converted, Stretch, Buffer>('convert', {
          input: {
            format: 'parquet',
            bytes: bytes.length,
            sheet: undefined,
            sentBytes: 0,
            maxInflatedBytes: 0,
          },
          ask: async ([start, end]) => Buffer.from(bytes.subarray(start, end)),
          owner: 1,
          isLong: false,
          signal: new AbortController().signal,
        });
        expect(await refusalOf(collect(textOf(items, [])))).toMatch(
          /^taken$|^The Parquet file is damaged or not understood: |^Reading it takes more (memory|time) /,
        );
      }),
      { numRuns: runs(160) },
    );
  });
});

describe('a page of a Parquet file', () => {
  const codecsOf = async (...names: string[]) =>
    (await openCodecs(names)) as Record<string, (packed: Uint8Array, bytes: number) => Uint8Array>;
  const half = Buffer.from('half of it, half of it, half of it');
  /** 12 literal bytes, then a match of 22 bytes at distance 12. */
  const lz4 = Buffer.concat([Buffer.of(0xc0 | 15), half.subarray(0, 12), Buffer.of(12, 0, 3, 0)]);
  const hadoop = Buffer.concat([Buffer.of(0, 0, 0, 34, 0, 0, 0, lz4.length), lz4]);

  test('a page in LZ4 is unpacked, with or without Hadoop lengths, to its exact size', async () => {
    const { LZ4_RAW: raw, LZ4: old } = await codecsOf('LZ4_RAW', 'LZ4');
    expect(
      [raw?.(lz4, 34), old?.(lz4, 34), old?.(hadoop, 34)].map((unpacked) =>
        String(Buffer.from(unpacked ?? [])),
      ),
    ).toEqual(Array(3).fill(String(half)));
    expect(() => raw?.(lz4, 33)).toThrow();
    expect(() => old?.(hadoop, 33)).toThrow();
    for (let cut = 1; cut < lz4.length; cut++) {
      expect(() => expect(raw?.(lz4.subarray(0, cut), 34)).toHaveLength(34)).toThrow();
    }
  });

  // proves: hostile-files
  test('a page in Zstandard never unpacks beyond its stated size', async () => {
    const { ZSTD: unpack } = await codecsOf('ZSTD');
    // A block that repeats one byte 131,072 times. The frame does not state its decompressed size.
    const bomb = Buffer.from('28b52ffd0058030010' + '61', 'hex');
    expect(unpack?.(bomb, 131_072).every((byte) => byte === 0x61)).toBe(true);
    for (const bytes of [1, 131_071]) expect(unpack?.(bomb, bytes).length).toBeLessThanOrEqual(bytes);
    expect(() => unpack?.(bomb, 33 * 1024 * 1024)).toThrow('at most 33554432 are taken');
  });
});
