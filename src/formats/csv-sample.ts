import { positionOf } from '../domain/column-map.ts';
import { idColumn } from '../domain/entity.ts';
import { kindOf } from './csv-cell-kinds.ts';
import { CellTable } from './csv-cell-table.ts';
import { type CsvDialect, type CsvMarks, marksOf } from './csv-dialect.ts';
import { joinRows, namesOf } from './csv-header.ts';
import { createCsvScanner } from './csv-scanner.ts';
import type { RecordScanner } from './record-scanner.ts';

const maxPreambleBytes = 256 * 1_024;
const maxPreambleRecords = 100;
/** Maximum numbers of records that `measure` and `score` read to judge a dialect. */
const maxMeasuredRecords = 20_000;
const maxScoredRecords = 500;

/** A quoted cell that is still open after this number of bytes counts as unclosed. */
const longCellBytes = 64 * 1024;
const HASH = 35;

export interface Place {
  readonly start: number;
  readonly lines: number;
  /** Start of the first record after the header. */
  readonly end: number;
  readonly cells: readonly string[];
  readonly rows: number;
  /** True if a record before the header also looks like part of the table. */
  readonly isDoubtful: boolean;
}

export interface Measure {
  /** Number of good records. A good record has as many cells as there are columns. */
  readonly good: number;
  /** Start positions of all records that are not good. */
  readonly bad: ReadonlySet<number>;
  /** Number of quoted cells in good records. */
  readonly quoted: number;
  /** Number of unquoted, non-empty cells in all records. */
  readonly bare: number;
  /**
   * Number of good records without missing or surplus cells, and how many of these records end in
   * an empty cell.
   */
  readonly exact: number;
  readonly lastEmpty: number;
  /** Number of escapes before bytes that need no escape. */
  readonly oddEscapes: number;
}

export interface Score {
  /** The most frequent number of cells in a record. */
  readonly width: number;
  /** Share (0 to 1) of the records with this number of cells. */
  readonly share: number;
  /** Share of the cells in those records whose kind is known. */
  readonly known: number;
  readonly records: readonly (readonly string[])[];
}

/** Records of a sample, split as in a load. `scanner` and `cells` describe the record read last. */
class SampledRecords {
  readonly cells = new CellTable();
  readonly bytes: Buffer;
  readonly marks: CsvMarks;
  readonly scanner: RecordScanner;
  readonly #isWhole: boolean;

  constructor(bytes: Buffer, isWhole: boolean, dialect: CsvDialect) {
    this.bytes = bytes;
    this.#isWhole = isWhole;
    this.marks = marksOf(dialect);
    this.scanner = createCsvScanner(this.marks, bytes.length, this.cells);
  }

  /** Returns the record's end with its terminator, or -1 if it continues after the sample. */
  next(start: number): number {
    const { bytes, scanner } = this;
    const end = scanner.next(bytes, start, bytes.length, true);
    // Here, every problem is a misplaced or unclosed quote, so the cells are not reliable.
    if (scanner.problem !== null) this.cells.clear();
    if (this.#isWhole) return end;
    const mayClose = scanner.isUnclosed && bytes.length - start <= longCellBytes;
    return mayClose || end === bytes.length ? -1 : end;
  }

  *from(start: number): Generator<number> {
    let at = start;
    while (at < this.bytes.length) {
      const next = this.next(at);
      if (next < 0) return;
      if (!this.scanner.blank) yield at;
      at = next;
    }
  }

  /** Returns no cells if the record read last is malformed. */
  texts(): string[] {
    return this.cells.texts(this.bytes, this.marks);
  }
}

export class CsvSample {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
  readonly #head: Buffer;
  readonly #isHeadWhole: boolean;
  readonly #map: Readonly<Record<string, string>>;
  readonly #meanings: ReadonlyMap<string, string>;

  constructor(bytes: Buffer, isWhole: boolean, map: Readonly<Record<string, string>>) {
    this.bytes = bytes;
    this.isWhole = isWhole;
    this.#head = bytes.subarray(0, maxPreambleBytes);
    this.#isHeadWhole = isWhole && bytes.length <= maxPreambleBytes;
    this.#map = map;
    this.#meanings = new Map(Object.entries(map).map(([name, meaning]) => [name.trim(), meaning]));
  }

  findFirst(dialect: CsvDialect, rows: number): Place | null {
    const place = this.#place(this.#records(dialect), 1, rows);
    return place !== null && this.isHeader(place.cells) ? place : null;
  }

  /** Returns the first header that consists of `rows` consecutive records. */
  findHeader(dialect: CsvDialect, rows: number): Place | null {
    const records = this.#headRecords(dialect);
    const before: { cells: readonly string[]; start: number; lines: number; isHash: boolean }[] = [];
    let lines = 0;
    let isAfterBlank = false;
    let at = 0;
    while (before.length < maxPreambleRecords && at < this.#head.length) {
      const next = records.next(at);
      if (next < 0) break;
      if (records.scanner.blank) isAfterBlank = true;
      else {
        before.push({ cells: records.texts(), start: at, lines, isHash: this.bytes[at] === HASH });
        const last = before.slice(-rows);
        const names = joinRows(last.map((each) => each.cells));
        const [first] = last;
        if (first !== undefined && last.length === rows && this.isHeader(names)) {
          const earlier = before.slice(0, -rows);
          const isDoubtful =
            !isAfterBlank && earlier.some((each) => !each.isHash && isFull(each.cells, names.length));
          return { start: first.start, lines: first.lines, end: next, cells: names, rows, isDoubtful };
        }
        isAfterBlank = false;
      }
      lines += records.scanner.lines;
      at = next;
    }
    return null;
  }

