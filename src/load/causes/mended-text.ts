import { isUtf8 } from 'node:buffer';
import { isDefused, undoDefuse } from '../../domain/formula.ts';
import { isRejectColumn, type Reject, rejectColumns } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject, markedNumber, parseJsonText, writeJson } from '../../formats/json-text.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { EditedCsv } from '../edited-csv.ts';
import { RefusedCsv, RejectsAsCsv, RejectsAsNdjson } from '../rejects-text.ts';
import type { Mend } from './mends.ts';
import { columnOf, pathOf } from './reject-causes.ts';

export interface Change {
  /** The record as a line in a file of refused records. */
  readonly line: Buffer;
  /** The value at fault, or the whole record, before and after. */
  readonly before: string;
  readonly after: string;
}

/** The records of a CSV as mends leave them. */
export class MendsCsv {
  readonly head: Buffer;
  readonly reading: Pick<LoadSource, 'header' | 'columnMap'>;
  readonly #header: CsvHeader;
  readonly #map: LoadSource['columnMap'];
  readonly #records: RefusedCsv;
  readonly #text: RejectsAsCsv;
  readonly #edited: EditedCsv;

  constructor(header: CsvHeader, { columnMap }: Pick<LoadSource, 'columnMap'>) {
    this.#header = header;
    this.#map = columnMap;
    this.#records = new RefusedCsv(header);
    this.#text = new RejectsAsCsv(header);
    this.#edited = new EditedCsv(header);
    this.head = this.#text.head;
    const { columns, delimiter, types } = header;
    const kept = columns.filter((column) => !isRejectColumn(column));
    const map = Object.entries(columnMap).filter(([column]) => kept.includes(column));
    this.reading = {
      header: {
        columns: [...kept, ...rejectColumns],
        delimiter,
        defused: 'undone',
        ...(types !== undefined && { types }),
      },
      columnMap: Object.fromEntries(map),
    };
  }

  apply(mend: Mend, reject: Reject): Change | null {
    const changed = this.#change(mend, reject);
    if (changed === null) return null;
    const { defused } = this.#header;
    const { cells, before, after } = changed;
    // Only mends of apostrophes decide whether an apostrophe is part of a value.
    if (defused === 'doubtful' && reject.code !== 'unclear_apostrophe' && cells.some(isDefused)) return null;
    const meant = defused === 'undone' ? cells.map(undoDefuse) : cells;
    const line = this.#text.mendedLine(reject, meant);
    return {
      line,
      before: before ?? Buffer.from(reject.raw).toString('utf8'),
      after: after ?? this.#text.writeRecord(meant),
    };
  }

  /** Returns the mended record as the file would have it; `null` if the mend is not about it, or the dialect cannot hold it. */
  rewrite(mend: Mend, reject: Reject): Buffer | null {
    const changed = this.#change(mend, reject);
    return changed && this.#edited.write(changed.cells);
  }

  #change(mend: Mend, { raw: bytes, column, row }: Reject): ChangedCells | null {
    const raw = Buffer.from(bytes);
    const value = mend.value === undefined ? null : this.#changeValue(mend.value, raw, column);
    if (value !== null) return value;
    const cells = this.#changeRecord(mend, raw, row);
    return cells && { cells };
  }

  #changeValue(change: NonNullable<Mend['value']>, raw: Buffer, column: string | null): ChangedCells | null {
    const at = column === null ? -1 : columnOf(this.#header, this.#map, column);
    const cells = at === -1 ? null : this.#records.texts(raw);
    const before = cells?.[at];
    const after = before === undefined ? null : change(before);
    if (cells === null || before === undefined || after === null) return null;
    return { cells: cells.with(at, after), before, after };
  }

  #changeRecord(mend: Mend, raw: Buffer, row: number): readonly string[] | null {
    if (mend.cells !== undefined) return mend.cells(raw, this.#records, row);
    const text = mend.bytes?.(raw) ?? null;
    return text === null ? null : this.#records.texts(Buffer.from(text));
  }
}

/** The records of NDJSON as mends leave them. */
export class MendsNdjson {
  readonly head = Buffer.alloc(0);
  readonly reading = {};
  readonly #map: LoadSource['columnMap'];
  readonly #text = new RejectsAsNdjson(null);

  constructor({ columnMap }: Pick<LoadSource, 'columnMap'>) {
    this.#map = columnMap;
  }

  apply(mend: Mend, reject: Reject): Change | null {
    const changed = this.#change(mend, reject);
    if (changed === null) return null;
    const { object, before, after } = changed;
    return {
      line: this.#text.mendedLine(reject, object),
      before: before ?? Buffer.from(reject.raw).toString('utf8'),
      after: after ?? object,
    };
  }

  rewrite(mend: Mend, reject: Reject): Buffer | null {
    const changed = this.#change(mend, reject);
    return changed && Buffer.from(changed.object);
  }

  #change(mend: Mend, { raw: bytes, column }: Reject): ChangedObject | null {
    const raw = Buffer.from(bytes);
    const decoded = mend.bytes?.(raw) ?? null;
    if (decoded === null && !isUtf8(raw)) return null;
    const changed =
      decoded === null ? this.#changeObject(mend, raw.toString('utf8'), column) : { object: decoded };
    if (changed === null) return null;
    const object = changed.object.replace(/[\r\n]+/g, ' ').trim();
    return object.startsWith('{') && object.endsWith('}') ? { ...changed, object } : null;
  }

  #changeObject(mend: Mend, text: string, column: string | null): ChangedObject | null {
    const parsed = parseJsonText(text);
    if ('code' in parsed || !isObject(parsed.value)) return null;
    const record = parsed.value;
    const path = column === null ? null : pathOf(record, column, this.#map);
    const last = path?.at(-1);
    const holder = path
      ?.slice(0, -1)
      .reduce<unknown>((value, key) => (isObject(value) ? value[key] : null), record);
    if (last === undefined || !isObject(holder)) return null;
    const before = holder[last];
    const after = changeValue(mend, before);
    if (after === undefined) return null;
    holder[last] = after;
    // A value that a mend has parsed may hold marked numbers too.
    return { object: writeJson(record, true), before: shown(before), after: shown(after) };
  }
}

interface ChangedCells {
  readonly cells: readonly string[];
  readonly before?: string;
  readonly after?: string;
}

interface ChangedObject {
  readonly object: string;
  readonly before?: string;
  readonly after?: string;
}

/** Undefined if the mend is not about it. */
function changeValue({ json, value: change }: Mend, value: unknown): unknown {
  const changed = json?.(value);
  if (changed !== undefined) return changed;
  const text = typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
  const mended = typeof text === 'string' ? (change?.(text) ?? undefined) : undefined;
  return mended === '' ? null : mended;
}

function shown(value: unknown): string {
  if (value === null) return '';
  return typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, true);
}
