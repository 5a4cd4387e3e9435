import { MAX_VALUE_BYTES } from '../../base/limits.ts';
import { automaticProperties, type Entity } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import {
  hasTooManyProperties,
  type JsonObject,
  markedNumber,
  type ParsedJson,
  propertyProblem,
  toByteString,
  tooManyProperties,
  writeJson,
} from '../../formats/json-text.ts';
import { JsonbOrder, KnownName } from './known-names.ts';

/* Cells of one record. `csv-rows.ts` and `json-records.ts` fill them for `row-writer.ts`. */

/** The range of a string excludes its quotes. */
export const kind = {
  /** String that needs no escaping. */
  text: 0,
  /** String from CSV that contains control characters, quotes or backslashes. */
  raw: 1,
  /** String from JSON that contains escapes. */
  escaped: 2,
  number: 3,
  boolean: 4,
  null: 5,
  container: 6,
} as const;

/**
 * The roles from `userId` to `removed` belong to the fields of a record. A record has at most one
 * cell for each field.
 */
export const role = {
  userId: 0,
  companyId: 1,
  metadata: 2,
  kind: 3,
  eventId: 4,
  insertId: 5,
  eventName: 6,
  source: 7,
  time: 8,
  url: 9,
  /**
   * The field `removed` is also a property. A record that contains only an id and `removed: true`
   * is refused.
   */
  removed: 10,
  /** ID of a user, in a load of companies. */
  userOfCompany: 11,
  /** Property that callers cannot set. */
  automatic: 12,
  property: 13,
  ignored: 14,
  /** Profiles that a preset derived from a record. See `profilesKey`. */
  profiles: 15,
} as const;
export const fieldCount = role.removed + 1;

const fieldNames = {
  user_id: role.userId,
  company_id: role.companyId,
  metadata: role.metadata,
  event_type: role.kind,
  event_id: role.eventId,
  insert_id: role.insertId,
  event_name: role.eventName,
  source: role.source,
  inserted_at: role.time,
  url: role.url,
  removed: role.removed,
} as const;

export const roleNames: ReadonlyMap<string, number> = new Map<string, number>([
  ...Object.entries(fieldNames),
  ...automaticProperties.map((name) => [name, role.automatic] as const),
]);

const initialCells = 1024;

export class CellList {
  bytes: Buffer = Buffer.alloc(0);
  count = 0;
  names: KnownName[] = [];
  starts: Int32Array = new Int32Array(initialCells);
  ends: Int32Array = new Int32Array(initialCells);
  kinds: Uint8Array = new Uint8Array(initialCells);
  /** Indexes of the cells in jsonb's order. `null` if the cells stay in the order of the record. */
  order: Int32Array | null = null;
  /**
   * True if the cells are from CSV. An empty cell then has no value, and types are detected only in
   * sampled records.
   */
  isCsv = false;
  readonly #order = new JsonbOrder();

  text(cell: number): string {
    const text = this.bytes.toString('latin1', this.starts[cell], this.ends[cell]);
    return this.kinds[cell] === kind.escaped ? String(JSON.parse(`"${text}"`)) : text;
  }

  isNothing(cell: number): boolean {
    return this.isCsv ? this.starts[cell] === this.ends[cell] : this.kinds[cell] === kind.null;
  }

  add(name: KnownName, start: number, end: number, cellKind: number): void {
    const cell = this.count++;
    if (cell >= this.starts.length) this.#grow();
    this.names[cell] = name;
    this.starts[cell] = start;
    this.ends[cell] = end;
    this.kinds[cell] = cellKind;
  }

  sort(): void {
    this.order = this.#order.of(this.names, this.count);
  }

  /** Maximum number of bytes that these cells need in COPY text, which doubles each backslash. */
  get size(): number {
    let size = 2 * this.bytes.length;
    for (let cell = 0; cell < this.count; cell++) size += (this.names[cell]?.prefix.length ?? 0) + 3;
    return size;
  }

  /**
   * Moves all cells to a new buffer. Returns the number of bytes by which they can grow in COPY
   * text.
   */
  rewrite(texts: ReadonlyMap<number, string>): number {
    const parts: Buffer[] = [];
    let at = 0;
    let added = 0;
    for (let cell = 0; cell < this.count; cell++) {
      const text = texts.get(cell);
      const part =
        text === undefined ? this.bytes.subarray(this.starts[cell], this.ends[cell]) : Buffer.from(text);
      if (text !== undefined) added += 2 * part.length;
      parts.push(part);
      this.starts[cell] = at;
      at += part.length;
      this.ends[cell] = at;
    }
    this.bytes = Buffer.concat(parts);
    return added;
  }

  #grow(): void {
    const [starts, ends, kinds] = [this.starts, this.ends, this.kinds];
    this.starts = new Int32Array(2 * starts.length);
    this.ends = new Int32Array(2 * starts.length);
    this.kinds = new Uint8Array(2 * starts.length);
    this.starts.set(starts);
    this.ends.set(ends);
    this.kinds.set(kinds);
  }
}

