import type { CsvCells } from './csv-cells.ts';
import { toByteString } from './json-text.ts';

/** Of UTF-8, as a byte string: a file that was put behind another keeps its own. */
const byteOrderMark = '\xef\xbb\xbf';

/** The header of a CSV, to be known again among its records: files that were put into one bring theirs along. */
export class RepeatedHeader {
  /** As byte strings. */
  readonly #names: readonly string[];
  readonly #idIndex: number;
  readonly #idName: Buffer;

  constructor(columns: readonly string[], idIndex: number) {
    this.#names = columns.map(toByteString);
    this.#idIndex = idIndex;
    this.#idName = Buffer.from(this.#names[idIndex] ?? '', 'latin1');
  }

  /** Of the record that `cells` has found. An id other than the name of its column costs a comparison or two. */
  isIn(bytes: Buffer, cells: CsvCells): boolean {
    const name = this.#idName;
    const from = cells.starts[this.#idIndex] ?? 0;
    const start = bytes[from] === 0xef && this.#idIndex === 0 ? from + byteOrderMark.length : from;
    if ((cells.ends[this.#idIndex] ?? 0) - start !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
    return this.isOf(this.#names.map((_, column) => cells.byteString(bytes, column)));
  }

  /** Of a record given as byte strings. Names that we have given to columns are not in the file, hence most of them will do. */
  isOf(cells: readonly string[]): boolean {
    const written = (column: number): string => {
      const cell = cells[column] ?? '';
      return column === 0 && cell.startsWith(byteOrderMark) ? cell.slice(byteOrderMark.length) : cell;
    };
    if (written(this.#idIndex) !== this.#names[this.#idIndex]) return false;
    const same = this.#names.filter((name, column) => written(column).trim() === name).length;
    return 2 * same > this.#names.length;
  }
}
