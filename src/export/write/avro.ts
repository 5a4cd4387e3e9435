import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import type { FileDataset } from '../../domain/export.ts';
import type { StoredFileWriter } from './attempt-files.ts';
import { type Column, type Columns, columnsOf } from './columns.ts';

const deflate = promisify(deflateRaw);
const MAGIC = Buffer.from('Obj\x01', 'latin1');
const MARKER_BYTES = 16;

/** What a row is called in the schema. */
const recordNames: Readonly<Record<FileDataset, string>> = {
  users: 'User',
  companies: 'Company',
  events: 'Event',
  stream: 'StreamRow',
};

/**
 * One Avro object container file: the header with the schema, then blocks, each packed with deflate and followed by the
 * file's marker. By hand: what is written of Avro here is strings, longs and a union with null.
 */
export class AvroFile {
  readonly #columns: readonly Column[];
  readonly #stored: StoredFileWriter;
  readonly #schema: string;
  readonly #text = new AvroText();
  #marker: Buffer | null = null;

  constructor(dataset: FileDataset, stored: StoredFileWriter) {
    this.#columns = columnsOf(dataset);
    this.#stored = stored;
    this.#schema = JSON.stringify(schemaOf(recordNames[dataset], this.#columns));
  }

  async addGroup(values: Columns, rows: number): Promise<void> {
    this.#text.clear();
    for (let row = 0; row < rows; row++) {
      for (const [index, { isOptional }] of this.#columns.entries()) {
        this.#addValue(values[index]?.[row] ?? null, isOptional);
      }
    }
    const plain = this.#text.bytes();
    const marker = this.#marker ?? (await this.#begin(plain));
    const packed = await deflate(plain);
    this.#text.clear();
    this.#text.long(rows);
    this.#text.long(packed.length);
    await this.#stored.write(Buffer.concat([this.#text.bytes(), packed, marker]));
  }

  async end(): Promise<void> {
    if (this.#marker === null) await this.#begin(Buffer.alloc(0));
  }

  #addValue(value: string | bigint | null, isOptional: boolean): void {
    if (isOptional) this.#text.long(value === null ? 0 : 1);
    if (typeof value === 'string') this.#text.string(value);
    else if (value !== null) this.#text.long(value);
  }

  /** The marker comes from the content: the same rows give the same file, and no row can hold it by design. */
  async #begin(first: Buffer): Promise<Buffer> {
    const digest = createHash('sha256').update(this.#schema).update(first).digest();
    const marker = digest.subarray(0, MARKER_BYTES);
    const header = new AvroText();
    header.long(2);
    header.string('avro.schema');
    header.string(this.#schema);
    header.string('avro.codec');
    header.string('deflate');
    header.long(0);
    await this.#stored.write(Buffer.concat([MAGIC, header.bytes(), marker]));
    this.#marker = marker;
    return marker;
  }
}

function schemaOf(name: string, columns: readonly Column[]): object {
  const fields = columns.map((column) => {
    const type = typeOf(column);
    if (column.kind === 'json') return { name: column.name, type, doc: 'The properties: a JSON object.' };
    return column.isOptional
      ? { name: column.name, type: ['null', type], default: null }
      : { name: column.name, type };
  });
  return { type: 'record', name, namespace: 'sluice', fields };
}

/** `json` is no logical type of the specification; who does not know it reads a string, as with any that is unknown. */
function typeOf({ kind }: Column): string | object {
  if (kind === 'instant') return { type: 'long', logicalType: 'timestamp-micros' };
  return kind === 'json' ? { type: 'string', logicalType: 'json' } : 'string';
}

/** Beyond it twice a number is no longer exact. */
const MAX_EXACT = 2 ** 51;
const MAX_LONG_BYTES = 10;

/** Values as Avro writes them, one after another in memory that is used again. */
class AvroText {
  #memory = Buffer.allocUnsafe(1024);
  #length = 0;

  clear(): void {
    this.#length = 0;
  }

  /** A copy. */
  bytes(): Buffer {
    return Buffer.from(this.#memory.subarray(0, this.#length));
  }

  /** Zigzag, seven bits a byte, the lowest first. */
  long(value: number | bigint): void {
    this.#reserve(MAX_LONG_BYTES);
    const number = Number(value);
    if (Math.abs(number) > MAX_EXACT) {
      this.#large(BigInt(value));
      return;
    }
    let rest = number < 0 ? -2 * number - 1 : 2 * number;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
      this.#memory[this.#length++] = (rest % 0x80) | 0x80;
    }
    this.#memory[this.#length++] = rest;
  }

  string(value: string): void {
    const length = Buffer.byteLength(value);
    this.long(length);
    this.#reserve(length);
    this.#length += this.#memory.write(value, this.#length);
  }

  #large(value: bigint): void {
    let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    for (; rest >= 0x80n; rest >>= 7n) this.#memory[this.#length++] = Number(rest & 0x7fn) | 0x80;
    this.#memory[this.#length++] = Number(rest);
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#memory.length) return;
    const memory = Buffer.allocUnsafe(Math.max(needed, 2 * this.#memory.length));
    this.#memory.copy(memory, 0, 0, this.#length);
    this.#memory = memory;
  }
}
