import type { ChunkRange } from '../../domain/chunk.ts';

/**
 * Gathers records into chunks of about `chunkBytes`. A chunk starts with a record and ends after one, or after
 * blank lines that follow it. Between two chunks lies nothing, or blank lines (they are no reason to make one).
 */
export class ChunkCutter {
  readonly chunks: ChunkRange[] = [];
  /** Records so far. */
  rows = 0;
  readonly #chunkBytes: number;
  /** Start of the open chunk, or -1. */
  #start = -1;
  #end = 0;
  #firstRow = 0;
  #firstLine = 0;

  constructor(chunkBytes: number) {
    this.#chunkBytes = chunkBytes;
  }

  record(start: number, end: number, line: number): void {
    this.rows++;
    if (this.#start < 0) {
      this.#start = start;
      this.#firstRow = this.rows;
      this.#firstLine = line;
    }
    this.#end = end;
    if (end - this.#start >= this.#chunkBytes) this.close();
  }

  blank(end: number): void {
    if (this.#start < 0) return;
    this.#end = end;
    if (end - this.#start >= this.#chunkBytes) this.close();
  }

  /** A record that is never to be read whole: a chunk of its own. */
  oversized(start: number, end: number, line: number): void {
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

  /** Ends the open chunk, if any. */
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
