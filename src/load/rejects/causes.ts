import { createHash } from 'node:crypto';
import { isRecordKind } from '../../domain/entity.ts';
import {
  type CauseKey,
  causeColumn,
  causeDigits,
  emptyShape,
  outlineOf,
  type Reject,
  type RejectCause,
  shapeOf,
} from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject, type JsonObject } from '../../formats/json-text.ts';
import { RefusedCsv } from './text.ts';

const maxKnownCauses = 1_000;
/** Number of bytes that are used from each end of a long record. */
const outlineBytes = 64;

export class RejectCauses {
  readonly #csv: RefusedCsv | null;
  readonly #columns: number;
  readonly #valueOf: ValueReader;
  readonly #known = new Map<string, number>();

  constructor(source: RefusedSource) {
    this.#csv = source.header === null ? null : new RefusedCsv(source.header);
    this.#columns = source.header?.columns.length ?? 0;
    this.#valueOf = createValueReader(source);
  }

  of(reject: Reject): RejectCause {
    const key = { code: reject.code, column: causeColumn(reject), shape: this.#shapeOf(reject) };
    return { cause: this.#numberOf(key), shape: key.shape };
  }

  #numberOf(key: CauseKey): number {
    const text = `${key.code} ${key.shape} ${key.column}`;
    const cached = this.#known.get(text);
    if (cached !== undefined) return cached;
    if (this.#known.size >= maxKnownCauses) this.#known.clear();
    const number = causeNumber(key);
    this.#known.set(text, number);
    return number;
  }

  #shapeOf(reject: Reject): string {
    switch (reject.code) {
      case 'wrong_field_count': {
        const cells = this.#csv?.count(reject) ?? 0;
        return cells === 0
          ? ''
          : `${cells} ${cells === 1 ? 'cell' : 'cells'} where ${this.#columns} are named`;
      }
      case 'invalid_json':
      case 'not_an_object':
        return reject.column === null ? outlineOfRecord(reject.raw) : this.#outlineOfValue(reject);
      case 'missing_id':
      case 'missing_event_name':
        return this.#csv === null ? 'missing' : emptyShape;
      case 'unknown_event_type':
      case 'unexpected_event_row': {
        const value = this.#valueOf(reject);
        return typeof value === 'string' && likelyKind(value) !== null ? value.trim() : shapeOfValue(value);
      }
      case 'invalid_date':
      case 'invalid_type':
        return shapeOfValue(this.#valueOf(reject));
      default:
        return '';
    }
  }

  #outlineOfValue(reject: Reject): string {
    const value = this.#valueOf(reject);
    return typeof value === 'string' ? outlineOf(value) : shapeOfValue(value);
  }
}

function outlineOfRecord(raw: Uint8Array): string {
  const bytes = Buffer.from(raw);
  const text =
    bytes.length <= 2 * outlineBytes
      ? bytes.toString('utf8')
      : `${bytes.toString('utf8', 0, outlineBytes)} ${bytes.toString('utf8', bytes.length - outlineBytes)}`;
  return outlineOf(text);
}

function shapeOfValue(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'string' || typeof value === 'number') return shapeOf(String(value));
  if (Array.isArray(value)) return '[…]';
  return isObject(value) ? '{…}' : String(value);
}

/** The number of a cause is the same in every load. */
function causeNumber({ code, column, shape }: CauseKey): number {
  const text = JSON.stringify([code, column, shape]);
  return Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, causeDigits), 16);
}

export interface RefusedSource {
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
}

/**
 * Returns the value at fault. Returns `undefined` if the value is missing, or if the record cannot
 * be read.
 */
type ValueReader = (reject: Reject) => unknown;

function createValueReader({ header, columnMap }: RefusedSource): ValueReader {
  if (header === null)
    return ({ column, raw }) => valueInText(Buffer.from(raw).toString('utf8'), column, columnMap);
  const records = new RefusedCsv(header);
  const columns = new Map<string, number>();
  return ({ column, raw }) => {
    if (column === null) return undefined;
    const at = columns.get(column) ?? columnOf(header, columnMap, column);
    if (columns.size < header.columns.length) columns.set(column, at);
    return at === -1 ? undefined : (records.cell(Buffer.from(raw), at) ?? undefined);
  };
}

export interface CauseSample {
  readonly reject: Reject;
  /** Value at fault. `null` if there is none, or if the record does not contain it. */
  readonly value: string | null;
}

export function sampleCause(source: RefusedSource, rejects: readonly Reject[]): CauseSample[] {
  const readValue = createValueReader(source);
  return rejects.map((reject) => ({ reject, value: textOf(readValue(reject)) }));
}

function textOf(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Returns the index of the column, or -1 if there is none. For a path such as `metadata.plan`, the
 * column `metadata` also matches.
 */
function columnOf({ columns }: CsvHeader, map: RefusedSource['columnMap'], name: string): number {
  const named = columns.indexOf(name);
  if (named !== -1) return named;
  const mapped = columns.findIndex((column) => Object.hasOwn(map, column) && map[column] === name);
  if (mapped !== -1 || !name.includes('.')) return mapped;
  return columnOf({ columns, delimiter: ',' }, map, name.slice(0, name.indexOf('.')));
}

function valueInText(text: string, column: string | null, map: RefusedSource['columnMap']): unknown {
  try {
    const record: unknown = JSON.parse(text);
    const path = isObject(record) && column !== null ? pathOf(record, column, map) : null;
    return path?.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), record);
  } catch {
    return undefined;
  }
}

/** Keys that lead to the member `name`. `null` if there is no such member. */
function pathOf(object: JsonObject, name: string, map: RefusedSource['columnMap'] = {}): string[] | null {
  const path: string[] = [];
  let within: unknown = object;
  let rest = name;
  while (true) {
    if (!isObject(within)) return null;
    const key = keyOf(within, rest, path.length === 0 ? map : {});
    if (key !== null) return [...path, key];
    const dot = rest.indexOf('.');
    const first: string | null = dot === -1 ? null : keyOf(within, rest.slice(0, dot), {});
    if (first === null) return null;
    path.push(first);
    within = within[first];
    rest = rest.slice(dot + 1);
  }
}

function keyOf(object: JsonObject, name: string, map: RefusedSource['columnMap']): string | null {
  if (Object.hasOwn(object, name)) return name;
  return Object.keys(object).find((key) => Object.hasOwn(map, key) && map[key] === name) ?? null;
}

/** The record kind that `text` spells differently, or `null`. */
function likelyKind(text: string): string | null {
  if (text.length > 40) return null;
  const name = text
    .trim()
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[\s.-]+/g, '_');
  if (isRecordKind(name)) return name;
  const compact = name.replaceAll('_', '');
  return compact === 'pageview' ? 'page_view' : null;
}
