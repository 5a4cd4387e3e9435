import type { RejectCode } from '../../domain/reject.ts';
import { type CsvDialect, plainDialect } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { JsonObject } from '../../mapping/json-object.ts';
import { RefusedCsv } from '../refused-csv.ts';
import type { RefusedSource } from './refused-values.ts';

/**
 * A way to make refused records acceptable. It says what a record was meant to be, and nothing of whether a load would take that:
 * the loader is asked. Null from any of its functions: the record is not one that it mends.
 */
export interface Mend {
  /** Stable: it is part of the id of a proposal. */
  readonly name: string;
  /** What it does, for a person, behind the shape: `read as day first`. */
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
