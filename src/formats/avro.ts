import { promisify } from 'node:util';
import { crc32, inflateRaw } from 'node:zlib';
import { snappyUncompress } from 'hyparquet';
import { readVarInt } from 'hyparquet/src/thrift.js';
import { DamagedFile, type InputError, inputError } from '../domain/errors.ts';
import { MAX_AVRO_BLOCK_BYTES, MAX_AVRO_HEADER_BYTES, READ_BYTES } from '../domain/limits.ts';
import { yielding } from '../yielding.ts';
import { AvroBytes, type AvroRows, compileAvroSchema } from './avro-schema.ts';
import { openZstd } from './decompress.ts';
import { LineBatch } from './typed-rows.ts';
import { type ReadRange, type WholeFile, windowed } from './whole-file.ts';

/*
 * Avro object container files as NDJSON, a block at a time. The schema in the file says what it holds; it is interpreted,
 * never made code of. Whatever a file says of itself is held to a bound before anything is made of it.
 */

const inflate = promisify(inflateRaw);
const MARKER_BYTES = 16;
/** Unpacks a block, into MAX_AVRO_BLOCK_BYTES at most. */
type Unpack = (packed: Buffer) => Buffer | Promise<Buffer>;
const codecs: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['null', (packed) => packed],
  ['deflate', (packed) => inflate(packed, { maxOutputLength: MAX_AVRO_BLOCK_BYTES })],
  ['snappy', unpackSnappy],
  ['zstandard', async (packed) => Buffer.from((await openZstd())(packed, MAX_AVRO_BLOCK_BYTES))],
]);

/**
 * Yields the rows of the file, a line each. `notes` gets what a person should know, once the last has been read.
 * @throws InputError `unsupported_format` for what is damaged, ends early or uses what is not understood here; what the
 *   source throws.
 */
export async function* avroToNdjson(file: WholeFile, notes: string[] = []): AsyncGenerator<Buffer> {
  const input = new Input(file);
  const { rows, unpack, marker } = await readHeader(input);
  while (!input.isAtEnd) {
    const count = await input.count('rows of a block', Number.MAX_SAFE_INTEGER);
    const length = await input.count('bytes of a block', MAX_AVRO_BLOCK_BYTES);
    const packed = await input.take(length);
    if (!(await input.take(MARKER_BYTES)).equals(marker)) throw damaged('a block does not end where it says');
    const block = await unpacked(packed, unpack);
    // A row of no bytes contains only nulls.
    if (count > block.length) throw damaged('a block has more rows than bytes');
    for await (const lines of yielding(blockLines(block, count, rows))) {
      if (lines !== null) yield lines;
    }
  }
  notes.push(...rows.notes());
}

interface Header {
  readonly rows: AvroRows;
  readonly unpack: Unpack;
  readonly marker: Buffer;
}

async function readHeader(input: Input): Promise<Header> {
  const about = new Map<string, Buffer>();
  await input.take('Obj\x01'.length);
  let bytes = 0;
  for (;;) {
    const count = await input.long();
    if (count === 0) break;
    // A negative count is followed by the length of what it counts.
    if (count < 0) await input.long();
    for (let entry = 0; entry < Math.abs(count); entry++) {
      const name = await input.take(await input.count('bytes of a name', MAX_AVRO_HEADER_BYTES));
      const value = await input.take(await input.count('bytes of the header', MAX_AVRO_HEADER_BYTES));
      bytes += name.length + value.length;
      if (bytes > MAX_AVRO_HEADER_BYTES)
        throw damaged(`the header is longer than ${MAX_AVRO_HEADER_BYTES} bytes`);
      about.set(name.toString('utf8'), Buffer.from(value));
    }
  }
  const name = about.get('avro.codec')?.toString('latin1') ?? 'null';
  const unpack = codecs.get(name);
  if (unpack === undefined) {
    throw inputError(
      'unsupported_format',
      `The Avro file cannot be read: it is packed with ${JSON.stringify(name.slice(0, 40))}; write it with zstandard, deflate, snappy or null`,
    );
  }
  const marker = Buffer.from(await input.take(MARKER_BYTES));
  return { rows: guarded(() => compileAvroSchema(about.get('avro.schema'))), unpack, marker };
}

async function unpacked(packed: Buffer, unpack: Unpack): Promise<Buffer> {
  try {
    return await unpack(packed);
  } catch (cause) {
    throw Object.assign(damaged('a block cannot be unpacked'), { cause });
  }
}

function unpackSnappy(packed: Buffer): Buffer {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const length = readVarInt({ view, offset: 0 }) >>> 0;
  if (length > MAX_AVRO_BLOCK_BYTES) throw new DamagedFile('a block is too large');
  const plain = Buffer.alloc(length);
  snappyUncompress(packed.subarray(0, -4), plain);
  if (packed.readUInt32BE(packed.length - 4) !== crc32(plain)) throw new DamagedFile('a wrong checksum');
  return plain;
}

/** The rows that are read without a break; much output causes a break sooner. */
const TURN_ROWS = 64;

/** Yields `null` where the caller may take a break. */
function* blockLines(block: Buffer, count: number, rows: AvroRows): Generator<Buffer | null> {
  const bytes = new AvroBytes(block);
  const batch = new LineBatch();
  for (let row = 0; row < count; row++) {
    const lines = batch.add(guarded(() => rows.read(bytes)));
    if (lines !== null || row % TURN_ROWS === 0) yield lines;
  }
  if (bytes.left > 0) throw damaged('a block is longer than its rows');
  const rest = batch.take();
  if (rest !== null) yield rest;
}

class Input {
  readonly #bytes: number;
  readonly #read: ReadRange;
  #at = 0;

  constructor({ bytes, read }: WholeFile) {
    this.#bytes = bytes;
    this.#read = windowed(bytes, read, READ_BYTES);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes;
  }

  async take(bytes: number): Promise<Buffer> {
    const start = this.#at;
    if (start + bytes > this.#bytes) throw damaged('it ends early');
    this.#at += bytes;
    return this.#read(start, this.#at);
  }

  async count(what: string, atMost: number): Promise<number> {
    const count = await this.long();
    if (count < 0 || count > atMost) throw damaged(`${count} ${what}`);
    return count;
  }

  async long(): Promise<number> {
    const { start, length } = { start: this.#at, length: Math.min(LONG_BYTES, this.#bytes - this.#at) };
    const bytes = new AvroBytes(await this.#read(start, start + length));
    const value = guarded(() => bytes.small());
    this.#at += length - bytes.left;
    return value;
  }
}

const LONG_BYTES = 10;

/** Blames the bytes for whatever goes wrong while they are read. */
function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const what = cause instanceof DamagedFile ? cause.message : 'it cannot be read';
    throw Object.assign(damaged(what), { cause });
  }
}

function damaged(what: string): InputError {
  return inputError('unsupported_format', `The Avro file is damaged: ${what}`);
}
