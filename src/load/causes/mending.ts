import { isUtf8 } from 'node:buffer';
import { isDefused, undoDefuse } from '../../domain/formula.ts';
import { MAX_REJECT_RAW_BYTES } from '../../domain/limits.ts';
import { isRejectColumn, type Reject, rejectColumns } from '../../domain/reject.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject, markedNumber, parseJsonText, writeJson } from '../../mapping/json-text.ts';
import { hiddenValues } from '../../personal/values.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { type ChunkReader, createChunkReader } from '../read-chunk.ts';
import { RefusedCsv, RejectsAsCsv, RejectsAsNdjson } from '../rejects-text.ts';
import type { Mend } from './mends.ts';
import { columnOf, pathOf } from './reject-causes.ts';

export interface MendedRecord {
  readonly reject: Reject;
  /** Its line in a file of refused records. */
  readonly line: Buffer;
  /** The value at fault, or the whole record, before and after. */
  readonly before: string;
  readonly after: string;
}

interface Change {
  readonly line: Buffer;
  readonly before: string;
  readonly after: string;
}

/** Mends refused records of one load, and asks the loader whether it would take them. */
export class Mending {
  readonly head: Buffer;
  readonly #shape: MendsCsv | MendsNdjson;
  readonly #reader: ChunkReader;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(source: LoadSource) {
    const { header } = source;
    this.#shape = header === null ? new MendsNdjson(source) : new MendsCsv(header, source);
    this.head = this.#shape.head;
    const files = { readRange: async (): Promise<Buffer> => this.#bytes };
    this.#reader = createChunkReader(
      { ...source, ...this.#shape.reading, fileRef: 'mended' as FileRef },
      files,
      hiddenValues,
    );
  }

  /** The records that the mend is about, as it leaves them, if a load would take them. */
  async mend(mend: Mend, rejects: readonly Reject[]): Promise<MendedRecord[]> {
    const mended = rejects.flatMap((reject): MendedRecord[] => {
      if (reject.raw.length >= MAX_REJECT_RAW_BYTES) return [];
      const change = this.#shape.apply(mend, reject);
      return change === null ? [] : [{ reject, ...change }];
    });
    const refused = await this.#refused(mended.map(({ line }) => line));
    return mended.filter((_, at) => !refused.has(at));
  }

  /** Which of these records a load would refuse. */
  async #refused(lines: readonly Buffer[]): Promise<ReadonlySet<number>> {
    if (lines.length === 0) return new Set();
    this.#bytes = Buffer.concat(lines);
    const rows = await this.#reader.read({
      byteStart: 0,
      byteEnd: this.#bytes.length,
      firstRow: 0,
      firstLine: 1,
      rowCount: lines.length,
      oversized: false,
    });
    return new Set(rows.rejects.map(({ row }) => row));
  }
}

class MendsCsv {
  readonly head: Buffer;
  readonly reading: Pick<LoadSource, 'header' | 'columnMap'>;
  readonly #header: CsvHeader;
  readonly #map: LoadSource['columnMap'];
  readonly #records: RefusedCsv;
  readonly #text: RejectsAsCsv;

  constructor(header: CsvHeader, { columnMap }: LoadSource) {
    this.#header = header;
    this.#map = columnMap;
    this.#records = new RefusedCsv(header);
    this.#text = new RejectsAsCsv(header);
    this.head = this.#text.head;
    const { columns, delimiter } = header;
    const kept = columns.filter((column) => !isRejectColumn(column));
    const map = Object.entries(columnMap).filter(([column]) => kept.includes(column));
    this.reading = {
      header: { columns: [...kept, ...rejectColumns], delimiter, defused: 'undone' },
      columnMap: Object.fromEntries(map),
    };
  }

  apply(mend: Mend, reject: Reject): Change | null {
    const raw = Buffer.from(reject.raw);
    const value = mend.value === undefined ? null : this.#changeValue(mend.value, raw, reject.column);
    const cells = value?.cells ?? this.#changeRecord(mend, raw, reject.row);
    if (cells === null) return null;
    const { defused } = this.#header;
    // Only mends of apostrophes decide whether an apostrophe is part of a value.
    if (defused === 'doubtful' && reject.code !== 'unclear_apostrophe' && cells.some(isDefused)) return null;
    const meant = defused === 'undone' ? cells.map(undoDefuse) : cells;
    const line = this.#text.mendedLine(reject, meant);
    return {
      line,
      before: value?.before ?? raw.toString('utf8'),
      after: value?.after ?? this.#text.writeRecord(meant),
    };
  }

  #changeValue(change: NonNullable<Mend['value']>, raw: Buffer, column: string | null) {
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

class MendsNdjson {
  readonly head = Buffer.alloc(0);
  readonly reading = {};
  readonly #map: LoadSource['columnMap'];
  readonly #text = new RejectsAsNdjson(null);

  constructor({ columnMap }: LoadSource) {
    this.#map = columnMap;
  }

  apply(mend: Mend, reject: Reject): Change | null {
    const raw = Buffer.from(reject.raw);
    const changed = this.#change(mend, raw, reject);
    const object = changed?.object.replace(/[\r\n]+/g, ' ').trim() ?? '';
    if (changed === null || !object.startsWith('{') || !object.endsWith('}')) return null;
    return {
      line: this.#text.mendedLine(reject, object),
      before: changed.before ?? raw.toString('utf8'),
      after: changed.after ?? object,
    };
  }

  #change(mend: Mend, raw: Buffer, { column }: Reject): ChangedObject | null {
    const decoded = mend.bytes?.(raw) ?? null;
    if (decoded !== null) return { object: decoded };
    if (!isUtf8(raw)) return null;
    return this.#changeObject(mend, raw.toString('utf8'), column);
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
