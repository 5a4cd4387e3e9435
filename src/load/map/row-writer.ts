import type { Instant } from '../../base/instant.ts';
import {
  type Entity,
  type EventKind,
  IMPORT_SOURCE,
  idColumn,
  isEventKind,
  type LoadEntity,
  type PropertyEntity,
  type RecordKind,
  recordKinds,
} from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import {
  escapeCopy,
  escapeCopyJson,
  fromByteString,
  plainNumber,
  wholeNumber,
} from '../../formats/json-text.ts';
import { SAMPLED_ROWS } from '../limits.ts';
import {
  type CellList,
  kind as cellKind,
  copyJson,
  copyPlain,
  type RecordCells,
  role,
  SHORT_BYTES,
} from './cells.ts';
import { EventRow, instantChars } from './event-buffer.ts';
import {
  differentEventIds,
  eventNameProblem,
  eventSourceProblem,
  kindProblem,
  splitUrl,
} from './event-checks.ts';
import type { KnownName } from './known-names.ts';
import { NESTED, REMOVES, UNCOUNTED } from './row-buffer.ts';
import { idLengthProblem, missingId, notAnId, type Rows, textProblem } from './rows.ts';

const TAB = 9;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const CAPITAL_N = 0x4e;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const DELETE = 0x7f;
/** Bytes of TABs, braces and the defaults of kind, name and source. */
const rowOverhead = 128;
/** A whole number of up to this many digits is exact as a JavaScript number. */
const MAX_ID_DIGITS = 15;
const importSource = Buffer.from(IMPORT_SOURCE);
const kindTexts = recordKinds.map((kind) => Buffer.from(kind));

/** 1 for the roles that are properties. In `ofEventWithUrl` the `url` is not text. */
const { userOfCompany, eventId, insertId, eventName, source, time, url, removed, automatic, property } = role;
const ofProfile = shape(removed, userOfCompany, eventId, insertId, eventName, source, time, url, property);
const ofSaidProfile = shape(removed, url, property);
const ofEvent = shape(removed, automatic, property);
const ofEventWithUrl = shape(removed, automatic, property, url);

function shape(...roles: readonly number[]): Uint8Array {
  const shape = new Uint8Array(Object.keys(role).length);
  for (const each of roles) shape[each] = 1;
  return shape;
}

type LengthProblem = (bytes: number, column: string) => Reason | null;

/** Writes a record of any format as a row of COPY text. Only `endRow` adds the row. */
export class RowWriter {
  readonly #entity: LoadEntity;
  readonly #rows: Rows;
  readonly #event = new EventRow();
  readonly #sampled: Record<PropertyEntity, number> = { users: 0, companies: 0, events: 0 };
  #target: Buffer = Buffer.alloc(0);
  #to = 0;
  /** `REMOVES` and `NESTED`, for the properties of the row. */
  #flags = 0;
  /** Whether `check` runs, which ends no row. */
  #isTrial = false;

  constructor(entity: LoadEntity, rows: Rows) {
    this.#entity = entity;
    this.#rows = rows;
  }

  /** Call it before each chunk. */
  reset(): void {
    for (const entity of ['users', 'companies', 'events'] as const) this.#sampled[entity] = 0;
  }

  check(cells: RecordCells, record: number): Reason | null {
    this.#isTrial = true;
    const reason = this.write(cells, record);
    this.#isTrial = false;
    return reason;
  }

  /** Returns why the record, by its number in the chunk, cannot become a row, or `null`. */
  write(cells: RecordCells, record: number): Reason | null {
    if (cells.entity !== null) return this.#writeProfile(cells, cells.entity, ofProfile, record);
    if (cells.saysKind || cells.has(role.kind)) return this.#writeKind(cells, record);
    const entity = this.#entity === 'auto' ? entityOf(cells) : this.#entity;
    return entity === null ? neitherId : this.#writeProfile(cells, entity, ofProfile, record);
  }

