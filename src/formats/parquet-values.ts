import { isUtf8 } from 'node:buffer';
import type { FileMetaData, SchemaElement, SchemaTree } from 'hyparquet';
import { DamagedFile } from '../base/errors.ts';
import { dayText, instantText, timeOfDayText } from '../base/instant.ts';
import { MAX_PARSED_DEPTH, MiB } from '../base/limits.ts';

/*
 * Writes Parquet values as JSON, without hyparquet's rounding. A dictionary entry is parsed once.
 */

/**
 * Maximum length of a row as JSON, in characters. If a row is longer, the file is refused. A
 * shorter row that is still too large for a record is refused alone.
 */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;

type JsonText = string;
/** Writes a value as JSON. A list is given as an array, and a struct as an object. */
type ToJson = (value: unknown) => JsonText;

export interface ParquetColumn {
  readonly name: string;
  readonly key: JsonText;
  /** Schema of a file with only this column, in types that hyparquet does not convert. */
  readonly schema: FileMetaData['schema'];
  /** Dotted paths. */
  readonly leaves: readonly string[];
  readonly isNested: boolean;
  readonly parsers: {
    stringFromBytes(bytes: Uint8Array): JsonText;
    jsonFromBytes(bytes: Uint8Array): JsonText;
    uuidFromBytes(bytes: Uint8Array): JsonText;
    timestampFromNanoseconds(nanos: bigint): bigint;
  };
  readonly toJson: ToJson;
}

/** Counts a value that JSON cannot express. Returns the text `null` for it. */
export type Omit = () => JsonText;

/**
 * Returns the column of a tree of the schema.
 * @throws DamagedFile for an unsupported type.
 */
export function columnOf(tree: SchemaTree, omit: Omit): ParquetColumn {
  const schema: SchemaElement[] = [{ name: 'root', num_children: 1 }];
  const leaves: string[] = [];
  const visit = (node: SchemaTree): void => {
    schema.push(storedElement(node));
    if (node.children.length === 0) leaves.push(node.path.join('.'));
    for (const child of node.children) visit(child);
  };
  const toJson = valueToJson(tree, omit, 1);
  visit(tree);
  const isNested = tree.children.length > 0 || isRepeated(tree);
  return {
    name: tree.element.name,
    key: `${JSON.stringify(tree.element.name)}:`,
    schema,
    leaves,
    isNested,
    parsers: {
      stringFromBytes: isMetadata(tree) ? metadataJson : textJson,
      jsonFromBytes: (bytes) => declaredJson(bytes),
      uuidFromBytes: uuidJson,
      timestampFromNanoseconds: (nanos) => nanos,
    },
    toJson(value) {
      // hyparquet returns `undefined` for null lists and structs.
      if (value === undefined && !isNested) throw new DamagedFile('a page names a value that it lacks');
      return toJson(value);
    },
  };
}

const textTypes = new Set(['UTF8', 'STRING', 'ENUM']);

const kindOf = ({ logical_type: logical, converted_type: converted }: SchemaElement): string =>
  logical?.type ?? converted ?? '';

const isRepeated = ({ element }: SchemaTree): boolean => element.repetition_type === 'REPEATED';

const isMetadata = ({ element, path }: SchemaTree): boolean =>
  path.length === 1 && element.name === 'metadata';

/** Removes annotations that make hyparquet round values or lose parts of lists and maps. */
function storedElement(node: SchemaTree): SchemaElement {
  const { converted_type: _, logical_type: logical, ...plain } = node.element;
  const kind = kindOf(node.element);
  if (node.children.length > 0)
    return listItem(node) === 'inner' ? { ...plain, converted_type: 'LIST' } : plain;
  if (textTypes.has(kind)) return { ...plain, converted_type: 'UTF8' };
  if (kind === 'JSON') return { ...plain, converted_type: 'JSON' };
  const isConverted = kind === 'FLOAT16' || (kind === 'UUID' && plain.type_length === 16);
  return isConverted && logical !== undefined ? { ...plain, logical_type: logical } : plain;
}

/**
 * Returns where the items of a list are. `inner`: items are children of the repeated node. `whole`:
 * items are the repeated node itself, as in older files. `null`: the node is not a list.
 */
function listItem({ element, children }: SchemaTree): 'inner' | 'whole' | null {
  const [only, ...more] = children;
  if (kindOf(element) !== 'LIST' || only === undefined || more.length > 0 || !isRepeated(only)) return null;
  const { name } = only.element;
  if (only.children.length === 0) return 'inner';
  return only.children.length > 1 || name === 'array' || name.endsWith('_tuple') ? 'whole' : 'inner';
}

