import type { Reject } from '../domain/reject.ts';
import { isRejectColumn, rejectColumns } from '../domain/reject-columns.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { csvCell, splitRecord } from './csv-record.ts';
import { readableText } from './readable-text.ts';

/**
 * A file of rejects as CSV: the columns of the source, then the reason. A record that stands in its columns is given cell
 * by cell, in the bytes it came in. Any other (a stray quote, too many cells, bytes that are no text, cut because of its
 * length) could shift or swallow what follows: its columns stay empty and the record is the text of `sluice_raw`. Sent
 * again unmended, such a line has no id and is refused again.
 */
export class RejectsAsCsv {
  readonly head: Buffer;
  readonly #columns: number;
  readonly #delimiter: string;
  /** Positions of the source's own columns; those of an earlier file of rejects are left out. */
  readonly #kept: readonly number[];

  constructor(header: CsvHeader | null) {
    const columns = header?.columns ?? [];
    this.#columns = columns.length;
    this.#delimiter = header?.delimiter ?? ',';
    this.#kept = [...columns.keys()].filter((at) => !isRejectColumn(columns[at] ?? ''));
    const names = [...this.#kept.map((at) => columns[at] ?? ''), ...rejectColumns];
    this.head = Buffer.from(`${names.map((name) => csvCell(name, this.#delimiter)).join(this.#delimiter)}\n`);
  }

  line(reject: Reject): Buffer {
    const cells = splitRecord(Buffer.from(reject.raw), this.#delimiter);
    const fits = cells !== null && cells.length === this.#columns;
    const own = this.#kept.map((at) => (fits ? (cells[at] ?? '') : ''));
    const { row, line, code, message, column } = reject;
    const raw = fits ? '' : readableText(reject.raw);
    const reason = [String(row), String(line), code, message, column ?? '', raw];
    const added = reason.map((cell) => csvCell(cell, this.#delimiter));
    return Buffer.from(`${[...own, ...added].join(this.#delimiter)}\n`);
  }
}