  #writeKind(cells: RecordCells, record: number): Reason | null {
    const kind = kindOf(cells);
    const isCounted = (cells.flags & UNCOUNTED) === 0;
    if (kind !== null && isCounted) this.#rows.kinds.set(record, kind);
    if (kind === null || (isCounted && this.#entity !== 'auto')) {
      const cell = cells.fields[role.kind] ?? -1;
      const problem = kindProblem(kind, this.#entity, cell === -1 ? '' : cells.own.text(cell));
      if (problem !== null || kind === null) return problem;
    }
    if (isEventKind(kind)) return this.#writeEvent(cells, kind, record);
    const entity = kind === 'identify_user' ? 'users' : 'companies';
    return this.#writeProfile(cells, entity, ofSaidProfile, record);
  }

  #writeProfile(cells: RecordCells, entity: Entity, shape: Uint8Array, record: number): Reason | null {
    const out = this.#rows[entity];
    const { keepsExisting } = this.#rows;
    if (cells.has(role.removed) && isTombstone(cells, entity, shape)) return removesProfile;
    const broken = this.#judge(cells, entity, shape);
    if (broken !== null) return broken;
    out.reserve(cells.size + rowOverhead);
    this.#target = out.bytes;
    this.#to = out.at;
    const instant = shape === ofSaidProfile ? this.#readTime(cells) : null;
    if (instant !== null && 'code' in instant) return instant;
    const isUser = entity === 'users';
    const column = idColumn[entity];
    const id = isUser ? role.userId : role.companyId;
    const problem = this.#writeRequired(cells, id, column);
    if (problem !== null) return problem;
    const keyEnd = this.#to;
    this.#target[this.#to++] = TAB;
    this.#writeProperties(cells, shape, '', keepsExisting);
    const propertyEnd = this.#to - 1;
    this.#target[this.#to++] = TAB;
    const leaves =
      !keepsExisting && isUser && !cells.own.isCsv && (cells.fields[role.companyId] ?? -1) !== -1;
    if (isUser && cells.has(role.companyId)) {
      const companyProblem = this.#writeId(cells, role.companyId, 'company_id');
      if (companyProblem !== null) return companyProblem;
    } else if (leaves) this.#flags |= REMOVES;
    else this.#writeNull();
    if (cells.problem !== null || this.#isTrial) return cells.problem;
    const flags = this.#flags | cells.flags;
    if ((flags & UNCOUNTED) !== 0) this.#rows.digests.refuse(record);
    const start = out.at;
    out.at = this.#to;
    out.endRow(start, keyEnd, propertyEnd, this.#to, record, flags);
    this.#noteTypes(cells, entity, shape);
    this.#rows.stage?.count(cells);
    return null;
  }

  #judge(
    cells: RecordCells,
    entity: PropertyEntity,
    shape: Uint8Array,
    kind: EventKind | null = null,
  ): Reason | null {
    const { stage } = this.#rows;
    if (stage === null) return null;
    const name = () => (this.#isBlankName(cells) ? String(kind) : this.#textOf(cells, role.eventName));
    return stage.judgeCells(entity, cells, shape, kind === null ? null : name);
  }

  #writeEvent(cells: RecordCells, kind: EventKind, record: number): Reason | null {
    const { events, types } = this.#rows;
    if (cells.found === null) cells.page = pageOf(cells);
    const shape = cells.page === null ? ofEventWithUrl : ofEvent;
    const broken = this.#judge(cells, 'events', shape, kind);
    if (broken !== null) return broken;
    const address = cells.page;
    const page = address === null ? '' : escapeCopyJson(JSON.stringify(address).slice(1, -1));
    this.#to = events.startRow(cells.size + page.length + rowOverhead);
    this.#target = events.bytes;
    this.#event.record = record;
    this.#event.kind = kind;
    const problem = this.#writeFields(cells, kind) ?? cells.problem;
    if (problem !== null) return problem;
    this.#target[this.#to++] = TAB;
    this.#writeProperties(cells, shape, page);
    if (this.#isTrial) return null;
    events.endRow(this.#event, this.#to);
    for (const name in address ?? {}) types.events.note(name, 'string');
    this.#noteTypes(cells, 'events', shape);
    this.#rows.stage?.count(cells);
    return null;
  }

  #writeFields(cells: RecordCells, kind: EventKind): Reason | null {
    // The row begins with the user, but the problems of id and name are reported first.
    const problem = this.#writeRequired(cells, role.userId, 'user_id');
    this.#target[this.#to++] = TAB;
    return (
      this.#writeEventId(cells) ??
      this.#writeName(cells, kind) ??
      problem ??
      this.#writeCompanyAndSource(cells) ??
      this.#writeTime(cells)
    );
  }

  #writeEventId(cells: RecordCells): Reason | null {
    const hasBoth = cells.has(role.eventId) && cells.has(role.insertId);
    if (hasBoth && this.#textOf(cells, role.eventId) !== this.#textOf(cells, role.insertId))
      return differentEventIds;
    const which = cells.has(role.eventId) ? role.eventId : role.insertId;
    const column = which === role.eventId ? 'event_id' : 'insert_id';
    this.#event.hasId = cells.has(which);
    const problem = this.#event.hasId ? this.#writeId(cells, which, column) : null;
    if (!this.#event.hasId) this.#to = this.#rows.events.reserveId(this.#to);
    this.#event.idEnd = this.#to;
    return problem;
  }

  #writeName(cells: RecordCells, kind: EventKind): Reason | null {
    this.#target[this.#to++] = TAB;
    this.#to += this.#target.write(kind, this.#to, 'latin1');
    this.#target[this.#to++] = TAB;
    this.#event.nameStart = this.#to;
    let problem: Reason | null = null;
    if (!this.#isBlankName(cells))
      problem = this.#writeText(cells, role.eventName, 'event_name', eventNameProblem);
    else if (kind === 'track') problem = eventNameProblem(0);
    else this.#to += this.#target.write(kind, this.#to, 'latin1');
    this.#event.nameEnd = this.#to;
    return problem;
  }

  #isBlankName(cells: RecordCells): boolean {
    const { own, fields } = cells;
    const cell = fields[role.eventName] ?? -1;
    const isEmpty = !cells.has(role.eventName) || own.starts[cell] === own.ends[cell];
    return isEmpty || this.#isBlank(cells, role.eventName);
  }

  #writeCompanyAndSource(cells: RecordCells): Reason | null {
    this.#target[this.#to++] = TAB;
    if (cells.has(role.companyId)) {
      const problem = this.#writeId(cells, role.companyId, 'company_id');
      if (problem !== null) return problem;
    } else this.#writeNull();
    this.#target[this.#to++] = TAB;
    const start = this.#to;
    const problem = cells.has(role.source)
      ? this.#writeText(cells, role.source, 'source', eventSourceProblem)
      : null;
    if (this.#to === start) this.#to += importSource.copy(this.#target, this.#to);
    return problem;
  }

  #writeTime(cells: RecordCells): Reason | null {
    const { times } = this.#rows;
    const event = this.#event;
    this.#target[this.#to++] = TAB;
    const start = this.#to;
    this.#to += instantChars;
    event.timeStart = start;
    event.ms = null;
    if (!cells.has(role.time)) return null;
    const cell = cells.fields[role.time] ?? -1;
    const { bytes, starts, ends, kinds } = cells.own;
    if (kinds[cell] === cellKind.text) {
      event.ms = times.copy(bytes, starts[cell] ?? 0, ends[cell] ?? 0, this.#target, start);
      if (times.isAllowed(event.ms)) return null;
    }
    const instant = this.#readTime(cells);
    if (instant === null || 'code' in instant) return instant;
    this.#target.write(instant.text, start, 'latin1');
    event.ms = instant.ms;
    return null;
  }

  #readTime(cells: RecordCells): Instant | Reason | null {
    if (!cells.has(role.time)) return null;
    const is = cells.own.kinds[cells.fields[role.time] ?? -1] ?? 0;
    return this.#rows.times.read(is <= cellKind.number ? this.#textOf(cells, role.time) : '', 'inserted_at');
  }

  #writeRequired(cells: RecordCells, field: number, column: string): Reason | null {
    const cell = cells.fields[field] ?? -1;
    if (cell === -1 || cells.own.kinds[cell] === cellKind.null) return missingId(column);
    return this.#writeId(cells, field, column);
  }

