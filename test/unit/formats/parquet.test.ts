import fc from 'fast-check';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { parquetToNdjson } from '../../../src/formats/parquet.ts';

const bufferOf = (columnData: readonly ColumnSource[], options: object = {}): Buffer =>
  Buffer.from(parquetWriteBuffer({ columnData: [...columnData], ...options }));

async function linesOf(file: Buffer): Promise<string[]> {
  const pieces: Buffer[] = [];
  const read = async (start: number, end: number) => file.subarray(start, end);
  for await (const piece of parquetToNdjson({ bytes: file.length, read })) pieces.push(piece);
  return Buffer.concat(pieces).toString().split('\n').slice(0, -1);
}

const rowsOf = async (file: Buffer) => (await linesOf(file)).map((line) => JSON.parse(line) as unknown);

async function refusal(file: Buffer): Promise<string> {
  const refused = await linesOf(file).then(
    () => 'taken',
    (error: unknown) => error,
  );
  if (refused === 'taken') return 'taken';
  if (refused instanceof InputError) return refused.message;
  throw refused;
}

const count = 5_000;
const column = (name: string, valueAt: (row: number) => unknown, type?: string): ColumnSource =>
  ({
    name,
    data: Array.from({ length: count }, (_, row) => valueAt(row)),
    ...(type && { type }),
  }) as ColumnSource;

describe('a Parquet file', () => {
  test.each([
    ['as it is', 'UNCOMPRESSED'],
    ['with Snappy', 'SNAPPY'],
  ])('of several groups and pages, packed %s, is read as NDJSON', async (_name, codec) => {
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
    const found = (await linesOf(file)).map((line) => line.replace(/"big":(\d+)/, '"big":"$1"'));
    expect(found.map((line) => JSON.parse(line) as unknown)).toEqual(
      Array.from({ length: count }, (_, row) => ({
        user_id: `u${row}é`,
        ...(row % 3 === 0 ? {} : { plan: 'pro' }),
        ...{ n: row, big: String(BigInt(row) * 1_000_000_007_000n), half: row / 2, yes: row % 2 === 0 },
        at: new Date(1_790_000_000_000 + row).toISOString().replace('Z', '000Z'),
      })),
    );
  });

  test('metadata that is JSON stays as it is; a column of JSON is JSON', async () => {
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

  test('that is cut anywhere, or changed, is refused in words or read, and never anything else', async () => {
    const file = bufferOf(
      [
        { name: 'user_id', data: Array.from({ length: 200 }, (_, row) => `u${row}`), type: 'STRING' },
        {
          name: 'plan',
          data: Array.from({ length: 200 }, (_, row) => (row % 3 ? 'a' : null)),
          type: 'STRING',
        },
        { name: 'n', data: Array.from({ length: 200 }, (_, row) => row), type: 'INT32' },
      ] as never,
      { codec: 'UNCOMPRESSED' },
    );
    const change = fc.record({
      changes: fc.array(fc.record({ at: fc.nat(file.length - 1), byte: fc.nat(255) }), { maxLength: 4 }),
      cut: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(file.length)),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ changes, cut }) => {
        const changed = Buffer.from(file);
        for (const { at, byte } of changes) changed[at] = byte;
        const refused = await refusal(changed.subarray(0, file.length - cut));
        expect(refused).toMatch(/^taken$|^The Parquet file is damaged or not understood: /);
      }),
      { numRuns: 400 },
    );
  });

  test('what reading it throws is no fault of the file', async () => {
    const gone = new Error('the disk is gone');
    const rows = parquetToNdjson({ bytes: 1_000, read: () => Promise.reject(gone) });
    await expect(rows.next()).rejects.toBe(gone);
  });
});
