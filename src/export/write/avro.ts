import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import { Fault } from '../../domain/errors.ts';
import type { FileDataset } from '../../domain/export.ts';
import { type Column, columnsOf } from '../../domain/export-columns.ts';
import type { StoredFileWriter } from './attempt-files.ts';
import { Bytes, findValues, readInteger, unescaped } from './rows.ts';
import type { FileRows } from './split-files.ts';

const deflate = promisify(deflateRaw);
const MAGIC = Buffer.from('Obj\x01', 'latin1');
const MARKER_BYTES = 16;

const recordNames: Readonly<Record<FileDataset, string>> = {
  users: 'User',
  companies: 'Company',
  events: 'Event',
  stream: 'StreamRow',
};

/**
 * Writes an Avro object container file: the header with the schema, then blocks, each packed with deflate and followed by the
 * file's marker. By hand: what is written of Avro here is strings, longs and a union with null.
 */
export class AvroFile {
  readonly #columns: readonly Column[];
  readonly #stored: StoredFileWriter;
  readonly #schema: string;
  readonly #text = new AvroText();
  readonly #ends: Int32Array;
  #rows = 0;
  #marker: Buffer | null = null;

  constructor({ dataset, request }: FileRows, stored: StoredFileWriter) {
    this.#columns = columnsOf(dataset, request);
    this.#ends = new Int32Array(this.#columns.length);
    this.#stored = stored;
    this.#schema = JSON.stringify(schemaOf(recordNames[dataset], this.#columns));
  }

  addRow(bytes: Buffer, start: number, end: number): void {
    findValues(bytes, start, end, this.#ends);
    let at = start;
    for (const [index, column] of this.#columns.entries()) {
      const valueEnd = this.#ends[index] as number;
      this.#addValue(column, bytes, at, valueEnd);
      at = valueEnd + 1;
    }
    this.#rows++;
  }

  async endGroup(): Promise<void> {
    const plain = Buffer.from(this.#text.view());
    const marker = this.#marker ?? (await this.#begin(plain));
    const packed = await deflate(plain);
    this.#text.clear();
    this.#text.long(this.#rows);
    this.#text.long(packed.length);
    const head = Buffer.from(this.#text.view());
    this.#text.clear();
    this.#rows = 0;
    await this.#stored.write(Buffer.concat([head, packed, marker]));
  }

  async end(): Promise<null> {
    if (this.#marker === null) await this.#begin(Buffer.alloc(0));
    return null;
  }

  /** Nothing at all is a null: even an empty text comes with its quotes. */
  #addValue({ name, kind, isOptional }: Column, bytes: Buffer, start: number, end: number): void {
    const isNull = end <= start;
    if (isNull && !isOptional) throw new Fault(`a row has no ${name}`);
    if (isOptional) this.#text.long(isNull ? 0 : 1);
    if (isNull) return;
    if (kind === 'instant') {
      this.#text.long(readInteger(bytes, start, end));
      return;
    }
    const text = kind === 'json' ? null : unescaped(bytes, start, end);
    const quotes = kind === 'json' ? 0 : 1;
    if (text === null) this.#text.text(bytes, start + quotes, end - quotes);
    else this.#text.text(text, 0, text.length);
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
    await this.#stored.write(Buffer.concat([MAGIC, header.view(), marker]));
    this.#marker = marker;
    return marker;
  }
}

function schemaOf(name: string, columns: readonly Column[]): object {
  const fields = columns.map((column) => {
    const { name: field, isOptional } = column;
    const type = typeOf(column);
    return {
      name: field,
      ...(isOptional ? { type: ['null', type], default: null } : { type }),
      ...(field === 'metadata' && { doc: 'The properties: a JSON object.' }),
    };
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

/** Values as Avro writes them, one after another. */
class AvroText extends Bytes {
  /** Zigzag, seven bits a byte, the lowest first. */
  long(value: number | bigint): void {
    this.reserve(MAX_LONG_BYTES);
    const number = Number(value);
    if (Math.abs(number) > MAX_EXACT) {
      this.#large(BigInt(value));
      return;
    }
    let rest = number < 0 ? -2 * number - 1 : 2 * number;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
      this.memory[this.length++] = (rest % 0x80) | 0x80;
    }
    this.memory[this.length++] = rest;
  }

  /** UTF-8. */
  text(from: Uint8Array, start: number, end: number): void {
    this.long(end - start);
    this.add(from, start, end);
  }

  string(value: string): void {
    const bytes = Buffer.from(value);
    this.text(bytes, 0, bytes.length);
  }

  #large(value: bigint): void {
    let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    for (; rest >= 0x80n; rest >>= 7n) this.memory[this.length++] = Number(rest & 0x7fn) | 0x80;
    this.memory[this.length++] = Number(rest);
  }
}