function valueToJson(node: SchemaTree, omit: Omit, depth: number): ToJson {
  if (depth > MAX_PARSED_DEPTH) throw new DamagedFile('its schema is nested too deeply');
  const item = node.children.length === 0 ? leafToJson(node, omit) : groupToJson(node, omit, depth + 1);
  return isRepeated(node) ? listToJson(item) : orNull(item);
}

const orNull =
  (toJson: ToJson): ToJson =>
  (value) =>
    value === null || value === undefined ? 'null' : toJson(value);

function groupToJson(node: SchemaTree, omit: Omit, depth: number): ToJson {
  const { element, children } = node;
  const kind = kindOf(element);
  if (kind === 'VARIANT') throw new DamagedFile('columns of VARIANT are not read');
  const [only] = children;
  const item = listItem(node);
  if (only !== undefined && item !== null) {
    const inner = item === 'inner' ? only.children[0] : undefined;
    if (inner !== undefined) return listToJson(valueToJson(inner, omit, depth));
    const list = valueToJson(only, omit, depth);
    return item === 'inner' ? list : (value) => list(memberOf(value, only.element.name));
  }
  const [key, entryValue] = only?.children ?? [];
  if (only !== undefined && children.length === 1 && key !== undefined && entryValue !== undefined) {
    if (isRepeated(only) && only.children.length === 2 && (kind === 'MAP' || kind === 'MAP_KEY_VALUE')) {
      const names = valueToJson(key, omit, depth);
      const values = valueToJson(entryValue, omit, depth);
      const entries = joined(['{', '}'], (entry) => {
        const name = names(memberOf(entry, key.element.name));
        return `${name.startsWith('"') ? name : JSON.stringify(name)}:${values(memberOf(entry, entryValue.element.name))}`;
      });
      return (value) => entries(memberOf(value, only.element.name));
    }
  }
  return structToJson(children, omit, depth);
}

const memberOf = (value: unknown, name: string): unknown => (value as Record<string, unknown>)[name];

function structToJson(children: readonly SchemaTree[], omit: Omit, depth: number): ToJson {
  const members = children.map((child) => ({
    name: child.element.name,
    key: `${JSON.stringify(child.element.name)}:`,
    toJson: valueToJson(child, omit, depth),
  }));
  if (members.some(({ name }) => name === '__proto__'))
    throw new DamagedFile('a struct has a member __proto__');
  return (value) =>
    `{${members.map(({ name, key, toJson }) => key + toJson(memberOf(value, name))).join(',')}}`;
}

const listToJson = (item: ToJson): ToJson => orNull(joined(['[', ']'], item));

function joined([open, close]: readonly [string, string], item: ToJson): ToJson {
  return (value) => {
    let text = open;
    for (const each of value as Iterable<unknown>) {
      text += text === open ? item(each) : `,${item(each)}`;
      if (text.length > MAX_PARQUET_ROW_CHARS) break;
    }
    return text + close;
  };
}

/** Ignores unknown annotations. */
function leafToJson(node: SchemaTree, omit: Omit): ToJson {
  const { element } = node;
  const kind = kindOf(element);
  const number: ToJson = (value) => (Number.isFinite(value) ? String(value) : omit());
  if (kind === 'DECIMAL') return decimals(element);
  if (kind === 'BSON') throw new DamagedFile('columns of BSON are not read');
  switch (element.type) {
    case 'BOOLEAN':
      return String;
    case 'INT32':
    case 'INT64':
      return temporals(element, omit) ?? (isUnsigned(element) ? unsigned(element.type) : String);
    case 'INT96':
      return (value) => `"${instantText(value as bigint, 1_000_000_000)}"`;
    case 'FLOAT':
    case 'DOUBLE':
      return number;
    case 'BYTE_ARRAY':
    case 'FIXED_LEN_BYTE_ARRAY':
      if (kind === 'FLOAT16') return number;
      if (kind === 'INTERVAL' && element.type_length === 12) return intervalJson;
      return (value) =>
        typeof value === 'string' ? value : bytesJson(value as Uint8Array, isMetadata(node));
    default:
      throw new DamagedFile(`the column ${JSON.stringify(element.name.slice(0, 100))} has no known type`);
  }
}

const isUnsigned = ({ logical_type: logical, converted_type: converted }: SchemaElement): boolean =>
  logical?.type === 'INTEGER' ? !logical.isSigned : converted?.startsWith('UINT_') === true;

