import { INSPECTED_RECORDS } from '../../domain/limits.ts';
import { marksOf } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { CellTable } from '../../formats/csv-plain.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import { isObject, type JsonObject } from '../../mapping/json-object.ts';
import type { ReceivingStore } from '../receive/asides.ts';
import type { ReceivedFile } from '../receive/receive.ts';
import { ColumnValues, type ValuesSummary } from './column-values.ts';

/** Values that an inspection reads, at most: of a wide file fewer records. */
const INSPECTED_VALUES = 250_000;

/** Returns how many records with that many columns are inspected; at least `least`. */
export function recordsWithin(columns: number, least: number): number {
  return Math.max(least, Math.min(INSPECTED_RECORDS, Math.floor(INSPECTED_VALUES / Math.max(1, columns))));
}

/** Values by the name of their column or key. */
export class NamedValues {
  readonly #values = new Map<string, ColumnValues>();

  /** In the order in which they were first seen. */
  get names(): readonly string[] {
    return [...this.#values.keys()];
  }

  add(name: string, value: unknown): void {
    let values = this.#values.get(name);
    if (values === undefined) {
      values = new ColumnValues();
      this.#values.set(name, values);
    }
    values.add(value);
  }

  summaryOf(name: string): ValuesSummary {
    return (this.#values.get(name) ?? new ColumnValues()).summary();
  }
}

/** The values of a file as they stand in it, before any mapping. */
export class FileValues extends NamedValues {
  /** Records that were looked at. */
  records = 0;
}

/** Reads at most `count` records from the start of a received file. Malformed ones are skipped. */
export async function readValues(
  store: Pick<ReceivingStore, 'readRange'>,
  { ref, chunks, header, isWhole }: ReceivedFile,
  count: number,
): Promise<FileValues> {
  const values = new FileValues();
  for (const chunk of chunks) {
    if (values.records >= count || chunk.oversized) break;
    const bytes = await store.readRange(ref, chunk.byteStart, chunk.byteEnd);
    // The last record of a beginning may be cut.
    const isEnded = isWhole || chunk !== chunks.at(-1);
    if (header === null) addObjects(values, bytes, isEnded, count);
    else addCells(values, bytes, isEnded, header, count);
  }
  return values;
}

function addCells(
  values: FileValues,
  bytes: Buffer,
  isEnded: boolean,
  header: CsvHeader,
  count: number,
): void {
  const { columns } = header;
  const nulls = new Set(header.dialect?.nulls);
  const table = new CellTable();
  const marks = marksOf(header);
  const scanner = createCsvScanner(marks, undefined, table);
  for (let at = 0; at < bytes.length && values.records < count; ) {
    const next = scanner.next(bytes, at, bytes.length, isEnded);
    if (next < 0) break;
    at = next;
    if (scanner.blank || scanner.problem !== null) continue;
    const cells = table.texts(bytes, marks).slice(0, columns.length);
    values.records++;
    for (const [index, cell] of cells.entries()) {
      if (cell.trim() !== '' && !nulls.has(cell)) values.add(columns[index] ?? '', cell);
    }
  }
}

function addObjects(values: FileValues, bytes: Buffer, isEnded: boolean, count: number): void {
  for (let at = 0; at < bytes.length && values.records < count; ) {
    const stop = bytes.indexOf('\n', at);
    if (stop === -1 && !isEnded) break;
    const end = stop === -1 ? bytes.length : stop;
    const record = parseObject(bytes.toString('utf8', at, end));
    at = end + 1;
    if (record === null) continue;
    values.records++;
    for (const [name, value] of Object.entries(record)) values.add(name, value);
  }
}

/** Returns `null` for anything but a JSON object. */
export function parseObject(line: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
