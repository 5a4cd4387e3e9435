import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { avroToNdjson } from '../../../src/formats/avro.ts';
import { inPieces } from './in-pieces.ts';

/** A file as another implementation writes it. */
async function fileOf(schema: object, rows: readonly unknown[], codec = 'deflate'): Promise<Buffer> {
  const encoder = new avro.streams.BlockEncoder(schema as never, { codec, blockSize: 200 });
  const pieces: Buffer[] = [];
  const collecting = (async () => {
    for await (const piece of encoder) pieces.push(piece as Buffer);
  })();
  for (const row of rows) encoder.write(row);
  encoder.end();
  await collecting;
  return Buffer.concat(pieces);
}

async function linesOf(file: Buffer, cuts: readonly number[] = []): Promise<string[]> {
  const pieces: Buffer[] = [];
  for await (const piece of avroToNdjson(inPieces(file, [...cuts]))) pieces.push(piece);
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

const record = (fields: readonly object[]) => ({ type: 'record', name: 'Row', namespace: 'x.y', fields });
const field = (name: string, type: unknown) => ({ name, type });

describe('an Avro file', () => {
  test.each(['null', 'deflate'])(
    'of every type is read as NDJSON, packed as %s, however it comes in',
    async (codec) => {
      const schema = record([
        field('user_id', 'string'),
        field('n', ['null', 'int']),
        field('big', 'long'),
        field('half', 'double'),
        field('yes', 'boolean'),
        field('kind', { type: 'enum', name: 'Kind', symbols: ['A', 'B'] }),
        field('list', { type: 'array', items: ['null', 'string'] }),
        field('map', { type: 'map', values: 'long' }),
        field('inner', {
          type: 'record',
          name: 'Inner',
          fields: [field('at', { type: 'long', logicalType: 'timestamp-millis' })],
        }),
        field('raw', 'bytes'),
        field('day', { type: 'int', logicalType: 'date' }),
        field('micros', { type: 'long', logicalType: 'timestamp-micros' }),
      ]);
      const rows = Array.from({ length: 50 }, (_, n) => ({
        ...{
          user_id: `u"${n}é`,
          n: n % 2 === 0 ? null : n,
          big: -(2 ** 52) + n,
          half: n / 2,
          yes: n > 3,
        },
        ...{ kind: 'B', list: [null, 'x'], map: { a: n }, inner: { at: 1_790_000_000_123 } },
        ...{ raw: Buffer.from('raw'), day: 20_000, micros: 1_790_000_000_123_456 },
      }));
      const wrapped = rows.map((row) => ({ ...row }));
      const file = await fileOf(schema, wrapped, codec);
      const found = await rowsOf(file);
      expect(found).toEqual(
        rows.map(({ n, ...row }) => ({
          ...row,
          ...(n === null ? {} : { n }),
          ...{
            list: [null, 'x'],
            inner: { at: '2026-09-21T14:13:20.123000Z' },
            raw: 'raw',
            day: '2024-10-04',
            micros: '2026-09-21T14:13:20.123456Z',
          },
        })),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(file.length), { maxLength: 6 }), async (cuts) => {
          expect(await linesOf(file, cuts)).toHaveLength(rows.length);
        }),
        { numRuns: 20 },
      );
    },
  );

  test('keeps the digits of long numbers, and metadata that is JSON as it is', async () => {
    const schema = record([field('user_id', 'string'), field('metadata', 'string'), field('n', 'long')]);
    const file = await fileOf(schema, [{ user_id: 'u', metadata: '{"a":\n 12345678901234567890.10}', n: 5 }]);
    expect(await linesOf(file)).toEqual(['{"user_id":"u","metadata":{"a":  12345678901234567890.10},"n":5}']);
  });

  test('metadata that is no JSON object stays a text: nothing in it begins a record', async () => {
    const schema = record([field('user_id', 'string'), field('metadata', 'string')]);
    const hostile = ['{"a":1}\n{"user_id":"other"}', '{"a":1', '[1]', '"'];
    const file = await fileOf(
      schema,
      hostile.map((metadata) => ({ user_id: 'u', metadata })),
    );
    expect(await rowsOf(file)).toEqual(hostile.map((metadata) => ({ user_id: 'u', metadata })));
  });

  test('that is cut anywhere, or changed, is refused in words or read, and never anything else', async () => {
    const schema = record([field('user_id', 'string'), field('list', { type: 'array', items: 'long' })]);
    const rows = Array.from({ length: 30 }, (_, n) => ({ user_id: `u${n}`, list: [n, n] }));
    const file = await fileOf(schema, rows, 'null');
    const change = fc.record({ at: fc.nat(file.length - 1), byte: fc.nat(255), end: fc.nat(file.length) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, byte, end }) => {
        const changed = Buffer.from(file);
        changed[at] = byte;
        expect(await refusal(changed.subarray(0, Math.max(4, end)))).toMatch(/^taken$|^The Avro file /);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['rows that take no byte', record([]), 1e9],
    ['a type that holds itself', record([field('r', 'Row')]), 1],
    ['no record', { type: 'map', values: 'string' }, 1],
    ['an unknown type', record([field('r', 'Nowhere')]), 1],
  ])('is refused for %s', async (_name, schema, count) => {
    expect(await refusal(Buffer.concat([headerOf(schema), long(count), long(0), Buffer.alloc(16)]))).toMatch(
      /^The Avro file is damaged/,
    );
  });

  test('is refused for a list of a thousand million nulls', async () => {
    const schema = record([field('list', { type: 'array', items: 'null' })]);
    const body = Buffer.concat([long(1e9), long(0)]);
    const file = Buffer.concat([headerOf(schema), long(1), long(body.length), body, Buffer.alloc(16)]);
    expect(await refusal(file)).toBe('The Avro file is damaged: it holds more values than bytes');
  });
});

/** Unpacked blocks and a marker of zeros follow. */
function headerOf(schema: object): Buffer {
  const text = Buffer.from(JSON.stringify(schema));
  const name = Buffer.from('avro.schema');
  return Buffer.concat([
    Buffer.from('Obj\x01', 'latin1'),
    ...[long(1), long(name.length), name, long(text.length), text, long(0), Buffer.alloc(16)],
  ]);
}

function long(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value * 2;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}
