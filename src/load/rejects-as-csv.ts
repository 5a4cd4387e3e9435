import { defuse, undoDefuse } from '../domain/formula.ts';
import type { Reject } from '../domain/reject.ts';
import { isRejectColumn, rejectColumns } from '../domain/reject-columns.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createRecordSplitter, csvCell, type RecordCell } from './csv-record.ts';
import { readableText } from './readable-text.ts';

/**
 * A file of rejects as CSV: the columns of the source, then the reason. A record that stands in its columns is given cell
 * by cell, in the bytes it came in, but for what a spreadsheet would run: that is defused, and a load undoes it. Any other (a stray quote, too many cells, bytes that are no text, cut because of its
 * length) could shift or swallow what follows: its columns stay empty and the record is the text of `sluice_raw`. Sent
 * again unmended, such a line has no id and is refused again.
 */
export class RejectsAsCsv {
  readonly head: Buffer;
  readonly #split: ReturnType<typeof createRecordSplitter>;
  readonly #delimiter: string;
  /** Positions of the source's own columns; those of an earlier file of rejects are left out. */
  readonly #kept: readonly number[];
  /** The source was such a file itself: what it has defused is not defused twice. */
  readonly #isDefused: boolean;

  constructor(header: CsvHeader | null) {
    const { columns, delimiter } = header ?? { columns: [], delimiter: ',' };
    this.#split = createRecordSplitter({ columns, delimiter });
    this.#delimiter = delimiter;
    this.#isDefused = header?.defused === true;
    this.#kept = [...columns.keys()].filter((at) => !isRejectColumn(columns[at] ?? ''));
    const names = [...this.#kept.map((at) => columns[at] ?? ''), ...rejectColumns];
    this.head = Buffer.from(`${names.map((name) => this.#added(this.#safe(name))).join(this.#delimiter)}\n`);
  }

  #safe(text: string): string {
    return defuse(this.#isDefused ? undoDefuse(text) : text);
  }

  #added(text: string): string {
    return csvCell(text, this.#delimiter);
  }

  /** A cell of the record: in its own bytes, if that does no harm. */
  #own({ written, text }: RecordCell): string {
    const safe = this.#safe(text);
    return safe === text ? written : this.#added(safe);
  }

  line(reject: Reject): Buffer {
    const cells = this.#split(Buffer.from(reject.raw));
    const own = this.#kept.map((at) => {
      const cell = cells?.[at];
      return cell === undefined ? '' : this.#own(cell);
    });
    const { row, line, code, message, column } = reject;
    const raw = cells !== null ? '' : readableText(reject.raw);
    const reason = [String(row), String(line), code, message, column ?? '', raw];
    const added = reason.map((cell) => this.#added(defuse(cell)));
    return Buffer.from(`${[...own, ...added].join(this.#delimiter)}\n`);
  }
}