  /** Returns true if the cells name an id column and every column of `map`. */
  isHeader(cells: readonly string[]): boolean {
    const names = namesOf(cells.map((cell) => cell.trim())).columns;
    const isKey = (meaning: string) => meaning === idColumn.users || meaning === idColumn.companies;
    const allNames = new Set([...cells, ...names]);
    const mapped = Object.entries(this.#map).filter(
      ([name]) => allNames.has(name) || allNames.has(name.trim()),
    );
    const byPosition = Object.entries(this.#map).filter(([name]) => {
      const position = positionOf(name);
      return position !== null && position < cells.length && !allNames.has(name.trim());
    });
    const isThere = mapped.length + byPosition.length === Object.keys(this.#map).length;
    const isNamed = names.some((name) => isKey(this.#meanings.get(name) ?? name));
    return isThere && (isNamed || byPosition.some(([, meaning]) => isKey(meaning)));
  }

  /** Returns no cells if the record is malformed or continues after the sample. */
  recordAt(dialect: CsvDialect, start: number): string[] {
    const records = this.#records(dialect);
    return records.next(start) < 0 ? [] : records.texts();
  }

  /** Returns the header that begins at a given record. The `number` of the first record is 1. */
  findRecord(dialect: CsvDialect, number: number, rows: number): Place | null {
    return this.#place(this.#headRecords(dialect), number, rows);
  }

  #place(records: SampledRecords, number: number, rows: number): Place | null {
    const header: (readonly string[])[] = [];
    let start = 0;
    let startLine = 0;
    let lines = 0;
    let count = 0;
    let at = 0;
    while (at < records.bytes.length) {
      const next = records.next(at);
      if (next < 0) break;
      if (!records.scanner.blank) {
        count++;
        if (count === number) {
          start = at;
          startLine = lines;
        }
        if (count >= number) header.push(records.texts());
      }
      lines += records.scanner.lines;
      at = next;
      if (header.length === rows) {
        return { start, lines: startLine, end: at, cells: joinRows(header), rows, isDoubtful: false };
      }
    }
    return null;
  }

  #records(dialect: CsvDialect): SampledRecords {
    return new SampledRecords(this.bytes, this.isWhole, dialect);
  }

  #headRecords(dialect: CsvDialect): SampledRecords {
    return new SampledRecords(this.#head, this.#isHeadWhole, dialect);
  }

  measure(dialect: CsvDialect, start: number, width: number, isPadded: boolean): Measure {
    const records = this.#records(dialect);
    const { cells, scanner } = records;
    const bad = new Set<number>();
    let good = 0;
    let quoted = 0;
    let bare = 0;
    let exact = 0;
    let lastEmpty = 0;
    let oddEscapes = 0;
    for (const at of records.from(start)) {
      oddEscapes += cells.oddEscapes(this.bytes, records.marks);
      const isGood = scanner.problem === null && cells.fits(this.bytes, width, isPadded);
      for (let cell = 0; cell < cells.count; cell++) {
        if (!cells.isQuoted(cell)) bare += cells.isEmpty(this.bytes, cell) ? 0 : 1;
        else if (isGood) quoted++;
      }
      if (isGood) good++;
      else bad.add(at);
      if (isGood && cells.count === width) {
        exact++;
        if (cells.isEmpty(this.bytes, width - 1)) lastEmpty++;
      }
      if (good + bad.size === maxMeasuredRecords) break;
    }
    return { good, bad, quoted, bare, exact, lastEmpty, oddEscapes };
  }

  score(dialect: CsvDialect, start = 0): Score {
    const sampled = this.#headRecords(dialect);
    const counts = new Map<number, number>();
    const records: string[][] = [];
    for (const _ of sampled.from(start)) {
      if (records.length === maxScoredRecords) break;
      records.push(sampled.texts());
      const { count } = sampled.cells;
      counts.set(count, (counts.get(count) ?? 0) + 1);
    }
    const [width, fitting] = [...counts].reduce(
      (a, b) => (b[1] > a[1] || (b[1] === a[1] && b[0] > a[0]) ? b : a),
      [0, 0] as [number, number],
    );
    const cells = records.filter((record) => record.length === width).flat();
    const knownCells = cells.filter((cell) => kindOf(cell) !== 'other').length;
    return {
      width,
      share: fitting / Math.max(1, records.length),
      known: knownCells / Math.max(1, cells.length),
      records,
    };
  }
}

/** The first cell may be empty, because the first column of a header may have no name. */
function isFull(cells: readonly string[], width: number): boolean {
  return cells.length === width && cells.slice(1).every((cell) => cell.trim() !== '');
}
