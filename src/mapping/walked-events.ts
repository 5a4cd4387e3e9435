import { type EventKind, IMPORT_SOURCE } from '../domain/entity.ts';
import { MAX_EVENT_NAME_BYTES, MAX_EVENT_SOURCE_BYTES } from '../domain/limits.ts';
import { EventRow, instantChars } from './event-buffer.ts';
import { defaultNames } from './event-record.ts';
import type { Rows } from './rows.ts';
import { ofEvents, role, type WalkedLine } from './walked-line.ts';

const TAB = 9;
const CAPITAL_N = 0x4e;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
/** TABs, braces, a kind, a name and a source that the record does not give, and the like. */
const rowOverhead = 128;
const importSource = Buffer.from(IMPORT_SOURCE);

/** Writes events of NDJSON that were walked as rows. To the byte: their content ids are made of it. */
export class WalkedEvents {
  readonly #rows: Rows;
  readonly #line: WalkedLine;
  readonly #row = new EventRow();
  /** The buffer of the row, and the position of its next byte. */
  #target: Buffer = Buffer.alloc(0);
  #to = 0;

  constructor(rows: Rows, line: WalkedLine) {
    this.#rows = rows;
    this.#line = line;
  }

  /** Returns true if the record, of `length` bytes, became a row. If not, nothing happened. */
  write(kind: EventKind, length: number, record: number): boolean {
    const line = this.#line;
    if (!this.#fits(kind)) return false;
    const { events, kinds, types } = this.#rows;
    this.#to = events.startRow(2 * length + rowOverhead);
    this.#target = events.bytes;
    this.#row.record = record;
    this.#row.kind = kind;
    this.#writeKey();
    this.#writeName(kind);
    this.#writeFields();
    if (!this.#writeTime()) return false;
    this.#target[this.#to++] = TAB;
    this.#target[this.#to++] = OPEN;
    this.#to = line.copyProperties(this.#target, this.#to);
    this.#target[this.#to++] = CLOSE;
    kinds.set(record, kind);
    events.endRow(this.#row, this.#to);
    line.noteTypes(types.events, ofEvents);
    return true;
  }

  #fits(kind: EventKind): boolean {
    const line = this.#line;
    if (line.has(role.automatic) || line.has(role.url) || !line.isId(role.userId)) return false;
    if (line.has(role.companyId) && !line.isNull(role.companyId) && !line.isId(role.companyId)) return false;
    if (line.has(role.eventId) && line.has(role.insertId)) return false;
    if (line.has(role.eventId) && !line.isId(role.eventId)) return false;
    if (line.has(role.insertId) && !line.isId(role.insertId)) return false;
    const hasName = line.has(role.eventName);
    if (hasName ? !this.#isText(role.eventName, 1, MAX_EVENT_NAME_BYTES) : defaultNames[kind] === '')
      return false;
    if (line.has(role.source) && !this.#isText(role.source, 0, MAX_EVENT_SOURCE_BYTES)) return false;
    if (line.has(role.time) && line.textStart(role.time) === -1) return false;
    return line.isKept(ofEvents, true);
  }

  #isText(which: number, least: number, most: number): boolean {
    const start = this.#line.textStart(which);
    const length = this.#line.textEnd(which) - start;
    return start !== -1 && length >= least && length <= most;
  }

  /** The user and the id. */
  #writeKey(): void {
    const line = this.#line;
    this.#copy(role.userId);
    this.#target[this.#to++] = TAB;
    const which = line.has(role.insertId) ? role.insertId : role.eventId;
    const row = this.#row;
    row.hasId = line.has(which);
    if (row.hasId) this.#to = line.copyText(which, this.#target, this.#to);
    else this.#to = this.#rows.events.reserveId(this.#to);
    row.idEnd = this.#to;
  }

  #writeName(kind: EventKind): void {
    const target = this.#target;
    target[this.#to++] = TAB;
    this.#to += target.write(kind, this.#to, 'latin1');
    target[this.#to++] = TAB;
    this.#row.nameStart = this.#to;
    if (this.#line.has(role.eventName)) this.#copy(role.eventName);
    else this.#to += target.write(defaultNames[kind], this.#to, 'latin1');
    this.#row.nameEnd = this.#to;
  }

  /** The company and the source. */
  #writeFields(): void {
    const line = this.#line;
    const target = this.#target;
    target[this.#to++] = TAB;
    if (line.isId(role.companyId)) this.#copy(role.companyId);
    else {
      target[this.#to++] = BACKSLASH;
      target[this.#to++] = CAPITAL_N;
    }
    target[this.#to++] = TAB;
    if (this.#isText(role.source, 1, MAX_EVENT_SOURCE_BYTES)) this.#copy(role.source);
    else this.#to += importSource.copy(target, this.#to);
  }

  /** Returns true if the time is one of the usual form that is allowed, or not given. */
  #writeTime(): boolean {
    const line = this.#line;
    const row = this.#row;
    this.#target[this.#to++] = TAB;
    row.timeStart = this.#to;
    row.ms = null;
    this.#to += instantChars;
    if (!line.has(role.time)) return true;
    const { times } = this.#rows;
    const [start, end] = [line.textStart(role.time), line.textEnd(role.time)];
    row.ms = times.copy(line.bytes, start, end, this.#target, row.timeStart);
    return times.isAllowed(row.ms);
  }

  #copy(which: number): void {
    this.#to = this.#line.copyText(which, this.#target, this.#to);
  }
}
