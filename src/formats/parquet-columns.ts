import type { SchemaElement, SchemaTree } from 'hyparquet';
import { parseFloat16 } from 'hyparquet/src/convert.js';
import { DamagedFile } from '../domain/errors.ts';
import { instantText } from '../domain/instant.ts';
import { MAX_PARSED_DEPTH } from '../domain/limits.ts';
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
  type TypedRows,
  temporalJson,
  textJson,
  UUID_BYTES,
  uuidJson,
} from './typed-rows.ts';

export type StoredValue = boolean | number | bigint | Uint8Array;
export type ToJson = (value: StoredValue) => JsonText;

/** A leaf of the schema, for which the file has a column. */
export interface ParquetLeaf {
  readonly element: SchemaElement;
  /** The names that lead to it. */
  readonly path: string;
  /** The definition level of a value that is there; the number of lists around it. */
  readonly maxDefinition: number;
  readonly maxRepetition: number;
  readonly toJson: ToJson;
}

type LeafPlace = Pick<ParquetLeaf, 'maxDefinition' | 'maxRepetition'> & { readonly depth: number };

export function leafOf(node: SchemaTree, { depth, ...levels }: LeafPlace, rows: TypedRows): ParquetLeaf {
  if (depth > MAX_PARSED_DEPTH) throw new DamagedFile('its schema is nested too deeply');
  const { element, path } = node;
  const isMetadata = depth === 1 && element.name === 'metadata';
  return { element, path: path.join('.'), ...levels, toJson: toJsonOf(element, isMetadata, rows) };
}

/** Returns the function that writes values of a column. Unknown annotations in the file are ignored. */
function toJsonOf(element: SchemaElement, isMetadata: boolean, rows: TypedRows): ToJson {
  const kind = element.logical_type?.type ?? element.converted_type;
  if (kind === 'DECIMAL') return decimals(element);
  switch (element.type) {
    case 'BOOLEAN':
      return String;
    case 'INT32':
    case 'INT64':
      return wholeNumbers(element, rows);
    case 'INT96':
      return (value) => `"${instantText(nanosOfInt96(value as bigint), 1_000_000_000)}"`;
    case 'FLOAT':
    case 'DOUBLE':
      return (value) => numberJson(value as number, rows);
    case 'BYTE_ARRAY':
      return octets(texts(kind, isMetadata));
    case 'FIXED_LEN_BYTE_ARRAY':
      return octets(fixed(kind, element.type_length, rows));
    default:
      throw new DamagedFile(`the column ${JSON.stringify(element.name.slice(0, 100))} has no known type`);
  }
}

function octets(toJson: (bytes: Uint8Array) => JsonText): ToJson {
  return (value) => toJson(value as Uint8Array);
}

function decimals(element: SchemaElement): ToJson {
  const logical = element.logical_type;
  const scale = checkScale(element.scale ?? (logical?.type === 'DECIMAL' ? logical.scale : 0));
  return (value) => decimalJson(value instanceof Uint8Array ? bigIntOf(value) : BigInt(value), scale);
}

function wholeNumbers(
  { logical_type: logical, converted_type: converted }: SchemaElement,
  rows: TypedRows,
): ToJson {
  const kind = logical?.type ?? converted ?? '';
  const type =
    logical !== undefined && 'unit' in logical ? `${kind}-${logical.unit}` : kind.replace('_', '-');
  const temporal = temporalJson(type.toLowerCase(), rows);
  if (temporal !== null) return (value) => temporal(value as number | bigint);
  const isUnsigned = logical?.type === 'INTEGER' ? !logical.isSigned : kind.startsWith('UINT_');
  if (!isUnsigned) return String;
  return (value) =>
    typeof value === 'bigint' ? String(BigInt.asUintN(64, value)) : String(Number(value) >>> 0);
}

const EPOCH_DAY = 2_440_588n;
const DAY_NANOS = 86_400_000_000_000n;

/** Reads an INT96: eight bytes for the time of day, then four for the day, in little-endian order. */
function nanosOfInt96(value: bigint): bigint {
  return (BigInt.asIntN(32, value >> 64n) - EPOCH_DAY) * DAY_NANOS + BigInt.asUintN(64, value);
}

function texts(kind: string | undefined, isMetadata: boolean): (bytes: Uint8Array) => JsonText {
  switch (kind) {
    case 'UTF8':
    case 'STRING':
    case 'ENUM':
      return isMetadata ? metadataJson : textJson;
    case 'JSON':
      return declaredJson;
    case 'BSON':
      throw new DamagedFile('columns of BSON are not read');
    default:
      return (bytes) => (isMetadata ? metadataOrBytes(bytes) : bytesJson(bytes));
  }
}

/** Writes undeclared bytes, which may be text: older writers do not declare it. */
function metadataOrBytes(bytes: Uint8Array): JsonText {
  const json = bytesJson(bytes);
  return json.startsWith('"{') ? metadataJson(bytes) : json;
}

function fixed(
  kind: string | undefined,
  length: number | undefined,
  rows: TypedRows,
): (bytes: Uint8Array) => JsonText {
  if (kind === 'UUID' && length === UUID_BYTES) return uuidJson;
  if (kind === 'INTERVAL' && length === INTERVAL_BYTES) return intervalJson;
  if (kind === 'FLOAT16' && length === 2)
    return (bytes) => numberJson(parseFloat16(bytes) ?? Number.NaN, rows);
  return bytesJson;
}
