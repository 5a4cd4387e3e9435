import { crc32, deflateRawSync } from 'node:zlib';
import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { avroToNdjson } from '../../../src/formats/avro.ts';
import { collect, refusalOf, wholeFile } from './in-pieces.ts';

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

const bytesOf = (file: Buffer, notes: string[] = []) => collect(avroToNdjson(wholeFile(file), notes));

const linesOf = async (file: Buffer, notes: string[] = []) =>
  (await bytesOf(file, notes)).toString().split('\n').slice(0, -1);

const rowsOf = async (file: Buffer) => (await linesOf(file)).map((line) => JSON.parse(line) as unknown);

const refusal = (file: Buffer) => refusalOf(linesOf(file));

const record = (fields: readonly object[]) => ({ type: 'record', name: 'Row', namespace: 'x.y', fields });
const field = (name: string, type: unknown) => ({ name, type });

describe('an Avro file', () => {
  test.each(['null', 'deflate'])('of every type is read as NDJSON, packed as %s', async (codec) => {
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
      ...{ user_id: `u"${n}é`, n: n % 2 === 0 ? null : n, big: -(2 ** 52) + n, half: n / 2, yes: n > 3 },
      ...{ kind: 'B', list: [null, 'x'], map: { a: n }, inner: { at: 1_790_000_000_123 } },
      ...{ raw: Buffer.from('raw'), day: 20_000, micros: 1_790_000_000_123_456 },
    }));
    expect(await rowsOf(await fileOf(schema, rows, codec))).toEqual(
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

  // proves: hostile-files
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

  // proves: hostile-files
  test.each([
    ['a list of a thousand million nulls', { type: 'array', items: 'null' }, [long(1e9), long(0)]],
    [
      'a map of a million nulls',
      { type: 'map', values: 'null' },
      [long(1e6), ...Array<Buffer>(1e6).fill(long(0)), long(0)],
    ],
    [
      'lists in a list',
      { type: 'array', items: { type: 'array', items: 'null' } },
      [long(1_000), ...Array<Buffer>(1_000).fill(Buffer.concat([long(1_000), long(0)])), long(0)],
    ],
    [
      'records of nothing in a list',
      { type: 'array', items: { type: 'record', name: 'Empty', fields: [] } },
      [long(1e9), long(0)],
    ],
  ])(
    'is refused for %s in one row, by its place and before they are in memory',
    async (_name, type, body) => {
      const packed = deflateRawSync(Buffer.concat([long(1), Buffer.from('u'), ...body]));
      const schema = record([field('user_id', 'string'), field('tags', type)]);
      expect(await refusal(packedFile(schema, 'deflate', packed))).toBe(
        'The Avro file is damaged: row 1, column "tags" brings the row to more than 524288 values, which no record may have',
      );
    },
  );

  test('is refused for a row of long names of an enum, which take a byte each', async () => {
    const kinds = { type: 'enum', name: 'Kind', symbols: ['x'.repeat(500_000)] };
    const body = Buffer.concat([long(100), Buffer.alloc(100), long(0)]);
    const schema = record([field('tags', { type: 'array', items: kinds })]);
    expect(await refusal(fileWith(schema, body))).toContain(
      'row 1, column "tags" brings the row to more than 33554432',
    );
  });

  test('packed with Zstandard is read; with a codec that is not read, the refusal says what to do', async () => {
    // `{"user_id":"u1"}`, as one raw block of a frame.
    const packed = Buffer.concat([Buffer.from('28b52ffd2003190000', 'hex'), long(2), Buffer.from('u1')]);
    const schema = record([field('user_id', 'string')]);
    expect(await linesOf(packedFile(schema, 'zstandard', packed))).toEqual(['{"user_id":"u1"}']);
    expect(await refusal(packedFile(schema, 'xz', packed))).toBe(
      'The Avro file cannot be read: it is packed with "xz"; write it with zstandard, deflate, snappy or null',
    );
    // A byte that is repeated 131 072 times, in 200 blocks: more than a block of Avro may have.
    const bomb = Buffer.concat([
      Buffer.from('28b52ffd0058', 'hex'),
      ...Array<Buffer>(200).fill(Buffer.from('02001061', 'hex')),
      Buffer.from('03001061', 'hex'),
    ]);
    expect(await refusal(packedFile(schema, 'zstandard', bomb))).toBe(
      'The Avro file is damaged: a block cannot be unpacked',
    );
  });

  test('packed with Snappy is read if its checksum is right', async () => {
    const packed = Buffer.concat([Buffer.of(3, 2 << 2), long(2), Buffer.from('u1'), Buffer.alloc(4)]);
    const fileOfPacked = () => packedFile(record([field('user_id', 'string')]), 'snappy', packed);
    expect(await refusal(fileOfPacked())).toBe('The Avro file is damaged: a block cannot be unpacked');
    packed.writeUInt32BE(crc32(packed.subarray(2, 5)), 5);
    expect(await linesOf(fileOfPacked())).toEqual(['{"user_id":"u1"}']);
  });

  // proves: columnar-exact
  test('has exact instants, times, dates, decimals, UUIDs and durations', async () => {
    const of = (type: string, logicalType: string, value: Buffer, more: object = {}) => ({
      ...{ schema: { type, logicalType, ...more }, value },
    });
    const fixed = (size: number, name: string) => ({ name, size });
    const columns = {
      forever: of('long', 'timestamp-micros', zigzag(253_402_300_799_999_999n)),
      micros: of('long', 'local-timestamp-micros', zigzag(16_725_225_600_123_457n)),
      millis: of('long', 'timestamp-millis', zigzag(-62_167_219_200_001n)),
      nanos: of('long', 'timestamp-nanos', zigzag(1_700_000_000_123_456_789n)),
      at: of('int', 'time-millis', zigzag(49_507_500n)),
      later: of('long', 'time-micros', zigzag(49_507_000_001n)),
      last: of('long', 'time-nanos', zigzag(49_507_000_000_001n)),
      unknown: of('long', 'timestamp-constructor', zigzag(7n)),
      day: of('int', 'date', zigzag(BigInt(Date.UTC(12_024, 1, 29) / 86_400_000))),
      price: of('bytes', 'decimal', Buffer.concat([long(2), Buffer.of(0xf8, 0x31)]), {
        precision: 9,
        scale: 2,
      }),
      own: of('bytes', 'big-decimal', Buffer.concat([long(4), long(2), Buffer.of(7, 0xcf), long(1)])),
      id: of('fixed', 'uuid', Buffer.from('123456789abcdef0123456789abcdef0', 'hex'), fixed(16, 'Id')),
      every: of('fixed', 'duration', Buffer.of(1, 0, 0, 0, 2, 0, 0, 0, 0xac, 0xd, 0, 0), fixed(12, 'Every')),
    };
    const schema = record(Object.entries(columns).map(([name, column]) => field(name, column.schema)));
    const body = Buffer.concat(Object.values(columns).map(({ value }) => value));
    expect(await linesOf(fileWith(schema, body))).toEqual([
      [
        '{"forever":"9999-12-31T23:59:59.999999Z","micros":"2500-01-01T00:00:00.123457Z"',
        '"millis":"-0001-12-31T23:59:59.999000Z","nanos":"2023-11-14T22:13:20.123456789Z"',
        '"at":"13:45:07.5","later":"13:45:07.000001","last":"13:45:07.000000001","unknown":7,"day":"12024-02-29","price":-19.99,"own":199.9',
        '"id":"12345678-9abc-def0-1234-56789abcdef0","every":"P1M2DT3.5S"}',
      ].join(','),
    ]);
  });

  // proves: columnar-exact
  test('bytes are text where they are, else Base64; what JSON cannot hold is left out and reported', async () => {
    const schema = record([
      field('raw', 'bytes'),
      field('score', 'double'),
      field('at', { type: 'int', logicalType: 'time-millis' }),
    ]);
    const notes: string[] = [];
    const file = await fileOf(schema, [
      { raw: Buffer.from('plain é'), score: 1.5, at: 0 },
      { raw: Buffer.of(0xff, 0xfe), score: Number.NaN, at: -1 },
      { raw: Buffer.from('a\0b'), score: Number.NEGATIVE_INFINITY, at: 86_400_000 },
    ]);
    expect(await linesOf(file, notes)).toEqual([
      '{"raw":"plain é","score":1.5,"at":"00:00:00"}',
      '{"raw":"//4="}',
      '{"raw":"YQBi","at":"24:00:00"}',
    ]);
    expect(notes).toEqual([
      '3 values were left out that JSON cannot hold (NaN, an infinity, a time beyond 24 hours), the first in row 2, column "score".',
    ]);
  });

  test('a text that is no UTF-8 keeps a byte that is none, for which its record is refused', async () => {
    const body = Buffer.concat([long(3), Buffer.from('Zo\xeb', 'latin1')]);
    const text = await bytesOf(fileWith(record([field('name', 'string')]), body));
    expect(text).toEqual(Buffer.concat([Buffer.from('{"name":"Zo'), Buffer.of(0xff), Buffer.from('"}\n')]));
  });
});

/** One row, not packed. */
function fileWith(schema: object, body: Buffer): Buffer {
  return packedFile(schema, 'null', body);
}

function packedFile(schema: object, codec: string, packed: Buffer): Buffer {
  return Buffer.concat([headerOf(schema, codec), long(1), long(packed.length), packed, Buffer.alloc(16)]);
}

function zigzag(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value < 0n ? -2n * value - 1n : 2n * value;
  for (; rest >= 128n; rest /= 128n) bytes.push(Number(rest % 128n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

/** Unpacked blocks and a marker of zeros follow. */
function headerOf(schema: object, codec: string): Buffer {
  const texts = ['avro.schema', JSON.stringify(schema), 'avro.codec', codec].map((text) => Buffer.from(text));
  const entries = texts.flatMap((text) => [long(text.length), text]);
  return Buffer.concat([Buffer.from('Obj\x01', 'latin1'), long(2), ...entries, long(0), Buffer.alloc(16)]);
}

function long(value: number): Buffer {
  return zigzag(BigInt(value));
}
