import { inputError } from '../domain/errors.ts';
import { marksOf } from '../formats/csv-dialect.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createCsvScanner } from '../formats/csv-scanner.ts';
import { RefusedCsv } from './rejects-text.ts';

/** EditedCsv writes values into refused records of one CSV, in its dialect. All other cells stay as they are written. */
export class EditedCsv {
  readonly #header: CsvHeader;
  /** Stands between two cells. */
  readonly #between: string;
  readonly #records: RefusedCsv;

  constructor(header: CsvHeader) {
    this.#header = header;
    this.#records = new RefusedCsv(header);
    const { delimiter } = this.#records.dialect;
    this.#between = delimiter === 'blanks' ? ' ' : delimiter;
  }

  /** Tells whether the record ends where its bytes end, so that other records may follow it. */
  isWhole(record: Buffer): boolean {
    return this.#records.count(record) > 0;
  }

  /** Returns how many records the bytes are read as, and where the content of the first ends. */
  measure(bytes: Buffer): { readonly records: number; readonly end: number } {
    const scanner = createCsvScanner(marksOf(this.#header));
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
    const written = [...this.#records.writtenCells(record), ...missing];
    return this.#findMeant(
      meant,
      this.#writings(value).map((cell) => written.with(at, cell)),
    );
  }

  /** Returns a record with these cells; `null` if the dialect cannot hold them. */
  write(cells: readonly string[]): Buffer | null {
    const ways = cells.map((text) => this.#writings(text));
    return this.#findMeant(
      cells,
      [0, 1, 2].map((way) => ways.map((each) => each[way] ?? each.at(-1) ?? '')),
      // It may read as a comment, or as nothing.
      (record) => this.measure(record).records === 1,
    );
  }

  #findMeant(
    meant: readonly string[],
    ways: readonly (readonly string[])[],
    isTaken = (_: Buffer) => true,
  ): Buffer | null {
    const isMeant = (bytes: Buffer): boolean => {
      const found = this.#records.allCells(bytes);
      return (
        found?.length === meant.length && meant.every((text, cell) => text === found[cell]) && isTaken(bytes)
      );
    };
    return ways.map((cells) => Buffer.from(cells.join(this.#between))).find(isMeant) ?? null;
  }

  /** Returns the ways to write a value, the plainest first. */
  #writings(value: string): string[] {
    const { quote, escape: marks } = this.#records.dialect;
    const masked = (characters: string): string =>
      [...value].map((each) => (characters.includes(each) ? marks + each : each)).join('');
    const bare = marks === '' || marks === quote ? value : masked(`${marks}${quote}${this.#between}\r\n`);
    const isPadded = value !== value.trim();
    const quoted = quote === '' ? [] : [`${quote}${masked(quote + marks)}${quote}`];
    return isPadded ? [...quoted, value, bare] : [value, bare, ...quoted];
  }
}

const shownName = 80;