  #writeId(cells: RecordCells, field: number, column: string): Reason | null {
    if (this.#isNoId(cells, field)) return notAnId(column);
    return this.#isBlank(cells, field)
      ? idLengthProblem(0, column)
      : this.#writeText(cells, field, column, idLengthProblem);
  }

  #isNoId(cells: RecordCells, field: number): boolean {
    const { kinds, bytes, starts, ends } = cells.own;
    const cell = cells.fields[field] ?? -1;
    const kind = kinds[cell] ?? 0;
    if (kind !== cellKind.number) return kind > cellKind.number;
    if (isWhole(bytes, starts[cell] ?? 0, ends[cell] ?? 0)) return false;
    return !wholeNumber.test(this.#textOf(cells, field));
  }

  /** Tells whether a text is only white space. The first byte decides for most. */
  #isBlank(cells: RecordCells, field: number): boolean {
    const { own } = cells;
    const byte = own.bytes[own.starts[cells.fields[field] ?? -1] ?? 0] ?? 0;
    if (byte > SPACE && byte < DELETE && byte !== BACKSLASH) return false;
    return fromByteString(this.#textOf(cells, field)).trim() === '';
  }

  /** Writes a text, or a number as text, whose length `problemOf` accepts. */
  #writeText(cells: RecordCells, field: number, column: string, problemOf: LengthProblem): Reason | null {
    const { own } = cells;
    const cell = cells.fields[field] ?? -1;
    const is = own.kinds[cell] ?? 0;
    const start = own.starts[cell] ?? 0;
    const end = own.ends[cell] ?? 0;
    if (is === cellKind.text || (is === cellKind.number && isWhole(own.bytes, start, end))) {
      this.#to = copyPlain(own.bytes, start, end, this.#target, this.#to);
      return problemOf(end - start, column);
    }
    if (is > cellKind.number)
      return { code: 'invalid_id', message: `${column} must be a string or a number`, column };
    const text = this.#textOf(cells, field);
    const problem = textProblem(text, column);
    if (problem !== null) return problem;
    this.#to += this.#target.write(escapeCopy(text), this.#to, 'latin1');
    return problemOf(text.length, column);
  }

  /** Returns a byte string. */
  #textOf({ own, fields }: RecordCells, field: number): string {
    const cell = fields[field] ?? -1;
    const text = own.text(cell);
    return own.kinds[cell] === cellKind.number ? plainNumber(text) : text;
  }

  #writeNull(): void {
    this.#target[this.#to++] = BACKSLASH;
    this.#target[this.#to++] = CAPITAL_N;
  }

  /** jsonb keeps the last value of a name: `metadata` wins over cells, cells over `page`. */
  #writeProperties(cells: RecordCells, shape: Uint8Array, page: string, leavesNulls = false): void {
    this.#flags = 0;
    this.#target[this.#to++] = OPEN;
    const first = this.#to;
    if (page !== '') this.#to += this.#target.write(page, this.#to, 'latin1');
    this.#writeList(cells.own, shape, first, leavesNulls);
    if (cells.metadata.count > 0) this.#writeList(cells.metadata, shape, first, leavesNulls);
    this.#target[this.#to++] = CLOSE;
  }

  #writeList(list: CellList, shape: Uint8Array, first: number, leavesNulls: boolean): void {
    const { count, names, starts, ends, kinds, order, isCsv, bytes } = list;
    const target = this.#target;
    let to = this.#to;
    for (let number = 0; number < count; number++) {
      const cell = order === null ? number : (order[number] as number);
      const { role, prefix } = names[cell] as KnownName;
      if (shape[role] === 0) continue;
      let from = starts[cell] as number;
      const end = ends[cell] as number;
      const is = kinds[cell] as number;
      if (isCsv && from === end) continue;
      if (leavesNulls && is === cellKind.null) continue;
      if (to !== first) target[to++] = COMMA;
      for (let at = 0; at < prefix.length; at++) target[to++] = prefix[at] as number;
      if (is !== cellKind.text || end - from > SHORT_BYTES) {
        if (is === cellKind.null) this.#flags |= REMOVES;
        else if (is === cellKind.container) this.#flags |= NESTED;
        to = copyJson(list, cell, target, to);
        continue;
      }
      target[to++] = QUOTE;
      for (; from < end; from++) target[to++] = bytes[from] as number;
      target[to++] = QUOTE;
    }
    this.#to = to;
  }

  #noteTypes(cells: RecordCells, entity: PropertyEntity, shape: Uint8Array): void {
    if (!cells.own.isCsv || this.#sampled[entity]++ < SAMPLED_ROWS) this.#noteList(cells.own, entity, shape);
    this.#noteList(cells.metadata, entity, shape);
  }

  #noteList(list: CellList, entity: PropertyEntity, shape: Uint8Array): void {
    const types = this.#rows.types[entity];
    for (let cell = 0; cell < list.count; cell++) {
      const name = list.names[cell];
      if (name === undefined || shape[name.role] === 0) continue;
      if (!list.isCsv || !list.isNothing(cell)) types.noteCell(name.text, list, cell);
    }
  }

  /** Notes the types of a skipped record of a profile, as `write` would. */
  sample(cells: RecordCells, entity: Entity): void {
    this.#judge(cells, entity, ofProfile);
    this.#noteTypes(cells, entity, ofProfile);
  }

  /** Adds the columns that had no cell in the sample: later records may have one. */
  finishCsv({ names }: CellList): void {
    for (const entity of ['users', 'companies', 'events'] as const) {
      if (this.#sampled[entity] <= SAMPLED_ROWS) continue;
      const shape = entity === 'events' ? ofEvent : ofProfile;
      for (const { role, text } of names) if (shape[role] === 1) this.#rows.types[entity].addColumn(text);
    }
  }
}

