import { type CellType, dataTypeOf } from '../../domain/data-type.ts';
import { type Entity, entities, idColumn, kindOfEntity, type RecordKind } from '../../domain/entity.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { plainRecords } from '../../formats/csv-scanner.ts';
import { copyCells, parseObject } from '../../formats/json-text.ts';
import { typesOf } from '../../load/map/cell-types.ts';
import { lookOf } from '../../load/map/looks.ts';
import { type RowContent, UNCOUNTED } from '../../load/map/row-buffer.ts';
import type { Rows } from '../../load/map/rows.ts';
import type { ReceivedFile } from '../../load/receive/received-file.ts';
import type { ReceivingStore } from '../../load/receive/unpack.ts';
import { INSPECTED_RECORDS, type InspectedColumn, SHOWN_FREQUENT, SHOWN_SAMPLES } from './api.ts';

/**
 * Maximum number of inspected values. If a file has many columns, fewer of its records are
 * inspected.
 */
const INSPECTED_VALUES = 250_000;

export function recordsWithin(columns: number, least: number): number {
  return Math.max(least, Math.min(INSPECTED_RECORDS, Math.floor(INSPECTED_VALUES / Math.max(1, columns))));
}

/** Values of each column or key. `records` is the number of records. */
export class NamedValues {
  records = 0;
  readonly #values = new Map<string, ColumnValues>();
  #isHidden = false;

  /** Hides the values, but not their types and counts. */
  hide(): void {
    this.#isHidden = true;
  }

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

  typesOf(name: string): CellType[] {
    return typesOf(this.#values.get(name)?.texts ?? []);
  }

  summaryOf(name: string): ValuesSummary {
    const summary = (this.#values.get(name) ?? new ColumnValues()).summary();
    return this.#isHidden ? { ...summary, samples: [], frequent: [] } : summary;
  }
}

/** Skips malformed records. */
export async function readValues(
  store: Pick<ReceivingStore, 'readRange'>,
  { ref, chunks, header, isWhole }: ReceivedFile,
  count: number,
): Promise<NamedValues> {
  const values = new NamedValues();
  for (const chunk of chunks) {
    if (values.records >= count || chunk.oversized) break;
    const bytes = await store.readRange(ref, chunk.byteStart, chunk.byteEnd);
    // If only the beginning of a file was read, its last record may be incomplete.
    const isEnded = isWhole || chunk !== chunks.at(-1);
    if (header === null) addObjects(values, bytes, isEnded, count);
    else addCells(values, bytes, isEnded, header, count);
  }
  return values;
}

function addCells(
  values: NamedValues,
  bytes: Buffer,
  isEnded: boolean,
  header: CsvHeader,
  count: number,
): void {
  const { columns } = header;
  for (const cells of plainRecords(header, bytes, isEnded)) {
    if (values.records === count) break;
    if (cells === null) continue;
    values.records++;
    for (const [index, cell] of cells.slice(0, columns.length).entries()) {
      if (cell.trim() !== '') values.add(columns[index] ?? '', cell);
    }
  }
}

function addObjects(values: NamedValues, bytes: Buffer, isEnded: boolean, count: number): void {
  let at = 0;
  while (at < bytes.length && values.records < count) {
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

type ValueType = InspectedColumn['type'];

export type DescribedColumn = Omit<InspectedColumn, 'cell_type' | 'fits'>;
export type ValuesSummary = Omit<DescribedColumn, 'name' | 'becomes' | 'reason'>;

class ColumnValues {
  readonly #counts = new Map<string, number>();
  readonly #samples: unknown[] = [];
  #type: ValueType = null;
  #filled = 0;

  add(value: unknown): void {
    const type = typeOf(value);
    if (type === null) return;
    this.#filled++;
    this.#type = this.#type === null || this.#type === type ? type : 'mixed';
    const text = typeof value === 'string' ? `"${value}` : JSON.stringify(value);
    const count = this.#counts.get(text) ?? 0;
    this.#counts.set(text, count + 1);
    if (count === 0 && this.#samples.length < SHOWN_SAMPLES) this.#samples.push(value);
  }

  get texts(): string[] {
    return Array.from(this.#counts.keys(), (text) => text.replace(/^"/, ''));
  }

  summary(): ValuesSummary {
    const frequent = [...this.#counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, SHOWN_FREQUENT)
      .map(([text, count]) => ({ value: readKey(text), count }));
    const distinct = this.#counts.size;
    const looks_like = lookOf(this.texts);
    return { type: this.#type, filled: this.#filled, distinct, samples: this.#samples, frequent, looks_like };
  }
}

/**
 * Reads a key of `#counts`. The key of a string is a quote followed by the string. The key of any
 * other value is its JSON.
 */
function readKey(text: string): unknown {
  return text.startsWith('"') ? text.slice(1) : JSON.parse(text);
}

function typeOf(value: unknown): ValueType {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'object' && value !== null ? 'object' : dataTypeOf(value);
}

export interface StoredRecord {
  /** Position in the chunk, counted from 0. */
  readonly record: number;
  readonly kind: RecordKind;
  /** Unchanged fields are omitted. A `null` company removes the user from the company. */
  readonly fields: Readonly<Record<string, string | null>>;
  /** A `null` value removes the property. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

export function storedRecords(rows: Rows, count: number): StoredRecord[] {
  const profiles = entities.flatMap((entity) =>
    [...rows.profiles(entity)].flatMap((row) => (row.record < count ? profile(entity, row) : [])),
  );
  return [...profiles, ...eventRecords(rows, count)].sort((a, b) => a.record - b.record);
}

function profile(entity: Entity, { record, key, properties, company, flags }: RowContent): StoredRecord[] {
  if ((flags & UNCOUNTED) !== 0) return [];
  const fields = {
    [idColumn[entity]]: key,
    ...(company !== null && { company_id: company === '' ? null : company }),
  };
  return [{ record, kind: kindOfEntity[entity], fields, metadata: JSON.parse(properties) }];
}

function eventRecords({ events }: Rows, count: number): StoredRecord[] {
  return Array.from({ length: events.rows }, (_, row) => row)
    .filter((row) => events.recordOf(row) < count)
    .map((row) => {
      const [, user_id, event_id, , event_name, company_id, source, inserted_at, properties] = copyCells(
        events.line(row),
      );
      const all = { event_id, event_name, user_id, company_id, source, inserted_at };
      const fields = Object.fromEntries(
        Object.entries(all).filter((field): field is [string, string] => typeof field[1] === 'string'),
      );
      const metadata = JSON.parse(properties ?? '{}');
      return { record: events.recordOf(row), kind: events.kindOf(row), fields, metadata };
    });
}
