/**
 * Writes Avro files, which Iceberg uses for manifests.
 * https://avro.apache.org/docs/1.12.0/specification/
 */
import { createHash } from 'node:crypto';

export type AvroSchema =
  | 'boolean'
  | 'bytes'
  | 'int'
  | 'long'
  | 'string'
  | readonly ['null', AvroSchema]
  | { readonly type: 'array'; readonly items: AvroSchema }
  | AvroRecord;

export interface AvroRecord {
  readonly type: 'record';
  readonly name: string;
  readonly fields: readonly AvroField[];
}

export interface AvroField {
  readonly name: string;
  readonly type: AvroSchema;
  readonly 'field-id': number;
}

export function writeAvro(
  schema: AvroRecord,
  about: Readonly<Record<string, string>>,
  rows: readonly object[],
): Buffer {
  const text = Object.entries({
    'avro.schema': JSON.stringify(schema),
    'avro.codec': 'null',
    ...about,
  });
  const header = [long(text.length), ...text.flat().map((entry) => sized(Buffer.from(entry))), long(0)];
  const body = Buffer.concat(rows.map((row) => encode(schema, row)));
  const marker = createHash('sha256').update(JSON.stringify(text)).update(body).digest().subarray(0, 16);
  const block = rows.length === 0 ? [] : [long(rows.length), sized(body), marker];
  return Buffer.concat([Buffer.from('Obj\x01', 'latin1'), ...header, marker, ...block]);
}

function encode(schema: AvroSchema, value: unknown): Buffer {
  if (typeof schema === 'string') return encodePlain[schema](value as never);
  if (!('type' in schema)) {
    return value === null ? long(0) : Buffer.concat([long(1), encode(schema[1], value)]);
  }
  if (schema.type === 'record') {
    const members = value as Readonly<Record<string, unknown>>;
    return Buffer.concat(schema.fields.map(({ name, type }) => encode(type, members[name] ?? null)));
  }
  const items = (value as readonly unknown[]).map((item) => encode(schema.items, item));
  return Buffer.concat([...(items.length === 0 ? [] : [long(items.length)]), ...items, long(0)]);
}

const encodePlain = {
  boolean: (value: boolean) => Buffer.from([Number(value)]),
  bytes: (value: Buffer) => sized(value),
  int: (value: number) => long(value),
  long: (value: number) => long(value),
  string: (value: string) => sized(Buffer.from(value)),
} as const;

function sized(bytes: Buffer): Buffer {
  return Buffer.concat([long(bytes.length), bytes]);
}

/** Encodes an integer in zigzag form, with seven bits per byte. */
function long(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value) < 0n ? ~(BigInt(value) << 1n) : BigInt(value) << 1n);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
