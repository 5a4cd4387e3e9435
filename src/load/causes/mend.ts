import { isRecordKind } from '../../domain/entity.ts';
import { type Reject, type RejectCode, rejectKey } from '../../domain/reject.ts';
import { type CsvDialect, plainDialect } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject, type JsonObject } from '../../mapping/json-object.ts';
import { RefusedCsv } from '../rejects-text.ts';

/**
 * A way to make refused records acceptable. It says what a record was meant to be, and nothing of whether a load would take that:
 * the loader is asked. Null from any of its functions: the record is not one that it mends.
 */
export interface Mend {
  /** Stable: it is part of the id of a proposal. */
  readonly name: string;
  /** The effect in words, after the pattern `read as day first`. */
  readonly sentence: string;
  readonly codes: readonly RejectCode[];
  /** It may be wrong, and nothing in the record would show it. */
  readonly isGuess?: true;
  /** The value in the column at fault; empty: there is none. */
  readonly value?: (text: string) => string | null;
  /** The same, of JSON, where it is no text. */
  readonly json?: (value: unknown) => unknown;
  /** The cells of a record of CSV, as they are meant. `row`: its number. */
  readonly cells?: (raw: Buffer, readings: CsvReadings, row: number) => readonly string[] | null;
  /** The text of a record of JSON. */
  readonly text?: (text: string) => string | null;
  /** A record of JSON, changed in its place. */
  readonly object?: (record: JsonObject, column: string | null, map: RefusedSource['columnMap']) => boolean;
  /** The bytes of a record of either, as text. */
  readonly bytes?: (raw: Buffer) => string | null;
}

/** Reads refused records of one CSV as its header has it, and in other dialects. */
export class CsvReadings {
  readonly #header: CsvHeader;
  readonly #own: RefusedCsv;
  readonly #others = new Map<string, RefusedCsv>();

  constructor(header: CsvHeader) {
    this.#header = header;
    this.#own = new RefusedCsv(header);
  }

  get columns(): number {
    return this.#header.columns.length;
  }

  /** -1: there is none of that name. */
  columnAt(name: string): number {
    return this.#header.columns.indexOf(name);
  }

  get dialect(): CsvDialect {
    return this.#header.dialect ?? plainDialect(this.#header);
  }

  /** The cells of a record that fits the columns. */
  own(raw: Buffer): string[] | null {
    return this.#own.split(raw)?.map(({ text }) => text) ?? null;
  }

  /** All cells of a record, however many they are. */
  all(raw: Buffer): string[] | null {
    return this.#own.allCells(raw);
  }

  /** The cells of a record that fits the columns if it is written so. */
  as(raw: Buffer, change: Partial<CsvDialect>): string[] | null {
    const key = JSON.stringify(change);
    let records = this.#others.get(key);
    if (records === undefined) {
      const dialect = { ...this.dialect, ...change };
      records = new RefusedCsv({ columns: this.#header.columns, delimiter: ',', dialect });
      this.#others.set(key, records);
    }
    return records.split(raw)?.map(({ text }) => text) ?? null;
  }
}

/** The facts about a load that explain its refused records. */
export interface RefusedSource {
  /** The header; null for NDJSON. */
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
}

/** Reads the value of the column at fault; undefined if it is missing or the record cannot be read. */
export type ValueReader = (reject: Reject) => unknown;

export function createValueReader({ header, columnMap }: RefusedSource): ValueReader {
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

/** The column that a reason names, by its own name or by ours; -1 if there is none. */
export function columnOf({ columns }: CsvHeader, map: RefusedSource['columnMap'], name: string): number {
  const own = columns.indexOf(name);
  if (own !== -1) return own;
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

/** Keys that lead to what a reason names; null if it is not there. */
export function pathOf(
  object: JsonObject,
  name: string,
  map: RefusedSource['columnMap'] = {},
): string[] | null {
  const path: string[] = [];
  let [within, rest]: [unknown, string] = [object, name];
  for (;;) {
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

const eventNames: ReadonlySet<string> = new Set(['event', 'eventname', 'eventtitle', 'eventaction']);
const userNames: ReadonlySet<string> = new Set([
  'userid',
  'uid',
  'distinctid',
  'customerid',
  'memberid',
  'externalid',
]);
const companyNames: ReadonlySet<string> = new Set([
  'companyid',
  'accountid',
  'organizationid',
  'organisationid',
  'orgid',
]);

/** The key that stands in for one that a record of JSON lacks; null unless exactly one does. */
export function otherName(
  record: JsonObject,
  lacking: string | null,
): { theirs: string; ours: string } | null {
  const wanted = lacking === 'event_name' ? [['event_name', eventNames] as const] : idNames(lacking);
  for (const [ours, names] of wanted) {
    const found = Object.keys(record).filter(
      (key) =>
        key !== ours && key !== rejectKey && names.has(key.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')),
    );
    const [theirs] = found;
    if (found.length === 1 && theirs !== undefined && isText(record[theirs])) return { theirs, ours };
  }
  return null;
}

function idNames(lacking: string | null) {
  const users = ['user_id', userNames] as const;
  const companies = ['company_id', companyNames] as const;
  if (lacking === 'user_id') return [users];
  return lacking === 'company_id' ? [companies] : [users, companies];
}

function isText(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && value !== '');
}

/** Returns the probable meaning of an `event_type` in other letters; null if there is none. */
export function likelyKind(text: string): string | null {
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
