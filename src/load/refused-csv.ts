import { isUtf8 } from 'node:buffer';
import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { CellTable, PlainRecords } from '../formats/csv-plain.ts';
import { createRecordScanner } from '../formats/csv-scanner.ts';
import type { RecordScanner } from '../formats/record-scanner.ts';
import { CsvCells } from '../mapping/csv-cells.ts';

/** One cell of a refused record. */
export interface RecordCell {
  /** As it stands in the record, quotes and all. */
  readonly written: string;
  /** What that means. */
  readonly text: string;
}

/** Splits refused records of one CSV, as they stood in the file. */
export class RefusedCsv {
  readonly #header: CsvHeader;
  readonly #table = new CellTable();
  readonly #scanner: RecordScanner;
  readonly #plain: PlainRecords | null;
  readonly #cells: CsvCells;

  constructor(header: CsvHeader) {
    const { columns, delimiter, dialect } = header;
    this.#header = header;
    this.#scanner = createRecordScanner(header, undefined, dialect === undefined ? null : this.#table);
    this.#plain = dialect === undefined ? null : new PlainRecords(dialect, delimiter);
    this.#cells = new CsvCells(delimiter.charCodeAt(0), columns.length, true);
  }

  /** Null for what is not exactly one well-formed record of proper text with a cell for each column; one that may have been cut off is not. */
  split(raw: Buffer): RecordCell[] | null {
    const record = this.#read(raw);
    if (record === null || !this.#fits(record)) return null;
    return this.#header.columns.map((_, at) => ({
      written: this.#cells.written(record, at),
      text: this.#cells.text(record, at),
    }));
  }

  /** All cells of a well-formed record, whether or not they are as many as the columns; null if it is none. */
  allCells(raw: Buffer): string[] | null {
    const record = this.#read(raw);
    if (record === null) return null;
    const cells = new CsvCells(
      this.#header.delimiter.charCodeAt(0),
      this.#cells.find(record, 0, record.length),
      true,
    );
    const found = cells.find(record, 0, record.length);
    return Array.from({ length: found }, (_, at) => cells.text(record, at));
  }

  /** How many cells a well-formed record has; 0 if it is none. */
  count(raw: Buffer): number {
    const record = this.#read(raw);
    return record === null ? 0 : this.#cells.find(record, 0, record.length);
  }

  /** One cell of a record; null if it is not there. */
  cell(raw: Buffer, column: number): string | null {
    const record = this.#plain === null ? raw : this.#read(raw);
    if (record === null) return null;
    if (this.#cells.findOne(record, 0, record.length, column))
      return record.toString('utf8', this.#cells.oneStart, this.#cells.oneEnd);
    const found = this.#cells.find(record, 0, record.length);
    return column < found ? this.#cells.text(record, column) : null;
  }

  #fits(record: Buffer): boolean {
    const { columns, ragged } = this.#header;
    const found = this.#cells.find(record, 0, record.length);
    return found === columns.length || this.#cells.fits(record, record.length, found, ragged === 'pad');
  }

  /** As RFC 4180 has it. */
  #read(raw: Buffer): Buffer | null {
    if (raw.length === 0 || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0) || !isUtf8(raw))
      return null;
    this.#scanner.reset();
    this.#scanner.next(raw, 0, raw.length, true);
    if (this.#scanner.problem !== null || this.#scanner.contentEnd !== raw.length) return null;
    return this.#plain === null ? raw : rewrite(raw, this.#table, this.#plain);
  }
}

/** A record of another dialect as RFC 4180 has it. */
function rewrite(raw: Buffer, cells: CellTable, plain: PlainRecords): Buffer | null {
  plain.clear();
  return plain.write(raw, cells) ? plain.bytes.subarray(0, plain.at) : null;
}