function entityOf({ fields }: RecordCells): Entity | null {
  if (fields[role.userId] !== -1) return 'users';
  return fields[role.companyId] === -1 ? null : 'companies';
}

function kindOf({ own, fields }: RecordCells): RecordKind | null {
  const cell = fields[role.kind] ?? -1;
  if (cell === -1 || (own.kinds[cell] ?? 0) > cellKind.escaped) return null;
  const { bytes } = own;
  const start = own.starts[cell] ?? 0;
  const length = (own.ends[cell] ?? 0) - start;
  for (let kind = 0; kind < kindTexts.length; kind++) {
    const text = kindTexts[kind];
    if (text === undefined || text.length !== length) continue;
    let at = 0;
    while (at < length && text[at] === bytes[start + at]) at++;
    if (at === length) return recordKinds[kind] ?? null;
  }
  return null;
}

function pageOf(cells: RecordCells): Readonly<Record<string, string>> | null {
  const cell = cells.fields[role.url] ?? -1;
  const isText = cells.has(role.url) && (cells.own.kinds[cell] ?? 0) <= cellKind.escaped;
  return isText ? splitUrl(cells.own.text(cell)) : null;
}

function isWhole(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < ZERO || byte > NINE) return false;
  }
  return end - start <= MAX_ID_DIGITS;
}

function says(list: CellList, shape: Uint8Array): boolean {
  for (let cell = 0; cell < list.count; cell++) {
    const { role: of } = list.names[cell] as KnownName;
    if (shape[of] === 1 && of !== removed && !list.isNothing(cell)) return true;
  }
  return false;
}

/** Tells whether the record has only its id and `removed: true`, as exports write it. */
function isTombstone(cells: RecordCells, entity: Entity, shape: Uint8Array): boolean {
  const { own, metadata } = cells;
  const cell = cells.fields[role.removed] ?? -1;
  const isText = own.isCsv || own.kinds[cell] === cellKind.boolean;
  if (!isText || own.text(cell).toLowerCase() !== 'true') return false;
  const saysMore =
    says(own, shape) || says(metadata, shape) || (entity === 'users' && cells.has(role.companyId));
  return !saysMore;
}

const removesProfile: Reason = {
  code: 'unsupported_kind',
  message: 'a file does not remove profiles: delete them by ID, or name the property metadata.removed',
  column: 'removed',
};

const neitherId: Reason = {
  code: 'missing_id',
  message: 'the record has neither user_id nor company_id',
  column: null,
};
