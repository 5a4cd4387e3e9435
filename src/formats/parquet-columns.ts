import type { ColumnMetaData, SchemaElement, SchemaTree } from 'hyparquet';
import { instantOfMicros } from '../domain/instant.ts';
import { bigIntOf, decimalOf, JsonText, type TypedValue } from './typed-rows.ts';

/** One column of a row group as it is stored: a leaf of the schema. */
export interface ParquetLeaf {
  readonly chunk: ColumnMetaData;
  readonly element: SchemaElement;
  /** From the root to the leaf. */
  readonly schemaPath: readonly SchemaTree[];
  /** What becomes of a value once it is decoded; null: nothing. */
  readonly toValue: ((value: unknown) => TypedValue) | null;
}

const dayMs = 86_400_000;

/** Times as text, with the microseconds that a Date does not keep. */
export const parsers = {
  timestampFromMilliseconds: (ms: bigint) => instantOfMicros(Number(ms) * 1_000),
  timestampFromMicroseconds: (micros: bigint) => instantOfMicros(Number(micros)),
  timestampFromNanoseconds: (nanos: bigint) => instantOfMicros(Number(nanos / 1_000n)),
  dateFromDays: (days: number) => new Date(days * dayMs).toISOString().slice(0, 10),
  // TextDecoder would leave out a mark at the beginning of a text.
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && textOf(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && new JsonText(textOf(bytes)),
} as const;

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** More digits behind the point than any number has that could be loaded. */
const MAX_SCALE = 1_000;

/** A decimal is read as it is stored: hyparquet would make a floating-point number of it. */
export function leafOf(chunk: ColumnMetaData, schemaPath: readonly SchemaTree[]): ParquetLeaf {
  const element = schemaPath.at(-1)?.element;
  if (element === undefined) throw new TypeError('a column without a type');
  const isDecimal = element.converted_type === 'DECIMAL' || element.logical_type?.type === 'DECIMAL';
  if (!isDecimal) return { chunk, element, schemaPath, toValue: null };
  const logical = element.logical_type;
  const scale = element.scale ?? (logical?.type === 'DECIMAL' ? logical.scale : 0);
  if (!(Number.isInteger(scale) && scale >= 0 && scale <= MAX_SCALE)) throw new RangeError('a scale');
  const { converted_type: _, logical_type: __, ...stored } = element;
  // As numbers or bytes: bytes would otherwise be taken for text.
  const bytes: SchemaElement =
    element.type === 'BYTE_ARRAY' ? { ...stored, type: 'FIXED_LEN_BYTE_ARRAY' } : stored;
  const toValue = (value: unknown): TypedValue => {
    if (value instanceof Uint8Array) return decimalOf(bigIntOf(value), scale);
    if (typeof value === 'number' || typeof value === 'bigint') return decimalOf(BigInt(value), scale);
    return null;
  };
  return { chunk, element: bytes, schemaPath, toValue };
}
