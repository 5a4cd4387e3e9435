import { type EventKind, IMPORT_SOURCE } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import { escapeCopyJson } from '../../formats/json-text.ts';
import { kind as cellKind, ofEvent, ofEventWithUrl, type RecordCells, role } from './cells.ts';
import { instantChars, type WrittenEvent } from './event-buffer.ts';
import { differentEventIds, eventNameProblem, eventSourceProblem, splitUrl } from './event-checks.ts';
import { isBlank, readTime, textOf } from './fields.ts';
import { RowText } from './row-text.ts';
import type { Rows } from './rows.ts';

/**
 * Maximum number of bytes that a row has besides its cells: TABs, braces, defaults of kind, name
 * and source.
 */
const rowOverhead = 128;

export class EventRow {
  readonly #kind: EventKind;
  readonly #rows: Rows;
  readonly #text = new RowText();
  readonly #places: Places;
  #shape = ofEvent;

  constructor(kind: EventKind, rows: Rows) {
    this.#kind = kind;
    this.#rows = rows;
    this.#places = new Places(kind);
  }

  compose(cells: RecordCells): Reason | null {
    const { events, stage } = this.#rows;
    const text = this.#text;
    if (cells.found === null) cells.page = pageOf(cells);
    this.#shape = cells.page === null ? ofEventWithUrl : ofEvent;
    const refusal = stage?.judgeCells('events', cells, this.#shape, () => this.#nameOf(cells)) ?? null;
    if (refusal !== null) return refusal;
    const page = cells.page === null ? '' : escapeCopyJson(JSON.stringify(cells.page).slice(1, -1));
    const start = events.startRow(cells.size + page.length + rowOverhead);
    text.begin(events.bytes, start);
    const problem = this.#addFields(cells) ?? cells.problem;
    if (problem !== null) return problem;
    text.addTab();
    text.addProperties(cells, this.#shape, page, false);
    return null;
  }

  /** See `RecordRow`. */
  end(cells: RecordCells, record: number): void {
    const { events, stage, types } = this.#rows;
    events.endRow(this.#places, this.#text.at, record);
    for (const name in cells.page ?? {}) types.events.note(name, 'string');
    types.events.addRecord(cells, this.#shape);
    stage?.count(cells);
  }

  #nameOf(cells: RecordCells): string {
    return isNameBlank(cells) ? this.#kind : textOf(cells, role.eventName);
  }

  #addFields(cells: RecordCells): Reason | null {
    // The user must be written first, but problems with the id and the name are reported first.
    const problem = this.#text.addRequired(cells, role.userId, 'user_id');
    this.#text.addTab();
    return (
      this.#addEventId(cells) ??
      this.#addName(cells) ??
      problem ??
      this.#addCompany(cells) ??
      this.#addSource(cells) ??
      this.#addTime(cells)
    );
  }

  #addEventId(cells: RecordCells): Reason | null {
    const text = this.#text;
    const hasEventId = cells.has(role.eventId);
    const hasInsertId = cells.has(role.insertId);
    const hasBoth = hasEventId && hasInsertId;
    if (hasBoth && textOf(cells, role.eventId) !== textOf(cells, role.insertId)) return differentEventIds;
    let problem: Reason | null = null;
    if (hasEventId) problem = text.addId(cells, role.eventId, 'event_id');
    else if (hasInsertId) problem = text.addId(cells, role.insertId, 'insert_id');
    else text.skipTo(this.#rows.events.reserveId(text.at));
    this.#places.hasId = hasEventId || hasInsertId;
    this.#places.idEnd = text.at;
    return problem;
  }

  #addName(cells: RecordCells): Reason | null {
    const text = this.#text;
    text.addTab();
    text.add(this.#kind);
    text.addTab();
    this.#places.nameStart = text.at;
    let problem: Reason | null = null;
    if (!isNameBlank(cells)) problem = text.addText(cells, role.eventName, 'event_name', eventNameProblem);
    else if (this.#kind === 'track') problem = eventNameProblem(0);
    else text.add(this.#kind);
    this.#places.nameEnd = text.at;
    return problem;
  }

  #addCompany(cells: RecordCells): Reason | null {
    const text = this.#text;
    text.addTab();
    if (cells.has(role.companyId)) return text.addId(cells, role.companyId, 'company_id');
    text.addNull();
    return null;
  }

  #addSource(cells: RecordCells): Reason | null {
    const text = this.#text;
    text.addTab();
    const start = text.at;
    const problem = cells.has(role.source)
      ? text.addText(cells, role.source, 'source', eventSourceProblem)
      : null;
    if (text.at === start) text.add(IMPORT_SOURCE);
    return problem;
  }

  #addTime(cells: RecordCells): Reason | null {
    const { times, events } = this.#rows;
    const places = this.#places;
    this.#text.addTab();
    const start = this.#text.at;
    this.#text.skipTo(start + instantChars);
    places.timeStart = start;
    places.ms = null;
    if (!cells.has(role.time)) return null;
    const cell = cells.fields[role.time] ?? -1;
    const { bytes, starts, ends, kinds } = cells.own;
    const from = starts[cell] ?? 0;
    const to = ends[cell] ?? 0;
    if (kinds[cell] === cellKind.text) places.ms = times.copy(bytes, from, to, events.bytes, start);
    if (kinds[cell] === cellKind.number) places.ms = times.copyEpoch(bytes, from, to, events.bytes, start);
    if (places.ms !== null && times.isAllowed(places.ms)) return null;
    const instant = readTime(cells, times);
    if (instant === null || 'code' in instant) return instant;
    events.bytes.write(instant.text, start, 'latin1');
    places.ms = instant.ms;
    return null;
  }
}

class Places implements WrittenEvent {
  readonly kind: EventKind;
  hasId = false;
  idEnd = 0;
  nameStart = 0;
  nameEnd = 0;
  timeStart = 0;
  ms: number | null = null;

  constructor(kind: EventKind) {
    this.kind = kind;
  }
}

function isNameBlank(cells: RecordCells): boolean {
  const { starts, ends } = cells.own;
  const cell = cells.fields[role.eventName] ?? -1;
  if (!cells.has(role.eventName) || starts[cell] === ends[cell]) return true;
  return isBlank(cells, role.eventName);
}

function pageOf(cells: RecordCells): Readonly<Record<string, string>> | null {
  const cell = cells.fields[role.url] ?? -1;
  const isText = cells.has(role.url) && (cells.own.kinds[cell] ?? 0) <= cellKind.escaped;
  return isText ? splitUrl(cells.own.text(cell)) : null;
}
