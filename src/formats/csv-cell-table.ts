import { type CsvMarks, isBlankByte } from './csv-dialect.ts';
import { CR, LF } from './record-scanner.ts';

const BACKSLASH = 92;
const leastCells = 1024;

export class CellTable {
  count = 0;
  starts = new Int32Array(leastCells);
  ends = new Int32Array(leastCells);
  /**
   * Flags of each cell. Bit 1: the cell is quoted. Bit 2: it contains doubled quotes or escapes.
   */
  flags = new Uint8Array(leastCells);

  clear(): void {
    this.count = 0;
  }

  add(start: number, end: number, isQuoted: boolean, isMarked: boolean): void {
    if (this.count === this.starts.length) this.#grow();
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.flags[this.count] = (isQuoted ? 1 : 0) | (isMarked ? 2 : 0);
    this.count++;
  }

  isQuoted(cell: number): boolean {
    return ((this.flags[cell] ?? 0) & 1) === 1;
  }

  isMarked(cell: number): boolean {
    return ((this.flags[cell] ?? 0) & 2) === 2;
  }

  /**
   * Returns true if all cells after the first `width` are empty. Unless `isPadded`, there must be
   * at least `width` cells.
   */
  fits(bytes: Buffer, width: number, isPadded: boolean): boolean {
    if (this.count < width && !isPadded) return false;
    for (let cell = width; cell < this.count; cell++) if (!this.isEmpty(bytes, cell)) return false;
    return true;
  }

  /** A cell with only unquoted blanks is also empty. */
  isEmpty(bytes: Buffer, cell: number): boolean {
    let at = this.starts[cell] ?? 0;
    const end = this.ends[cell] ?? 0;
    if (!this.isQuoted(cell)) while (at < end && isBlankByte(bytes[at])) at++;
    return at === end;
  }

  texts(bytes: Buffer, marks: CsvMarks): string[] {
    return Array.from({ length: this.count }, (_, cell) => this.text(cell, bytes, marks));
  }

  text(cell: number, bytes: Buffer, marks: CsvMarks): string {
    const text = bytes.toString('utf8', this.starts[cell], this.ends[cell]);
    if (!this.isMarked(cell)) return text;
    if (marks.escape === BACKSLASH) return text.replace(/\\(.)/gs, '$1');
    const quote = String.fromCharCode(marks.quote);
    return text.replaceAll(quote + quote, quote);
  }

  /** Returns the raw cell with its quotes, one character per byte. */
  written(cell: number, bytes: Buffer): string {
    const around = this.isQuoted(cell) ? 1 : 0;
    return bytes.toString('latin1', (this.starts[cell] ?? 0) - around, (this.ends[cell] ?? 0) + around);
  }

  /**
   * Counts escapes before bytes that need no escape (`C:\dir`). Such an escape may be part of the
   * value.
   */
  oddEscapes(bytes: Buffer, { quote, escape: escapes, delimiter }: CsvMarks): number {
    if (escapes === quote) return 0;
    let odd = 0;
    for (let cell = 0; cell < this.count; cell++) {
      if (!this.isMarked(cell)) continue;
      for (let at = this.starts[cell] ?? 0; at < (this.ends[cell] ?? 0); at++) {
        if (bytes[at] !== escapes) continue;
        const next = bytes[++at];
        if (![quote, escapes, delimiter[0], LF, CR].includes(next)) odd++;
      }
    }
    return odd;
  }

  isNull(cell: number, source: Buffer, { nulls }: CsvMarks): boolean {
    if (nulls.length === 0 || this.isQuoted(cell)) return false;
    const start = this.starts[cell] ?? 0;
    const end = this.ends[cell] ?? 0;
    return nulls.some((word) => word.length === end - start && word.compare(source, start, end) === 0);
  }

  #grow(): void {
    const { starts, ends, flags } = this;
    this.starts = new Int32Array(2 * starts.length);
    this.ends = new Int32Array(2 * ends.length);
    this.flags = new Uint8Array(2 * flags.length);
    this.starts.set(starts);
    this.ends.set(ends);
    this.flags.set(flags);
  }
}
