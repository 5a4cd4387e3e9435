import { CsvError, type Options, parse } from 'csv-parse/sync';
import type { CellTable } from './csv-cell-table.ts';
import { type CsvMarks, isBlankByte } from './csv-dialect.ts';
import type { ScanProblem } from './record-scanner.ts';

/*
 * Reads the cells of records in any dialect with csv-parse. The scanner has already found the ends
 * of the records, so a refused record does not affect other records. Records have one character per
 * byte. A character that csv-parse must take literally is masked: 0x100 is added to its code until
 * it is parsed.
 */

const MASK_OFFSET = 0x100;
const aboveBytes = /[\u0100-\uffff]/g;
const doubts = /[\u0200-\u02ff]/;
/** Bytes of 0x80 or more count as letters. */
const apostrophe = /(?<=[A-Za-z0-9\x80-\xff])'(?=[A-Za-z0-9\x80-\xff])/g;

/** Characters for which an escape and a letter stand in database exports without quotes. */
const letters: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
};

export type ReadCells = readonly string[] | ScanProblem | 'invalid_escape';

export class DialectReader {
  readonly #marks: CsvMarks;
  readonly #options: Options;
  readonly #hasApostrophes: boolean;
  readonly #escapes: RegExp | null;
  readonly #between: string;

  constructor(marks: CsvMarks) {
    const { delimiter, isBlanks, quote, escape: escapes } = marks;
    const escapePattern =
      escapes < 0 || escapes === quote ? '' : `\\x${escapes.toString(16).padStart(2, '0')}`;
    this.#marks = marks;
    this.#between = isBlanks ? ' ' : delimiter.toString('latin1');
    this.#hasApostrophes = marks.hasApostrophes;
    this.#escapes = escapePattern === '' ? null : new RegExp(`${escapePattern}(\\r\\n|[^])?`, 'g');
    this.#options = {
      delimiter: this.#between,
      quote: quote < 0 ? null : String.fromCharCode(quote),
      escape: escapes >= 0 && escapes === quote ? String.fromCharCode(quote) : null,
      record_delimiter: '\n',
      relax_column_count: true,
    };
  }

  /**
   * True if the dialect has runs of blanks or `nulls`, which csv-parse cannot read. `text` then
   * assembles the record from the scanner's cells.
   */
  get needsCells(): boolean {
    return this.#marks.isBlanks || this.#marks.nulls.length > 0;
  }

  /** Returns a well-formed record as `read` expects it. `cells` are the cells of that record. */
  text(bytes: Buffer, start: number, end: number, cells: CellTable): string {
    if (!this.needsCells) return this.#mask(bytes.toString('latin1', start, end));
    const texts = Array.from({ length: cells.count }, (_, cell) =>
      cells.isNull(cell, bytes, this.#marks) ? '' : this.#mask(cells.written(cell, bytes)),
    );
    return texts.join(this.#between);
  }

  read(records: readonly string[]): ReadCells[] {
    const all = this.#parse(records);
    if (all !== null) return all.map((cells) => this.#unmask(cells));
    return records.map((record) => {
      const [cells] = this.#parse([record]) ?? [];
      return cells === undefined ? 'invalid_quote' : this.#unmask(cells);
    });
  }

  /** Parses the records. Returns `null` unless csv-parse returns exactly one record per string. */
  #parse(records: readonly string[]): readonly (readonly string[])[] | null {
    try {
      const parsed = parse(`${records.join('\n')}\n`, this.#options);
      return parsed.length === records.length ? parsed : null;
    } catch (error) {
      if (error instanceof CsvError) return null;
      throw error;
    }
  }

  #mask(text: string): string {
    const words = this.#hasApostrophes ? text.replace(apostrophe, mask) : text;
    if (this.#escapes === null) return words;
    return words.replace(this.#escapes, (match: string, escaped = '') => this.#meaning(match, escaped));
  }

  #meaning(match: string, escaped: string): string {
    const { quote, escape: escapes, delimiter, isBlanks, comment } = this.#marks;
    if (escaped === '\r\n') return mask('\r') + mask('\n');
    const byte = escaped.charCodeAt(0);
    const isMark = [quote, escapes, delimiter[0], comment[0], 10, 13].includes(byte);
    if (isMark || (isBlanks && isBlankByte(byte))) return mask(escaped);
    const letter = quote < 0 ? letters[escaped] : undefined;
    // The escape may be part of the value. It is masked twice so that `#unmask` refuses the record.
    return letter === undefined ? mask(mask(match.charAt(0))) + escaped : mask(letter);
  }

  #unmask(cells: readonly string[]): ReadCells {
    if (this.#escapes === null && !this.#hasApostrophes) return cells;
    if (this.#escapes !== null && cells.some((cell) => doubts.test(cell))) return 'invalid_escape';
    return cells.map((cell) => cell.replace(aboveBytes, unmask));
  }
}

function mask(character: string): string {
  return String.fromCharCode(character.charCodeAt(0) + MASK_OFFSET);
}

function unmask(character: string): string {
  return String.fromCharCode(character.charCodeAt(0) & 0xff);
}
