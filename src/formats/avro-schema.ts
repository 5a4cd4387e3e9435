import { DamagedFile } from '../domain/errors.ts';
import { MAX_COLUMNS, MAX_PARSED_DEPTH } from '../domain/limits.ts';
import {
  bigIntOf,
  bytesJson,
  checkScale,
  decimalJson,
  declaredJson,
  INTERVAL_BYTES,
  intervalJson,
  type JsonText,
  metadataJson,
  numberJson,
  TypedRows,
  temporalJson,
  textJson,
  UUID_BYTES,
  uuidJson,
} from './typed-rows.ts';

/** Reads the primitive values of Avro, and never beyond the end of the bytes. */
export class AvroBytes {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new DamagedFile('a row ends early');
    return byte;
  }

  take(length: number): Buffer {
    if (length < 0 || length > this.left) throw new DamagedFile('a value is longer than its block');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Exact: a bigint where a number would not be. */
  long(): number | bigint {
    const start = this.#at;
    let [value, factor] = [0, 1];
    for (let read = 0; read < 7; read++) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    this.#at = start;
    return this.#large();
  }

  small(): number {
    const value = this.long();
    if (typeof value === 'bigint') throw new DamagedFile('a length is too large');
    return value;
  }

  #large(): number | bigint {
    let value = 0n;
    for (let read = 0n; read < 10n; read++) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << (7n * read);
      if (byte >= 0x80) continue;
      const signed = BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
      const number = Number(signed);
      return Number.isSafeInteger(number) ? number : signed;
    }
    throw new DamagedFile('a number has more than 64 bits');
  }
}

export interface AvroRows {
  read(bytes: AvroBytes): string;
  notes(): string[];
}

type ReadValue = (bytes: AvroBytes, level: number) => JsonText;

interface Schema {
  readonly [name: string]: unknown;
}

/** @throws DamagedFile if it is not a schema of rows. */
export function compileAvroSchema(text: Buffer | undefined): AvroRows {
  if (text === undefined) throw new DamagedFile('it has no schema');
  const schema = parse(text);
  if (!isObject(schema) || schema['type'] !== 'record') throw new DamagedFile('its rows are no records');
  const rows = new TypedRows(fieldsIn(schema).map(nameOf));
  const reads = new Compiler(rows).row(schema);
  return {
    read: (bytes) => rows.line((column) => (reads[column] as ReadValue)(bytes, 1)),
    notes: () => rows.notes(),
  };
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    throw new DamagedFile('its schema is no JSON');
  }
}

function fieldsIn({ fields }: Schema): Schema[] {
  if (!Array.isArray(fields) || fields.length > MAX_COLUMNS)
    throw new DamagedFile('a record has no usable fields');
  return (fields as unknown[]).map((field) => {
    if (!isObject(field)) throw new DamagedFile('a field has no name');
    return field;
  });
}

function nameOf({ name }: Schema): string {
  if (typeof name !== 'string') throw new DamagedFile('a field or a type has no name');
  return name;
}

/** Returns the last part of a name, by which a type is known. */
function shortNameOf(schema: Schema): string {
  const name = nameOf(schema);
  return name.slice(name.lastIndexOf('.') + 1);
}

class Compiler {
  readonly #rows: TypedRows;
  readonly #named = new Map<string, ReadValue>();

  constructor(rows: TypedRows) {
    this.#rows = rows;
  }

  row(schema: Schema): readonly ReadValue[] {
    return this.#fields(schema, 0, true);
  }

