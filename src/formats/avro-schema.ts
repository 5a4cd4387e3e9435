import { instantOfMicros } from '../domain/instant.ts';
import { MAX_COLUMNS, MAX_PARSED_DEPTH } from '../domain/limits.ts';
import { type AvroBytes, AvroDamage } from './avro-bytes.ts';
import { bigIntOf, decimalOf, JsonText, TypedRows, type TypedValue } from './typed-rows.ts';

/** Reads a row, as a line of NDJSON. */
export type ReadAvroRow = (bytes: AvroBytes) => string;

type ReadValue = (bytes: AvroBytes, depth: number) => TypedValue;

interface Schema {
  readonly [name: string]: unknown;
}

/** @throws AvroDamage for what is no schema of rows. */
export function compileAvroSchema(text: Buffer | undefined): ReadAvroRow {
  if (text === undefined) throw new AvroDamage('it has no schema');
  const schema = parse(text);
  if (!isObject(schema) || schema['type'] !== 'record') throw new AvroDamage('its rows are no records');
  const fields = fieldsOf(schema, new Map());
  const rows = new TypedRows(fields.map(({ name }) => name));
  return (bytes) => {
    bytes.countValue();
    const values = fields.map(({ read }) => read(bytes, 1));
    return rows.line((column) => values[column]);
  };
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    throw new AvroDamage('its schema is no JSON');
  }
}

/** Types by their names, as far as they have been met. */
type Named = Map<string, ReadValue>;

interface Field {
  readonly name: string;
  readonly read: ReadValue;
}

function fieldsOf(schema: Schema, named: Named, depth = 0): Field[] {
  const { fields } = schema;
  if (!Array.isArray(fields) || fields.length > MAX_COLUMNS)
    throw new AvroDamage('a record has no usable fields');
  const own: Field[] = [];
  // Before its fields, which may be of this type themselves.
  define(schema, named, (bytes, level) =>
    Object.fromEntries(own.map(({ name, read }) => [name, read(bytes, level)])),
  );
  for (const field of fields as unknown[]) {
    if (!isObject(field) || typeof field['name'] !== 'string') throw new AvroDamage('a field has no name');
    own.push({ name: field['name'], read: compile(field['type'], named, depth + 1) });
  }
  return own;
}

function compile(schema: unknown, named: Named, depth: number): ReadValue {
  if (depth > MAX_PARSED_DEPTH) throw new AvroDamage('its schema is nested too deeply');
  const read = compileType(schema, named, depth);
  return (bytes, level) => {
    bytes.countValue();
    if (level > MAX_PARSED_DEPTH) throw new AvroDamage('values are nested too deeply');
    return read(bytes, level + 1);
  };
}

function compileType(schema: unknown, named: Named, depth: number): ReadValue {
  if (Array.isArray(schema)) return union(schema as unknown[], named, depth);
  if (typeof schema === 'string') return primitives.get(schema) ?? reference(schema, named);
  if (!isObject(schema)) throw new AvroDamage('a type is none');
  switch (schema['type']) {
    case 'record':
    case 'error':
      fieldsOf(schema, named, depth);
      return reference(nameOf(schema), named);
    case 'enum':
      return define(schema, named, enumeration(schema['symbols']));
    case 'fixed':
      return define(schema, named, logical(schema, fixed(schema['size'])));
    case 'array':
      return items(compile(schema['items'], named, depth + 1));
    case 'map':
      return members(compile(schema['values'], named, depth + 1));
    default:
      return logical(schema, compileType(schema['type'], named, depth + 1));
  }
}

const primitives: ReadonlyMap<string, ReadValue> = new Map<string, ReadValue>([
  ['null', () => null],
  ['boolean', (bytes) => bytes.byte() !== 0],
  ['int', (bytes) => bytes.long()],
  ['long', (bytes) => bytes.long()],
  ['float', (bytes) => bytes.float()],
  ['double', (bytes) => bytes.double()],
  ['bytes', (bytes) => bytes.take(bytes.small())],
  ['string', (bytes) => bytes.take(bytes.small()).toString('utf8')],
]);

