import { positionOf } from '../domain/column-map.ts';
import { idColumn } from '../domain/entity.ts';
import { CsvCutter } from './csv-cutter.ts';
import type { CsvDialect } from './csv-dialect.ts';
import { kindOf } from './csv-kinds.ts';
import { distinctNames, joinRows } from './csv-names.ts';

/** Where a header is looked for at most: so far from the start, and behind so many records. */
const maxPreambleBytes = 256 * 1_024;
const maxPreambleRecords = 100;
/** Records by which one dialect is held against another, where a header says that they fit, and where none does. */
const maxMeasuredRecords = 20_000;
const maxScoredRecords = 500;

/** From so many records on, what a column mostly is says something about all others. */
const leastRegular = 10;
const HASH = 35;

/** Where a header stands in a sample. */
export interface Place {
  readonly start: number;
  /** Lines before it. */
  readonly lines: number;
  /** Where the first record after it starts. */
  readonly end: number;
  readonly cells: readonly string[];
  /** Records that it is made of. */
  readonly rows: number;
  /** Something before it looks like a record of the table as well. */
  readonly isDoubtful: boolean;
}

/** How the records of a sample are cut by a dialect. */
export interface Measure {
  /** Records with as many cells as there are columns. */
  readonly good: number;
  /** Where the others start. */
  readonly bad: ReadonlySet<number>;
  /** Cells in quotes, in good records. */
  readonly quoted: number;
  /** Good records that begin with `#`, and others. */
  readonly goodHashes: number;
  readonly badHashes: number;
  /** Escapes of what needs none. */
  readonly oddEscapes: number;
}

/** What kinds of cells a dialect gives, and how many of them in a record. */
export interface Score {
  /** Cells that most records have. */
  readonly width: number;
  /** Of the records, those that have so many: 0 to 1. */
  readonly share: number;
  /** Of their cells, those of a kind that is known. */
  readonly known: number;
  readonly records: readonly (readonly string[])[];
}

/** The first bytes of a CSV, from where its first line starts, and questions about them. */
export class CsvSample {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
  /** Where a header is looked for. */
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

  /** The header that the first record, or the first `rows`, make, if they name an id column and all columns that `map` names. */
  findFirst(dialect: CsvDialect, rows: number): Place | null {
    const place = this.#record(new CsvCutter(this.bytes, this.isWhole, dialect), this.bytes.length, 1, rows);
    return place !== null && this.isHeader(place.cells) ? place : null;
  }

  /** The first records that name an id column, and all columns that `map` names; `rows` of them make a header. */
  findHeader(dialect: CsvDialect, rows: number): Place | null {
    const cutter = this.#cutHead(dialect);
    const before: { cells: readonly string[]; start: number; lines: number; isHash: boolean }[] = [];
    let lines = 0;
    let isAfterBlank = false;
    for (let at = 0, number = 0; number < maxPreambleRecords && at < this.#head.length; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      const cells = cutter.isBad ? [] : cutter.cells();
      if (cells.every((cell) => cell.trim() === '') && !cutter.isBad) isAfterBlank = true;
      else if (!cutter.isComment) {
        number++;
        before.push({ cells, start: at, lines, isHash: this.bytes[at] === HASH });
        const made = before.slice(-rows);
        const first = made[0];
        const names = joinRows(made.map((each) => each.cells));
        if (first !== undefined && made.length === rows && this.isHeader(names)) {
          const earlier = before.slice(0, -rows);
          const isDoubtful =
            !isAfterBlank && earlier.some((each) => !each.isHash && isFull(each.cells, names.length));
          return { start: first.start, lines: first.lines, end: next, cells: names, rows, isDoubtful };
        }
        isAfterBlank = false;
      }
      lines += cutter.lines;
      at = next;
    }
    return null;
  }