  #fields(schema: Schema, depth: number, isRow: boolean): readonly ReadValue[] {
    const rows = this.#rows;
    const reads: ReadValue[] = [];
    const fields = fieldsIn(schema);
    const keys = fields.map((field) => `${JSON.stringify(nameOf(field))}:`);
    // Defined before its fields, which may be of this type themselves.
    this.#define(schema, (bytes, level) => {
      let text = rows.count('{');
      for (const [index, read] of reads.entries()) {
        text += `${index === 0 ? '' : ','}${rows.count(keys[index] ?? '')}${read(bytes, level)}`;
      }
      return `${text}}`;
    });
    for (const field of fields) {
      reads.push(this.#compile(field['type'], depth + 1, isRow && field['name'] === 'metadata'));
    }
    return reads;
  }

  /** With `isMetadata`, text that is a JSON object becomes that object. */
  #compile(schema: unknown, depth: number, isMetadata = false): ReadValue {
    if (depth > MAX_PARSED_DEPTH) throw new DamagedFile('its schema is nested too deeply');
    const read = this.#compileType(schema, depth, isMetadata);
    return (bytes, level) => {
      if (level > MAX_PARSED_DEPTH) throw new DamagedFile('values are nested too deeply');
      return read(bytes, level + 1);
    };
  }

  #compileType(schema: unknown, depth: number, isMetadata: boolean): ReadValue {
    if (Array.isArray(schema)) return this.#union(schema as unknown[], depth, isMetadata);
    if (typeof schema === 'string')
      return this.#simple({ type: schema }, isMetadata) ?? this.#reference(schema);
    if (!isObject(schema)) throw new DamagedFile('a type is none');
    switch (schema['type']) {
      case 'record':
      case 'error':
        this.#fields(schema, depth, false);
        return this.#reference(nameOf(schema));
      case 'enum':
        return this.#define(schema, this.#enumeration(schema['symbols']));
      case 'fixed':
        return this.#define(schema, this.#simple(schema, isMetadata) as ReadValue);
      case 'array':
        return this.#items(this.#compile(schema['items'], depth + 1));
      case 'map':
        return this.#members(this.#compile(schema['values'], depth + 1));
      default:
        return this.#simple(schema, isMetadata) ?? this.#compileType(schema['type'], depth + 1, isMetadata);
    }
  }

  /** Returns null for a type that holds others, or is named. */
  #simple(schema: Schema, isMetadata: boolean): ReadValue | null {
    const read = readSimple(schema, isMetadata, this.#rows);
    return read && ((bytes, level) => this.#rows.count(read(bytes, level)));
  }

  #reference(name: string): ReadValue {
    const named = this.#named;
    const short = name.slice(name.lastIndexOf('.') + 1);
    if (!named.has(short)) {
      throw new DamagedFile(`its schema has no type ${JSON.stringify(name.slice(0, 40))}`);
    }
    return (bytes, level) => (named.get(short) as ReadValue)(bytes, level);
  }

  #define(schema: Schema, read: ReadValue): ReadValue {
    this.#named.set(shortNameOf(schema), read);
    return read;
  }

  #union(branches: readonly unknown[], depth: number, isMetadata: boolean): ReadValue {
    const reads = branches.map((branch) => this.#compile(branch, depth + 1, isMetadata));
    return (bytes, level) => {
      const read = reads[bytes.small()];
      if (read === undefined) throw new DamagedFile('a union has no such branch');
      return read(bytes, level);
    };
  }

  #enumeration(symbols: unknown): ReadValue {
    if (!Array.isArray(symbols)) throw new DamagedFile('an enum has no symbols');
    return (bytes) => {
      const symbol: unknown = symbols[bytes.small()];
      if (typeof symbol !== 'string') throw new DamagedFile('an enum has no such symbol');
      return this.#rows.count(JSON.stringify(symbol));
    };
  }

  #items(read: ReadValue): ReadValue {
    return (bytes, level) => {
      let text = this.#rows.count('[');
      eachOfBlocks(bytes, (isFirst) => {
        text += isFirst ? read(bytes, level) : `,${read(bytes, level)}`;
      });
      return `${text}]`;
    };
  }

  #members(read: ReadValue): ReadValue {
    return (bytes, level) => {
      let text = this.#rows.count('{');
      eachOfBlocks(bytes, (isFirst) => {
        const name = this.#rows.count(textJson(bytes.take(bytes.small())));
        text += `${isFirst ? '' : ','}${name}:${read(bytes, level)}`;
      });
      return `${text}}`;
    };
  }
}

/** A list comes in blocks, each with a count before it; a negative one is followed by the length in bytes. */
function eachOfBlocks(bytes: AvroBytes, one: (isFirst: boolean) => void): void {
  let isFirst = true;
  for (let count = bytes.small(); count !== 0; count = bytes.small()) {
    if (count < 0) bytes.small();
    for (let item = 0; item < Math.abs(count); item++) {
      one(isFirst);
      isFirst = false;
    }
  }
}

/** Reads a value as its logical type says; an unknown or unsuitable logical type is ignored. */
function readSimple(schema: Schema, isMetadata: boolean, rows: TypedRows): ReadValue | null {
  const { type, logicalType } = schema;
  switch (type) {
    case 'null':
      return () => 'null';
    case 'boolean':
      return (bytes) => String(bytes.byte() !== 0);
    case 'int':
    case 'long':
      return wholeNumber(logicalType, rows);
    case 'float':
      return (bytes) => numberJson(bytes.take(4).readFloatLE(), rows);
    case 'double':
      return (bytes) => numberJson(bytes.take(8).readDoubleLE(), rows);
    case 'string': {
      const json = logicalType === 'json' ? declaredJson : isMetadata ? metadataJson : textJson;
      return (bytes) => json(bytes.take(bytes.small()));
    }
    case 'bytes': {
      const json = octets(schema, null);
      return (bytes) => json(bytes.take(bytes.small()));
    }
    case 'fixed': {
      const { size } = schema;
      if (typeof size !== 'number') throw new DamagedFile('a fixed type has no size');
      const json = octets(schema, size);
      return (bytes) => json(bytes.take(size));
    }
    default:
      return null;
  }
}

function wholeNumber(logicalType: unknown, rows: TypedRows): ReadValue {
  const type = typeof logicalType === 'string' ? logicalType.replace(/^local-(?=timestamp)/, '') : '';
  const json = temporalJson(type, rows) ?? String;
  return (bytes) => json(bytes.long());
}

/** `size`: null where it is not the same for every value. */
function octets(schema: Schema, size: number | null): (bytes: Buffer) => JsonText {
  switch (schema['logicalType']) {
    case 'decimal': {
      const scale = checkScale(schema['scale'] ?? 0);
      return (bytes) => decimalJson(bigIntOf(bytes), scale);
    }
    case 'big-decimal':
      return size === null ? bigDecimal : bytesJson;
    case 'uuid':
      return size === UUID_BYTES ? uuidJson : bytesJson;
    case 'duration':
      return size === INTERVAL_BYTES ? intervalJson : bytesJson;
    default:
      return bytesJson;
  }
}

/** Reads a big-decimal, whose scale is stored with each value. */
function bigDecimal(value: Buffer): JsonText {
  const bytes = new AvroBytes(value);
  const unscaled = bigIntOf(bytes.take(bytes.small()));
  return decimalJson(unscaled, checkScale(bytes.small()));
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
