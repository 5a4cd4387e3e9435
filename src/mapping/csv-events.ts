import { type EventKind, IMPORT_SOURCE } from '../domain/entity.ts';
import {
  MAX_EVENT_NAME_BYTES,
  MAX_EVENT_SOURCE_BYTES,
  MAX_ID_BYTES,
  SAMPLED_ROWS,
} from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { type EventFilePlan, inJsonbOrder } from './column-plan.ts';
import { type CsvCells, MAX_ESCAPED_BYTES } from './csv-cells.ts';
import { EventRow, instantChars } from './event-buffer.ts';
import {
  defaultNames,
  differentEventIds,
  eventNameProblem,
  eventSourceProblem,
  splitUrl,
} from './event-record.ts';
import { readJsonObject } from './json-object.ts';
import { escapeCopyJson } from './json-text.ts';
import { ColumnTypes } from './property-types.ts';
import { idLengthProblem, type Rows } from './rows.ts';

const TAB = 9;
const QUOTE = 0x22;
const COMMA = 0x2c;
const CAPITAL_N = 0x4e;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
/** TABs, braces, a kind, a name and a source that the record does not give, and the like. */
const rowOverhead = 128;
const importSource = Buffer.from(IMPORT_SOURCE);

/** The columns of an event file that are not properties; -1 for missing ones. */
export interface EventColumns {
  readonly userId: number;
  readonly companyId: number;
  readonly eventId: number;
  readonly insertId: number;
  readonly name: number;
  readonly source: number;
  readonly time: number;
  readonly metadata: number;
  readonly url: number;
}

export function findEventColumns({ roles }: EventFilePlan): EventColumns {
  return {
    userId: roles.indexOf('user_id'),
    companyId: roles.indexOf('company_id'),
    eventId: roles.indexOf('event_id'),
    insertId: roles.indexOf('insert_id'),
    name: roles.indexOf('event_name'),
    source: roles.indexOf('source'),
    time: roles.indexOf('inserted_at'),
    metadata: roles.indexOf('metadata'),
    url: roles.indexOf('url'),
  };
}

/** Writes events as rows, from the bytes of their cells straight to the text for COPY. */
export class CsvEvents {
  readonly #cells: CsvCells;
  readonly #rows: Rows;
  readonly #at: EventColumns;
  /** Columns that are properties, in jsonb's order; `"name":"` of each, escaped for COPY. */
  readonly #properties: readonly number[];
  readonly #prefixes: readonly Buffer[];
  readonly #fixedBytes: number;
  readonly #types: ColumnTypes;
  readonly #row = new EventRow();
  #sampled = 0;
  /** The buffer of the row, and the position of its next byte. */
  #target: Buffer = Buffer.alloc(0);
  #to = 0;

  constructor(plan: EventFilePlan, cells: CsvCells, rows: Rows) {
    const columns = [...plan.roles.keys()].filter((column) => plan.roles[column] === 'property');
    this.#cells = cells;
    this.#rows = rows;
    this.#at = findEventColumns(plan);
    this.#properties = inJsonbOrder(columns, plan.names);
    this.#prefixes = plan.names.map((name) => Buffer.from(escapeCopyJson(`${JSON.stringify(name)}:"`)));
    this.#fixedBytes = rowOverhead + this.#prefixes.reduce((sum, prefix) => sum + prefix.length + 2, 0);
    this.#types = new ColumnTypes(plan.names, columns);
  }

  reset(): void {
    this.#types.reset();
    this.#sampled = 0;
  }

  /** All events of a chunk were written. */
  finish(): void {
    const { events, types } = this.#rows;
    if (events.rows > 0) this.#types.reportTo(types.events, events.rows > SAMPLED_ROWS);
  }