  /** Whether a record of these cells names an id column, and every column that `map` names. */
  isHeader(cells: readonly string[]): boolean {
    const names = distinctNames(cells.map((cell) => cell.trim())).columns;
    const isKey = (meaning: string) => meaning === idColumn.users || meaning === idColumn.companies;
    const there = new Set([...cells, ...names]);
    const mapped = Object.entries(this.#map).filter(([name]) => there.has(name) || there.has(name.trim()));
    const byPosition = Object.entries(this.#map).filter(([name]) => {
      const position = positionOf(name);
      return position !== null && position < cells.length && !there.has(name.trim());
    });
    const isThere = mapped.length + byPosition.length === Object.keys(this.#map).length;
    const isNamed = names.some((name) => isKey(this.#meanings.get(name) ?? name));
    return isThere && (isNamed || byPosition.some(([, meaning]) => isKey(meaning)));
  }

  /** The `number`-th record, from 1, and those after it that make the header with it. */
  findRecord(dialect: CsvDialect, number: number, rows: number): Place | null {
    return this.#record(this.#cutHead(dialect), this.#head.length, number, rows);
  }

  #record(cutter: CsvCutter, length: number, number: number, rows: number): Place | null {
    const made: (readonly string[])[] = [];
    let [start, startLine, lines, seen] = [0, 0, 0, 0];
    for (let at = 0; at < length; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      if (!cutter.isComment && !isBlank(cutter)) {
        seen++;
        if (seen === number) [start, startLine] = [at, lines];
        if (seen >= number) made.push(cutter.isBad ? [] : cutter.cells());
      }
      lines += cutter.lines;
      at = next;
      if (made.length === rows) {
        return { start, lines: startLine, end: at, cells: joinRows(made), rows, isDoubtful: false };
      }
    }
    return null;
  }

  #cutHead(dialect: CsvDialect): CsvCutter {
    return new CsvCutter(this.#head, this.#isHeadWhole, dialect);
  }

  /** How the dialect cuts the records from `start` on, where the header has `width` columns. */
  measure(dialect: CsvDialect, start: number, width: number, isPadded: boolean): Measure {
    const cutter = new CsvCutter(this.bytes, this.isWhole, dialect);
    const bad = new Set<number>();
    let [good, quoted, goodHashes, badHashes, oddEscapes] = [0, 0, 0, 0, 0];
    for (let at = start; at < this.bytes.length && good + bad.size < maxMeasuredRecords; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      if (!cutter.isComment && !isBlank(cutter)) {
        const isHash = this.bytes[at] === HASH;
        oddEscapes += cutter.oddEscapes;
        if (!cutter.isBad && fits(cutter, width, isPadded)) {
          good++;
          quoted += cutter.quoted;
          if (isHash) goodHashes++;
        } else {
          bad.add(at);
          if (isHash) badHashes++;
        }
      }
      at = next;
    }
    return { good, bad, quoted, goodHashes, badHashes, oddEscapes };
  }

  /** Whether every cell behind the header that holds something stands in quotes: two at least. */
  isQuoted(dialect: CsvDialect, { end }: Place): boolean {
    const cutter = new CsvCutter(this.bytes, this.isWhole, dialect);
    let quoted = 0;
    for (let at = end; at < this.bytes.length; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      if (!cutter.isBad && !cutter.isComment) {
        for (let index = 0; index < cutter.count; index++) {
          if (cutter.isQuoted(index)) quoted++;
          else if (!cutter.isEmpty(index)) return false;
        }
      }
      at = next;
    }
    return quoted >= 2;
  }

  /** Whether the last of `width` columns is empty in most records from `start` on that have so many cells. */
  isLastEmpty(dialect: CsvDialect, start: number, width: number): boolean {
    const cutter = new CsvCutter(this.bytes, this.isWhole, dialect);
    let [regular, empty] = [0, 0];
    for (let at = start; at < this.bytes.length; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      if (!cutter.isComment && !cutter.isBad && cutter.count === width && !isBlank(cutter)) {
        regular++;
        if (cutter.isEmpty(width - 1)) empty++;
      }
      at = next;
    }
    return regular >= leastRegular && 2 * empty > regular;
  }

  /** Tells whether every record from `start` on that fits `width` columns has empty cells beyond them, and there is one. */
  isWider(dialect: CsvDialect, start: number, width: number): boolean {
    const cutter = new CsvCutter(this.bytes, this.isWhole, dialect);
    let isWider = false;
    for (let at = start; at < this.bytes.length; ) {
      const next = cutter.next(at);
      if (next < 0) break;
      if (!cutter.isComment && !cutter.isBad && !isBlank(cutter) && fits(cutter, width, false)) {
        if (cutter.count === width) return false;
        isWider = true;
      }
      at = next;
    }
    return isWider;
  }

  /** How well the dialect cuts the first records from `start` on, whatever they are. */
  score(dialect: CsvDialect, start = 0): Score {
    const cutter = this.#cutHead(dialect);
    const counts = new Map<number, number>();
    const records: string[][] = [];
    for (let at = start; at < this.#head.length; ) {
      const next = cutter.next(at);
      if (next < 0 || records.length === maxScoredRecords) break;
      if (!cutter.isComment && !isBlank(cutter)) {
        records.push(cutter.isBad ? [] : cutter.cells());
        const count = cutter.isBad ? 0 : cutter.count;
        counts.set(count, (counts.get(count) ?? 0) + 1);
      }
      at = next;
    }
    const [width, fitting] = [...counts].reduce(
      (a, b) => (b[1] > a[1] || (b[1] === a[1] && b[0] > a[0]) ? b : a),
      [0, 0] as [number, number],
    );
    const cells = records.filter((record) => record.length === width).flat();
    const known = cells.filter((cell) => kindOf(cell) !== 'other').length;
    return {
      width,
      share: fitting / Math.max(1, records.length),
      known: known / Math.max(1, cells.length),
      records,
    };
  }
}

/** Whether the record may be the header of so many columns: of these, only the first is ever left without a name. */
function isFull(cells: readonly string[], width: number): boolean {
  return cells.length === width && cells.slice(1).every((cell) => cell.trim() !== '');
}

function isBlank(cutter: CsvCutter): boolean {
  for (let index = 0; index < cutter.count; index++) if (!cutter.isEmpty(index)) return false;
  return !cutter.isBad;
}

function fits(cutter: CsvCutter, width: number, isPadded: boolean): boolean {
  if (cutter.count < width) return isPadded;
  for (let index = width; index < cutter.count; index++) if (!cutter.isEmpty(index)) return false;
  return true;
}
