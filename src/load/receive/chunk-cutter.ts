import type { ChunkRange } from '../../domain/load.ts';

interface HeldRecord {
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly oversized: boolean;
  /** End of the blank lines after the record. */
  blankEnd: number;
}

/** Maximum size of a chunk. The last record of a chunk may exceed `maxBytes`. */
interface ChunkBounds {
  readonly maxBytes: number;
  readonly maxRecords: number;
}

export interface CutterMark {
  readonly chunks: number;
  readonly rows: number;
  readonly held: readonly HeldRecord[];
  readonly start: number;
  readonly end: number;
  readonly firstRow: number;
  readonly firstLine: number;
}

/**
 * Combines records into chunks. A chunk starts with a record. Blank lines between two chunks belong
 * to the first of these chunks or to none.
 */
export class ChunkCutter {
  readonly chunks: ChunkRange[] = [];
  rows = 0;
  readonly #maxBytes: number;
  readonly #maxRecords: number;
  readonly #skipFooter: number;
  readonly #held: HeldRecord[] = [];
  /** Start of the open chunk. -1 if no chunk is open. */
  #start = -1;
  #end = 0;
  #firstRow = 0;
  #firstLine = 0;

  /** The last `skipFooter` records of the file belong to no chunk and are not counted. */
  constructor({ maxBytes, maxRecords }: ChunkBounds, skipFooter: number) {
    this.#maxBytes = maxBytes;
    this.#maxRecords = maxRecords;
    this.#skipFooter = skipFooter;
  }

  mark(): CutterMark {
    return {
      chunks: this.chunks.length,
      rows: this.rows,
      held: this.#held.map((record) => ({ ...record })),
      start: this.#start,
      end: this.#end,
      firstRow: this.#firstRow,
      firstLine: this.#firstLine,
    };
  }

  restore(mark: CutterMark): void {
    this.chunks.length = mark.chunks;
    this.rows = mark.rows;
    this.#held.splice(0, this.#held.length, ...mark.held);
    this.#start = mark.start;
    this.#end = mark.end;
    this.#firstRow = mark.firstRow;
    this.#firstLine = mark.firstLine;
  }

  record(start: number, end: number, line: number): void {
    if (this.#skipFooter > 0) this.#hold({ start, end, line, blankEnd: end, oversized: false });
    else this.#record(start, end, line);
  }

  blank(end: number): void {
    const last = this.#held.at(-1);
    if (last === undefined) this.#blank(end);
    else last.blankEnd = end;
  }

  /** A record that is too large to be read as a whole becomes a chunk of its own. */
  oversized(start: number, end: number, line: number): void {
    if (this.#skipFooter > 0) this.#hold({ start, end, line, blankEnd: end, oversized: true });
    else this.#oversized(start, end, line);
  }

  #hold(record: HeldRecord): void {
    this.#held.push(record);
    if (this.#held.length <= this.#skipFooter) return;
    const first = this.#held.shift() as HeldRecord;
    if (first.oversized) this.#oversized(first.start, first.end, first.line);
    else this.#record(first.start, first.end, first.line);
    if (first.blankEnd > first.end) this.#blank(first.blankEnd);
  }

  #record(start: number, end: number, line: number): void {
    this.rows++;
    if (this.#start < 0) {
      this.#start = start;
      this.#firstRow = this.rows;
      this.#firstLine = line;
    }
    this.#end = end;
    const isFull = this.rows - this.#firstRow + 1 >= this.#maxRecords;
    if (isFull || end - this.#start >= this.#maxBytes) this.close();
  }

  #blank(end: number): void {
    if (this.#start < 0) return;
    this.#end = end;
    if (end - this.#start >= this.#maxBytes) this.close();
  }

  #oversized(start: number, end: number, line: number): void {
    this.close();
    this.rows++;
    this.chunks.push({
      byteStart: start,
      byteEnd: end,
      firstRow: this.rows,
      firstLine: line,
      rowCount: 1,
      oversized: true,
    });
  }

  close(): void {
    if (this.#start < 0) return;
    this.chunks.push({
      byteStart: this.#start,
      byteEnd: this.#end,
      firstRow: this.#firstRow,
      firstLine: this.#firstLine,
      rowCount: this.rows - this.#firstRow + 1,
      oversized: false,
    });
    this.#start = -1;
  }
}
