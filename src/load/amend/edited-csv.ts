import { inputError } from '../../domain/errors.ts';
import { type CsvDialect, plainDialect } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { CellTable } from '../../formats/csv-plain.ts';
import { createRecordScanner } from '../../formats/csv-scanner.ts';
import { RefusedCsv } from '../refused-csv.ts';

/** EditedCsv writes values into refused records of one CSV, in its dialect. All other cells stay as they are written. */
export class EditedCsv {
  readonly #header: CsvHeader;
  readonly #dialect: CsvDialect;
  /** Stands between two cells. */
  readonly #between: string;
  readonly #records: RefusedCsv;

  constructor(header: CsvHeader) {
    this.#header = header;
    this.#dialect = header.dialect ?? plainDialect(header);
    this.#between = this.#dialect.delimiter === 'blanks' ? ' ' : this.#dialect.delimiter;
    this.#records = new RefusedCsv(header);
  }

  /** Tells whether the record ends where its bytes end, so that other records may follow it. */
  isWhole(record: Buffer): boolean {
    return this.#records.count(record) > 0;
  }

  /** Returns how many records the bytes are read as, and where the content of the first ends. */
  measure(bytes: Buffer): { readonly records: number; readonly end: number } {
    const scanner = createRecordScanner(this.#header);
    let [records, contentEnd] = [0, 0];
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank && records++ === 0) contentEnd = scanner.contentEnd;
      start = end;
    }
    return { records, end: contentEnd };
  }

  /**
   * Returns the record with these values, given by column name.
   * @throws InputError `invalid_field` if its cells cannot be told apart, or the dialect cannot hold a value.
   */
  withValues(record: Buffer, values: Readonly<Record<string, string>>, place: string): Buffer {
    const { columns } = this.#header;
    const found = this.#records.count(record);
    if (found === 0 || (found > columns.length && this.#records.split(record) === null)) {
      throw inputError('invalid_field', 'the cells of this record cannot be told apart; send its raw', place);
    }
    const changes = Object.entries(values).map(([name, value]) => ({
      at: columns.indexOf(name),
      name,
      value,
    }));
    const unknown = changes.find(({ at }) => at === -1);
    if (unknown !== undefined) {
      const name = unknown.name.slice(0, shownName);
      throw inputError(
        'invalid_field',
        'the file of the job has no such column',
        `${place}, column: ${name}`,
      );
    }
    return changes.reduce<Buffer>((bytes, { at, name, value }) => {
      const changed = this.#withCell(bytes, at, value);
      if (changed !== null) return changed;
      const message = 'the dialect of the file cannot hold this value';
      throw inputError('invalid_field', message, `${place}, column: ${name}`);
    }, record);
  }

  /** Returns the record with the value in the cell; `null` if no way of writing it leaves all other cells as they were. */
  #withCell(record: Buffer, at: number, value: string): Buffer | null {
    const before = this.#records.allCells(record) ?? [];
    const missing = Array.from({ length: Math.max(0, at + 1 - before.length) }, () => '');
    const meant = [...before, ...missing].with(at, value);
    const isMeant = (bytes: Buffer): boolean => {
      const found = this.#records.allCells(bytes);
      return found?.length === meant.length && meant.every((text, cell) => text === found[cell]);
    };
    return (
      this.#writings(value)
        .map((written) => this.#splice(record, at, written))
        .find(isMeant) ?? null
    );
  }

  /** Returns the ways to write a value, the plainest first. */
  #writings(value: string): string[] {
    const { quote, escape: marks } = this.#dialect;
    const masked = (characters: string): string =>
      [...value].map((each) => (characters.includes(each) ? marks + each : each)).join('');
    const bare = marks === '' || marks === quote ? value : masked(`${marks}${quote}${this.#between}\r\n`);
    const isPadded = value !== value.trim();
    const quoted = quote === '' ? [] : [`${quote}${masked(quote + marks)}${quote}`];
    return isPadded ? [...quoted, value, bare] : [value, bare, ...quoted];
  }

  /** Replaces the cell, quotes included, by `written`; cells that are missing before it become empty. */
  #splice(record: Buffer, at: number, written: string): Buffer {
    const cells = new CellTable();
    const form = { ...this.#header, dialect: this.#dialect };
    createRecordScanner(form, undefined, cells).next(record, 0, record.length, true);
    if (at >= cells.count) {
      const added = this.#between.repeat(at - cells.count + 1) + written;
      return Buffer.concat([record, Buffer.from(added)]);
    }
    const isQuoted = ((cells.flags[at] ?? 0) & 1) === 1 ? 1 : 0;
    const start = (cells.starts[at] ?? 0) - isQuoted;
    const end = (cells.ends[at] ?? 0) + isQuoted;
    return Buffer.concat([record.subarray(0, start), Buffer.from(written), record.subarray(end)]);
  }
}

const shownName = 80;