  /** Writes the record in bytes [start, end), whose cells were found. Null if it became a row. */
  write(bytes: Buffer, start: number, end: number, kind: EventKind, record: number): Reason | null {
    const metadata = this.#readMetadata(bytes);
    if (typeof metadata !== 'string') return metadata;
    const page = this.#readUrl(bytes);
    const { events } = this.#rows;
    const written = (end - start) * MAX_ESCAPED_BYTES + metadata.length + page.length;
    this.#to = events.startRow(written + this.#fixedBytes);
    this.#target = events.bytes;
    this.#row.record = record;
    this.#row.kind = kind;
    const problem = this.#writeFields(bytes, kind);
    if (problem !== null) return problem;
    this.#writeProperties(bytes, page, metadata);
    events.endRow(this.#row, this.#to);
    if (this.#sampled < SAMPLED_ROWS) {
      this.#sampled++;
      this.#types.recordWalked(bytes, start, end, this.#cells);
    }
    return null;
  }

  /** The properties in a cell of JSON, escaped for COPY. */
  #readMetadata(bytes: Buffer): string | Reason {
    const { metadata } = this.#at;
    if (metadata === -1 || this.#cells.isEmpty(metadata)) return '';
    const cell = this.#cells.byteString(bytes, metadata);
    const content = readJsonObject(cell, 'metadata', this.#rows.types.events);
    return 'code' in content ? content : escapeCopyJson(content.text);
  }

  /** Returns the properties that an address holds, escaped for COPY. */
  #readUrl(bytes: Buffer): string {
    const { url } = this.#at;
    if (url === -1 || this.#cells.isEmpty(url)) return '';
    const parts = splitUrl(this.#cells.byteString(bytes, url));
    return escapeCopyJson(JSON.stringify(parts).slice(1, -1));
  }

  #writeFields(bytes: Buffer, kind: EventKind): Reason | null {
    // The user is written first, and what is wrong with it is said in its turn.
    const problem = this.#writeUser(bytes);
    return (
      this.#writeId(bytes) ??
      this.#writeName(bytes, kind) ??
      problem ??
      this.#writeCompany(bytes) ??
      this.#writeSource(bytes) ??
      this.#writeTime(bytes)
    );
  }

  #writeId(bytes: Buffer): Reason | null {
    const { eventId, insertId } = this.#at;
    const [first, second] = [this.#has(eventId), this.#has(insertId)];
    if (first && second && this.#text(bytes, eventId) !== this.#text(bytes, insertId))
      return differentEventIds;
    this.#row.hasId = first || second;
    if (first || second) {
      const problem = this.#writeText(bytes, first ? eventId : insertId, idProblem);
      if (problem !== null) return problem;
    } else this.#to = this.#rows.events.reserveId(this.#to);
    this.#row.idEnd = this.#to;
    return null;
  }

  #writeName(bytes: Buffer, kind: EventKind): Reason | null {
    this.#target[this.#to++] = TAB;
    this.#to += this.#target.write(kind, this.#to, 'latin1');
    this.#target[this.#to++] = TAB;
    this.#row.nameStart = this.#to;
    const name = defaultNames[kind];
    if (this.#has(this.#at.name)) {
      const problem = this.#writeText(bytes, this.#at.name, eventNameProblem);
      if (problem !== null) return problem;
    } else if (name === '') return eventNameProblem(0);
    else this.#to += this.#target.write(name, this.#to, 'latin1');
    this.#row.nameEnd = this.#to;
    return null;
  }

  #writeUser(bytes: Buffer): Reason | null {
    const { userId } = this.#at;
    if (!this.#has(userId)) return idLengthProblem(0, 'user_id');
    const problem = this.#writeText(bytes, userId, userProblem);
    if (problem !== null) return problem;
    this.#target[this.#to++] = TAB;
    return null;
  }

  #writeCompany(bytes: Buffer): Reason | null {
    const { companyId } = this.#at;
    this.#target[this.#to++] = TAB;
    if (this.#has(companyId)) return this.#writeText(bytes, companyId, companyProblem);
    this.#target[this.#to++] = BACKSLASH;
    this.#target[this.#to++] = CAPITAL_N;
    return null;
  }

  #writeSource(bytes: Buffer): Reason | null {
    this.#target[this.#to++] = TAB;
    if (this.#has(this.#at.source)) return this.#writeText(bytes, this.#at.source, eventSourceProblem);
    this.#to += importSource.copy(this.#target, this.#to);
    return null;
  }

  #writeTime(bytes: Buffer): Reason | null {
    const { time } = this.#at;
    const { times } = this.#rows;
    this.#target[this.#to++] = TAB;
    const row = this.#row;
    row.timeStart = this.#to;
    row.ms = null;
    this.#to += instantChars;
    if (!this.#has(time)) return null;
    const { starts, ends } = this.#cells;
    const ms = times.copy(bytes, starts[time] ?? 0, ends[time] ?? 0, this.#target, row.timeStart);
    if (times.isAllowed(ms)) {
      row.ms = ms;
      return null;
    }
    const instant = times.read(this.#text(bytes, time), 'inserted_at');
    if ('code' in instant) return instant;
    this.#target.write(instant.text, row.timeStart, 'latin1');
    row.ms = instant.ms;
    return null;
  }

  /** Writes properties. The last of a name counts in jsonb: `metadata` beats a column, and a column the address. */
  #writeProperties(bytes: Buffer, page: string, metadata: string): void {
    const target = this.#target;
    let to = this.#to;
    target[to++] = TAB;
    target[to++] = OPEN;
    const first = to;
    to += target.write(page, to, 'latin1');
    for (const column of this.#properties) {
      if (this.#cells.isEmpty(column)) continue;
      if (to !== first) target[to++] = COMMA;
      to += this.#prefixes[column]?.copy(target, to) ?? 0;
      to = this.#cells.copyJson(bytes, column, target, to);
      target[to++] = QUOTE;
    }
    if (metadata !== '' && to !== first) target[to++] = COMMA;
    to += target.write(metadata, to, 'latin1');
    target[to++] = CLOSE;
    this.#to = to;
  }

  /** Writes a cell that must pass a check of its bytes. */
  #writeText(bytes: Buffer, column: number, problemOf: (length: number) => Reason | null): Reason | null {
    const { starts, ends } = this.#cells;
    const length = (ends[column] ?? 0) - (starts[column] ?? 0);
    // Doubled quotes count once: only what looks too long is looked at closely.
    if (length > maxTextBytes) {
      const problem = problemOf(this.#text(bytes, column).length);
      if (problem !== null) return problem;
    }
    this.#to = this.#cells.copyText(bytes, column, this.#target, this.#to);
    return null;
  }

  #has(column: number): boolean {
    return column !== -1 && !this.#cells.isEmpty(column);
  }

  #text(bytes: Buffer, column: number): string {
    return this.#cells.byteString(bytes, column);
  }
}

/** No text of an event may be shorter than this and too long. */
const maxTextBytes = Math.min(MAX_ID_BYTES, MAX_EVENT_NAME_BYTES, MAX_EVENT_SOURCE_BYTES);
const idProblem = (length: number) => idLengthProblem(length, 'event_id');
const userProblem = (length: number) => idLengthProblem(length, 'user_id');
const companyProblem = (length: number) => idLengthProblem(length, 'company_id');
