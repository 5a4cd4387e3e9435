import { defuse } from '../base/formula.ts';
import { MAX_HEADER_BYTES, READ_BYTES } from '../base/limits.ts';
import { automaticProperties } from '../domain/entity.ts';
import { isRejectColumn } from '../domain/reject.ts';
import { encodeUtf8 } from './utf8.ts';

/*
 * CSV that sluice writes for itself: RFC 4180 with commas, LF, and quotes only where needed.
 */

const COMMA = 44;
const LF = 10;
/**
 * Maximum size of the padding. Without a maximum, one cell far to the right would cause a huge
 * file.
 */
const MAX_PADDING_BYTES = 64 * 1024 * 1024;
/**
 * Pattern of text that readers misinterpret unless it is quoted, such as a value with a blank at
 * its end.
 */
const needsQuotes = /[",\r\n]|^[ \t]|[ \t]$/;
const halfPair = /[\ud800-\udfff]/u;

export function csvCell(text: string): Buffer {
  const cell = needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return cell.isWellFormed() ? Buffer.from(cell) : encodeUtf8(cell, halfPair);
}

interface OpenRow {
  readonly end: number;
  readonly columns: number;
}

/**
 * Writes a table as CSV. The rows in the first MAX_HEADER_BYTES are padded to the widest of them,
 * because shorter records would lack cells. Later rows may be wider. A row without cells becomes an
 * empty line.
 */
export class CsvText {
  #buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  #length = 0;
  #full: Buffer[] = [];
  /** Rows to pad. `null` once the width is known. */
  #openRows: OpenRow[] | null = [];
  #width = 0;
  #columns = 0;
  #rows = 0;

  get hasReady(): boolean {
    return this.#full.length > 0;
  }

  /**
   * Adds a cell. `bytes` is the result of `csvCell`. `row` and `column` begin at 1. Rows must not
   * decrease, and columns must increase within a row.
   */
  cell(row: number, column: number, bytes: Buffer): void {
    if (row > this.#rows) this.#startRow(row);
    const commas = this.#columns === 0 ? column - 1 : column - this.#columns;
    this.#fill(COMMA, commas);
    this.#reserve(bytes.length);
    this.#length += bytes.copy(this.#buffer, this.#length);
    this.#columns = column;
  }

  end(): void {
    if (this.#rows > 0) this.#startRow(this.#rows + 1);
    this.#release();
  }

  take(final: boolean): readonly Buffer[] {
    if (final) this.#flush(0);
    const ready = this.#full;
    if (ready.length > 0) this.#full = [];
    return ready;
  }

  #startRow(row: number): void {
    if (this.#columns > 0) this.#endCells();
    this.#fill(LF, row - Math.max(1, this.#rows));
    this.#rows = row;
    this.#columns = 0;
  }

  #endCells(): void {
    if (this.#openRows === null) {
      this.#fill(COMMA, Math.max(0, this.#width - this.#columns));
      return;
    }
    this.#width = Math.max(this.#width, this.#columns);
    this.#openRows.push({ end: this.#length, columns: this.#columns });
    if (this.#length >= MAX_HEADER_BYTES) this.#release();
  }

  #release(): void {
    if (this.#openRows === null) return;
    const rows = this.#openRows;
    const narrow = this.#buffer.subarray(0, this.#length);
    this.#openRows = null;
    this.#buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    this.#length = 0;
    if (rows.length * this.#width > MAX_PADDING_BYTES) this.#width = 0;
    let start = 0;
    for (const { end, columns } of rows) {
      this.#reserve(end - start);
      this.#length += narrow.copy(this.#buffer, this.#length, start, end);
      this.#fill(COMMA, Math.max(0, this.#width - columns));
      start = end;
    }
    this.#reserve(narrow.length - start);
    this.#length += narrow.copy(this.#buffer, this.#length, start);
  }

  #fill(byte: number, count: number): void {
    if (count === 0) return;
    this.#reserve(count);
    this.#buffer.fill(byte, this.#length, this.#length + count);
    this.#length += count;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    if (this.#openRows === null) {
      this.#flush(bytes);
      return;
    }
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + bytes));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }

  #flush(room: number): void {
    if (this.#length > 0) this.#full.push(this.#buffer.subarray(0, this.#length));
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(READ_BYTES, room));
    this.#length = 0;
  }
}

/** Headers of our event exports, as files and as a stream. */
const exportedEvents: ReadonlySet<string> = new Set([
  'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata',
  'event_type,user_id,company_id,inserted_at,event_id,event_name,source,metadata',
]);

/**
 * Returns the header of an exported CSV file. Quotes a name that contains another common delimiter,
 * because a load detects the delimiter from the header.
 */
export function exportHeader(names: readonly string[], escapeFormulas: boolean): string {
  const cells = names.map((name) => {
    const cell = escapeFormulas ? defuse(name) : name;
    return /[",;|\t\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  });
  return cells.join(',');
}

/**
 * True if sluice wrote the file. An apostrophe before a formula is then not part of the value
 * (`src/base/formula.ts`).
 */
export function isOwnHeader(columns: readonly string[]): boolean {
  if (columns.some(isRejectColumn)) return true;
  return automaticProperties.every((name) => columns.includes(name)) || exportedEvents.has(columns.join(','));
}
