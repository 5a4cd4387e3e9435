import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { snappyUncompress } from 'hyparquet';
import { type InputError, inputError } from '../domain/errors.ts';
import { MAX_AVRO_BLOCK_BYTES, MAX_AVRO_HEADER_BYTES } from '../domain/limits.ts';
import { AvroBytes, AvroDamage } from './avro-bytes.ts';
import { compileAvroSchema, type ReadAvroRow } from './avro-schema.ts';
import { LineBatch } from './typed-rows.ts';

/*
 * Avro object container files as NDJSON, a block at a time. The schema in the file says what it holds; it is interpreted,
 * never made code of. Whatever a file says of itself is held to a bound before anything is made of it.
 */

const inflate = promisify(inflateRaw);
const MARKER_BYTES = 16;
const codecs = ['null', 'deflate', 'snappy'] as const;
type Codec = (typeof codecs)[number];

/**
 * The rows of the file, a line each.
 * @throws InputError `unsupported_format` for what is damaged, ends early or uses what is not understood here; what the
 *   source throws.
 */
export async function* avroToNdjson(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const input = new Input(source);
  const { readRow, codec, marker } = await readHeader(input);
  while (await input.has(1)) {
    const rows = await input.count('rows of a block', Number.MAX_SAFE_INTEGER);
    const length = await input.count('bytes of a block', MAX_AVRO_BLOCK_BYTES);
    const packed = await input.take(length);
    if (!(await input.take(MARKER_BYTES)).equals(marker)) throw damaged('a block does not end where it says');
    yield* blockRows(await unpack(packed, codec), rows, readRow);
  }
}

interface Header {
  readonly readRow: ReadAvroRow;
  readonly codec: Codec;
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
  const codec = codecs.find((each) => each === name);
  if (codec === undefined) {
    throw unsupported(
      `it is packed with ${JSON.stringify(name.slice(0, 40))}; write it with deflate, snappy or null`,
    );
  }
  const marker = Buffer.from(await input.take(MARKER_BYTES));
  return { readRow: guarded(() => compileAvroSchema(about.get('avro.schema'))), codec, marker };
}

async function unpack(packed: Buffer, codec: Codec): Promise<Buffer> {
  if (codec === 'null') return packed;
  try {
    if (codec === 'deflate') return await inflate(packed, { maxOutputLength: MAX_AVRO_BLOCK_BYTES });
  } catch (cause) {
    throw Object.assign(damaged('a block cannot be unpacked'), { cause });
  }
  // Four bytes of a checksum follow; the length stands first.
  const length = guarded(() => new AvroBytes(packed).varint());
  if (length > MAX_AVRO_BLOCK_BYTES)
    throw damaged(`a block unpacks to more than ${MAX_AVRO_BLOCK_BYTES} bytes`);
  const plain = Buffer.alloc(length);
  guarded(() => snappyUncompress(packed.subarray(0, Math.max(0, packed.length - 4)), plain));
  return plain;
}

function* blockRows(block: Buffer, rows: number, readRow: ReadAvroRow): Generator<Buffer> {
  const bytes = new AvroBytes(block);
  const batch = new LineBatch();
  for (let row = 0; row < rows; row++) {
    const text = batch.add(guarded(() => readRow(bytes)));
    if (text !== null) yield text;
  }
  if (bytes.left > 0) throw damaged('a block is longer than its rows');
  const rest = batch.take();
  if (rest !== null) yield rest;
}

/** What comes from the source, as far as it is asked for. */
class Input {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Whether so many bytes are there still. */
  async has(bytes: number): Promise<boolean> {
    if (this.#held.length >= bytes) return true;
    const pieces = [this.#held];
    let length = this.#held.length;
    while (length < bytes) {
      const next = await this.#source.next();
      if (next.done === true) break;
      pieces.push(next.value);
      length += next.value.length;
    }
    this.#held = Buffer.concat(pieces, length);
    return length >= bytes;
  }

  async take(bytes: number): Promise<Buffer> {
    if (!(await this.has(bytes))) throw damaged('it ends early');
    const taken = this.#held.subarray(0, bytes);
    this.#held = this.#held.subarray(bytes);
    return taken;
  }

  async long(): Promise<number> {
    let [value, factor] = [0, 1];
    for (let read = 0; read < 8; read++) {
      const byte = (await this.take(1))[0] ?? 0;
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    throw damaged('a length is too large');
  }

  async count(what: string, atMost: number): Promise<number> {
    const count = await this.long();
    if (count < 0 || count > atMost) throw damaged(`${count} ${what}`);
    return count;
  }
}

/** What goes wrong while untrusted bytes are read is their fault. */
function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const what = cause instanceof AvroDamage ? cause.message : 'it cannot be read';
    throw Object.assign(damaged(what), { cause });
  }
}

function damaged(what: string): InputError {
  return inputError('unsupported_format', `The Avro file is damaged: ${what}`);
}

function unsupported(what: string): InputError {
  return inputError('unsupported_format', `The Avro file cannot be read: ${what}`);
}