function reference(name: string, named: Named): ReadValue {
  const short = name.slice(name.lastIndexOf('.') + 1);
  if (!named.has(short)) throw new AvroDamage(`its schema has no type ${JSON.stringify(name.slice(0, 40))}`);
  return (bytes, level) => (named.get(short) as ReadValue)(bytes, level);
}

function nameOf(schema: Schema): string {
  const { name } = schema;
  if (typeof name !== 'string') throw new AvroDamage('a type has no name');
  return name.slice(name.lastIndexOf('.') + 1);
}

function define(schema: Schema, named: Named, read: ReadValue): ReadValue {
  named.set(nameOf(schema), read);
  return read;
}

function union(branches: readonly unknown[], named: Named, depth: number): ReadValue {
  const reads = branches.map((branch) => compile(branch, named, depth + 1));
  return (bytes, level) => {
    const read = reads[bytes.small()];
    if (read === undefined) throw new AvroDamage('a union has no such branch');
    return read(bytes, level);
  };
}

function enumeration(symbols: unknown): ReadValue {
  if (!Array.isArray(symbols)) throw new AvroDamage('an enum has no symbols');
  return (bytes) => {
    const symbol: unknown = symbols[bytes.small()];
    if (typeof symbol !== 'string') throw new AvroDamage('an enum has no such symbol');
    return symbol;
  };
}

function fixed(size: unknown): ReadValue {
  if (typeof size !== 'number') throw new AvroDamage('a fixed type has no size');
  return (bytes) => bytes.take(size);
}

function items(read: ReadValue): ReadValue {
  return (bytes, level) => {
    const list: TypedValue[] = [];
    eachOfBlocks(bytes, () => list.push(read(bytes, level)));
    return list;
  };
}

function members(read: ReadValue): ReadValue {
  return (bytes, level) => {
    const entries: [string, TypedValue][] = [];
    eachOfBlocks(bytes, () => {
      const name = bytes.take(bytes.small()).toString('utf8');
      entries.push([name, read(bytes, level)]);
    });
    return Object.fromEntries(entries);
  };
}

/** A list comes in blocks, each with a count before it; a negative one is followed by the length in bytes. */
function eachOfBlocks(bytes: AvroBytes, one: () => void): void {
  for (let count = bytes.small(); count !== 0; count = bytes.small()) {
    if (count < 0) bytes.small();
    for (let item = 0; item < Math.abs(count); item++) one();
  }
}

const dayMs = 86_400_000;

/** What the type says beside how it is written. One that is not known changes nothing. */
function logical(schema: Schema, read: ReadValue): ReadValue {
  const { logicalType, scale = 0 } = schema;
  const on =
    (of: (value: number) => TypedValue): ReadValue =>
    (bytes, level) => {
      const value = read(bytes, level);
      return typeof value === 'number' ? of(value) : value;
    };
  switch (logicalType) {
    case 'timestamp-millis':
    case 'local-timestamp-millis':
      return on((ms) => instantOfMicros(ms * 1_000));
    case 'timestamp-micros':
    case 'local-timestamp-micros':
      return on(instantOfMicros);
    case 'timestamp-nanos':
    case 'local-timestamp-nanos':
      return (bytes, level) => instantOfMicros(Math.floor(Number(read(bytes, level)) / 1_000));
    case 'date':
      return on((days) => new Date(days * dayMs).toISOString().slice(0, 10));
    case 'json':
      return (bytes, level) => {
        const value = read(bytes, level);
        return typeof value === 'string' ? new JsonText(value) : value;
      };
    case 'decimal':
      return (bytes, level) => {
        const value = read(bytes, level);
        return value instanceof Uint8Array ? decimalOf(bigIntOf(value), digits(scale)) : value;
      };
    default:
      return read;
  }
}

/** More than any number has that could be loaded. */
const MAX_SCALE = 1_000;

function digits(scale: unknown): number {
  if (typeof scale === 'number' && Number.isInteger(scale) && scale >= 0 && scale <= MAX_SCALE) return scale;
  throw new AvroDamage('a decimal has no usable scale');
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