const unsigned =
  (type: 'INT32' | 'INT64'): ToJson =>
  (value) =>
    String(BigInt.asUintN(type === 'INT32' ? 32 : 64, BigInt(value as number | bigint)));

/** Maximum number of decimals. A number with more decimals cannot be loaded. */
const MAX_SCALE = 1_000;

function decimals({ scale: declared, logical_type: logical }: SchemaElement): ToJson {
  const scale = declared ?? (logical?.type === 'DECIMAL' ? logical.scale : 0);
  if (!(Number.isInteger(scale) && scale >= 0 && scale <= MAX_SCALE)) {
    throw new DamagedFile('a decimal has no usable scale');
  }
  return (value) => {
    const unscaled = value instanceof Uint8Array ? bigIntOf(value) : BigInt(value as number | bigint);
    const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
    const whole = (unscaled < 0n ? '-' : '') + digits.slice(0, digits.length - scale);
    return scale === 0 ? whole : `${whole}.${digits.slice(-scale)}`;
  };
}

function bigIntOf(bytes: Uint8Array): bigint {
  const hex = asBuffer(bytes).toString('hex');
  return hex === '' ? 0n : BigInt.asIntN(8 * bytes.length, BigInt(`0x${hex}`));
}

const units = { MILLIS: 1_000, MICROS: 1_000_000, NANOS: 1_000_000_000 } as const;
const MAX_DAYS = 2 ** 31;

/**
 * Returns the function that writes values as JSON. Returns `null` for types other than dates,
 * instants and times of day.
 */
function temporals(element: SchemaElement, omit: Omit): ToJson | null {
  const logical = element.logical_type;
  const [kind, suffix = ''] = kindOf(element).split('_');
  if (kind === 'DATE') {
    return (value) => {
      if (Math.abs(Number(value)) > MAX_DAYS) throw new DamagedFile('a date is out of range');
      return `"${dayText(Number(value))}"`;
    };
  }
  const unit =
    units[(logical !== undefined && 'unit' in logical ? logical.unit : suffix) as keyof typeof units];
  if (unit === undefined) return null;
  if (kind === 'TIMESTAMP') return (value) => `"${instantText(value as number | bigint, unit)}"`;
  return (value) => {
    const text = timeOfDayText(value as number | bigint, unit);
    return text === null ? omit() : `"${text}"`;
  };
}

/** Writes months, days and milliseconds, of four bytes each, as ISO 8601: `P1M2DT3.5S`. */
function intervalJson(value: unknown): JsonText {
  const buffer = asBuffer(value as Uint8Array);
  const months = buffer.readUInt32LE(0);
  const days = buffer.readUInt32LE(4);
  const ms = buffer.readUInt32LE(8);
  const date = `${months > 0 ? `${months}M` : ''}${days > 0 ? `${days}D` : ''}`;
  return ms > 0 || date === '' ? `"P${date}T${ms / 1000}S"` : `"P${date}"`;
}

function uuidJson(bytes: Uint8Array): JsonText {
  const hex = asBuffer(bytes).toString('hex');
  return `"${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}"`;
}

/**
 * Half a surrogate pair marks bytes that are not a character. `JSON.stringify` never writes such a
 * half without escaping it.
 */
const NO_CHARACTER = '\ud800';
export const noCharacter = /\ud800/u;

function textJson(bytes: Uint8Array): JsonText {
  const json = JSON.stringify(asBuffer(bytes).toString('utf8'));
  return json.includes('\ufffd') && !isUtf8(bytes) ? json.replaceAll('\ufffd', NO_CHARACTER) : json;
}

/**
 * Older programs do not declare which values are text, so valid UTF-8 is read as text, and other
 * bytes are encoded as Base64.
 */
function bytesJson(bytes: Uint8Array, mayBeMetadata: boolean): JsonText {
  if (!isUtf8(bytes) || bytes.includes(0)) return JSON.stringify(asBuffer(bytes).toString('base64'));
  return mayBeMetadata ? metadataJson(bytes) : textJson(bytes);
}

/** A JSON object is written unchanged on one line, anything else as a string. */
const metadataJson = (bytes: Uint8Array): JsonText => declaredJson(bytes, '{');

/** Invalid JSON, or text not beginning with `start`, becomes a string. */
function declaredJson(bytes: Uint8Array, start = ''): JsonText {
  if (!isUtf8(bytes)) return textJson(bytes);
  const text = asBuffer(bytes).toString('utf8');
  // In valid JSON, line breaks are only white space between tokens.
  return text.startsWith(start) && isJson(text) ? text.replace(/[\r\n]/g, ' ') : JSON.stringify(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