/** `metadata` contains the cells of the object in the field `metadata`. */
export class RecordCells {
  readonly own: CellList;
  readonly metadata = new CellList();
  /** Index of each field's cell in `own`, or -1. */
  readonly fields = new Int32Array(fieldCount).fill(-1);
  /** Maximum number of bytes that the record needs in COPY text. */
  size = 0;
  problem: Reason | null = null;
  hasKind = false;
  /** Flags of the row. `UNCOUNTED` marks an additional row, such as a company of a user. */
  flags = 0;
  entity: Entity | null = null;
  /** Properties in the `url` of an event. `null` if `url` is missing or is not a string. */
  page: Record<string, unknown> | null = null;
  /** Findings of the judge. `null` until the judge has seen this record. */
  found: unknown = null;

  constructor(own = new CellList()) {
    this.own = own;
  }

  reset(): void {
    this.own.count = 0;
    this.metadata.count = 0;
    this.fields.fill(-1);
    this.size = 0;
    this.problem = null;
    this.flags = 0;
    this.entity = null;
    this.found = null;
  }

  /** Finds the cell of each field. Must be called after all cells have been added. */
  findFields(): void {
    const { own, metadata } = this;
    for (let cell = 0; cell < own.count; cell++) {
      const field = own.names[cell]?.role ?? role.property;
      if (field < fieldCount) this.fields[field] = cell;
    }
    this.size = own.size + metadata.size;
  }

  has(field: number): boolean {
    const cell = this.fields[field] ?? -1;
    return cell !== -1 && !this.own.isNothing(cell);
  }
}

export interface Source extends ParsedJson {
  /**
   * Length of the text in bytes. If the text is short, the lengths of its values need not be
   * measured.
   */
  readonly length: number;
}

const maxNames = 2_048;

/** Adds the members of parsed objects to lists of cells. */
export class CellFiller {
  dropped = 0;
  readonly #names = new Map<string, KnownName>();
  readonly #roleOf: (name: string) => number;

  constructor(roleOf: (name: string) => number) {
    this.#roleOf = roleOf;
  }

  /**
   * Adds the members of `object` to `list`. `path` is the path of `object` in the record. If a
   * property is refused, returns the reason.
   */
  fill(list: CellList, object: JsonObject, source: Source, path: string): Reason | null {
    let problem = hasTooManyProperties(object, source.length) ? tooManyProperties(path) : null;
    const before = list.count === 0 ? Buffer.alloc(0) : list.bytes;
    let json = '';
    let at = before.length;
    for (const name in object) {
      const value = object[name];
      if (value === undefined) continue;
      if (name === '') {
        this.dropped++;
        continue;
      }
      const knownName = this.#nameOf(name);
      if (knownName.role >= role.removed) {
        problem ??= propertyProblem(name, value, source, path, source.length > MAX_VALUE_BYTES);
        if (problem !== null) continue;
      }
      const text = textOf(value, source);
      const end = at + Buffer.byteLength(text);
      list.add(knownName, at, end, kindOf(value, text));
      json += text;
      at = end;
    }
    list.bytes = before.length === 0 ? Buffer.from(json) : Buffer.concat([before, Buffer.from(json)]);
    list.sort();
    return problem;
  }

  #nameOf(name: string): KnownName {
    let knownName = this.#names.get(name);
    if (knownName !== undefined) return knownName;
    if (this.#names.size === maxNames) this.#names.clear();
    knownName = new KnownName(toByteString(name), this.#roleOf(name));
    this.#names.set(name, knownName);
    return knownName;
  }
}

const notPlain = /["\\\p{Cc}\p{Cs}]/u;

/** Returns `value` as JSON, but without the quotes of a string. */
export function textOf(value: unknown, { marked }: Pick<ParsedJson, 'marked'>): string {
  if (typeof value !== 'string') return typeof value === 'object' ? writeJson(value, marked) : String(value);
  return notPlain.test(value) ? (markedNumber(value) ?? JSON.stringify(value).slice(1, -1)) : value;
}

export function kindOf(value: unknown, text: string): number {
  if (value === null) return kind.null;
  if (typeof value === 'number') return kind.number;
  if (typeof value === 'boolean') return kind.boolean;
  if (typeof value === 'object') return kind.container;
  if (text === value) return kind.text;
  return markedNumber(value) === null ? kind.escaped : kind.number;
}

const { userOfCompany, eventId, insertId, eventName, source, time, url, removed, automatic, property } = role;

/*
 * A shape has one value per role: 1 if cells with this role become properties of a row, or 0.
 */
export const ofProfile = shape(
  removed,
  userOfCompany,
  eventId,
  insertId,
  eventName,
  source,
  time,
  url,
  property,
);
/** Shape for a profile whose record states its kind. */
export const ofStatedProfile = shape(removed, url, property);
export const ofEvent = shape(removed, automatic, property);
/** Shape for an event whose `url` is not a string and becomes a property. */
export const ofEventWithUrl = shape(removed, automatic, property, url);

function shape(...roles: readonly number[]): Uint8Array {
  const shape = new Uint8Array(Object.keys(role).length);
  for (const each of roles) shape[each] = 1;
  return shape;
}
