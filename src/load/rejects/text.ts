import { isUtf8 } from 'node:buffer';
import { defuse, undoDefuse } from '../../base/formula.ts';
import { MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import {
  isRejectColumn,
  type Reject,
  type RejectCode,
  rejectColumns,
  rejectJobKey,
} from '../../domain/reject.ts';
import { CellTable } from '../../formats/csv-cell-table.ts';
import { type CsvMarks, plainMarks } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import { fromByteString } from '../../formats/json-text.ts';
import type { RecordScanner } from '../../formats/record-scanner.ts';

/**
 * A file of rejects as CSV: the columns of the source, then the reason. A record that stands in its columns is given cell
 * by cell, in the bytes it came in, but for what a spreadsheet would run: that is defused, and a load reverses it. Any other
 * (a stray quote, too many cells, bytes that are no text, cut because of its length) could shift or swallow what follows: its
 * columns stay empty and the record is the text of `sluice_raw`. Sent again as it is, such a line has no id and is refused again.
 */
export class RejectsAsCsv {
  readonly head: Buffer;
  readonly #records: RefusedCsv;
  readonly #delimiter: string;
  /** Positions of the source's own columns; those of an earlier file of rejects are left out. */
  readonly #kept: readonly number[];
  /** The source was such a file itself: what it has defused is not defused twice. */
  readonly #isDefused: boolean;

  readonly #jobId: string;

  constructor(header: CsvHeader | null, jobId: string) {
    const { columns, delimiter } = header ?? { columns: [], delimiter: ',' };
    this.#jobId = jobId;
    this.#records = new RefusedCsv(header ?? { columns, delimiter });
    this.#delimiter = delimiter;
    this.#isDefused = header?.defused === true;
    this.#kept = [...columns.keys()].filter((at) => !isRejectColumn(columns[at] ?? ''));
    const names = [...this.#kept.map((at) => columns[at] ?? ''), ...rejectColumns];
    this.head = this.#join(names.map((name) => csvCell(this.#safe(name), delimiter)));
  }

  #safe(text: string): string {
    return defuse(this.#isDefused ? undoDefuse(text) : text);
  }

  /** A cell of the record: in its own bytes, if that does no harm. */
  #own({ written, text }: RecordCell): string {
    const safe = this.#safe(text);
    return safe === text ? written : csvCell(safe, this.#delimiter);
  }

  line(reject: Reject): Buffer {
    const cells = this.#records.split(reject);
    const own = this.#kept.map((at) => {
      const cell = cells?.[at];
      return cell === undefined ? '' : this.#own(cell);
    });
    const raw = cells !== null ? '' : readableText(reject.raw);
    const added = [this.#jobId, ...reasonCells(reject), raw, bytesOf(reject) ?? ''];
    return this.#join([...own, ...added.map((cell) => csvCell(defuse(cell), this.#delimiter))]);
  }

  #join(cells: readonly string[]): Buffer {
    return Buffer.from(`${cells.join(this.#delimiter)}\n`);
  }
}

function reasonCells({ row, line, code, message, column }: Reject): string[] {
  return [String(row), String(line), code, message, column ?? ''];
}

/**
 * A file of rejects as NDJSON: each record as it was written, with the reason in keys behind its own. What is no object is
 * the text of `sluice_raw`; sent again as it is, it has no id and is refused again.
 */
export class RejectsAsNdjson {
  readonly head = Buffer.alloc(0);
  readonly #csv: ((reject: Reject) => string | null) | null;
  readonly #jobId: string;

  constructor(header: CsvHeader | null, jobId: string) {
    this.#csv = header === null ? null : createCsvReader(header);
    this.#jobId = jobId;
  }

  line(reject: Reject): Buffer {
    const object = this.#object(reject);
    const reason = JSON.stringify({
      sluice_job: this.#jobId,
      sluice_row: reject.row,
      sluice_line: reject.line,
      sluice_error_code: reject.code,
      sluice_message: reject.message,
      sluice_column: reject.column,
      sluice_raw: object === null ? readableText(reject.raw) : undefined,
      sluice_raw_base64: bytesOf(reject) ?? undefined,
    } satisfies Partial<Record<(typeof rejectColumns)[number], unknown>>);
    const own = object === null || object === '{}' ? '{' : `${object.slice(0, -1)},`;
    return Buffer.from(`${own}${reason.slice(1)}\n`);
  }

  /** The text of the object that the record is. */
  #object(reject: Reject): string | null {
    if (this.#csv !== null) return this.#csv(reject);
    const { raw } = reject;
    return isUtf8(raw) ? jsonObject(Buffer.from(raw).toString('utf8').trim()) : null;
  }
}

const added: ReadonlySet<string> = new Set(rejectColumns);

function isAdded(name: string): boolean {
  return added.has(name);
}

/** Text, not value: numbers keep every digit they were written with. An earlier reason, always last, is taken off. */
function jsonObject(text: string): string | null {
  const keys = keysOf(text);
  if (keys === null) return null;
  if (keys.length === 0) return '{}';
  if (!keys.some(isAdded)) return text;
  if (keys[0] === rejectJobKey) return '{}';
  const at = text.lastIndexOf(`,"${rejectJobKey}":"`);
  const without = at < 0 ? text : `${text.slice(0, at)}}`;
  return keysOf(without)?.some(isAdded) === false ? without : text;
}

function keysOf(text: string): string[] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    return Object.keys(value);
  } catch {
    return null;
  }
}

/** By the names of the header; empty cells are left out, which means the same. */
function createCsvReader(header: CsvHeader): (reject: Reject) => string | null {
  const records = new RefusedCsv(header);
  const meant = (text: string): string => (header.defused === true ? undoDefuse(text) : text);
  const names = header.columns.map(meant);
  return (reject) => {
    const cells = records.split(reject);
    if (cells === null) return null;
    const pairs = cells
      .map(({ text }, at): [string, string] => [names[at] ?? '', meant(text)])
      .filter(([name, text]) => text !== '' && !isRejectColumn(name));
    return JSON.stringify(Object.fromEntries(pairs));
  };
}

/** A cell as CSV has it, quoted where it must be. */
export function csvCell(text: string, delimiter: string): string {
  const plain = !text.includes(delimiter) && !/["\r\n]|^\s|\s$/.test(text);
  return plain ? text : `"${text.replaceAll('"', '""')}"`;
}

/** The record in Base64 where its text is not all there is to it. */
function bytesOf({ raw }: Reject): string | null {
  return isUtf8(raw) && !raw.includes(0) ? null : Buffer.from(raw).toString('base64');
}

/** Bytes as text that any program can read: what is not UTF-8 shows as U+FFFD, U+0000 as its symbol. */
function readableText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8').replaceAll('\0', '␀');
}

interface RecordCell {
  /** The cell as written, with its quotes. */
  readonly written: string;
  /** The cell's value. */
  readonly text: string;
}

/** What refuses a record whose cells are not known. Its text is that of the file as it came, in whatever dialect. */
const unread: ReadonlySet<RejectCode> = new Set([
  'invalid_quote',
  'unclosed_quote',
  'invalid_escape',
  'record_too_large',
]);

/** Splits refused records of one CSV, as they are in the stored file. */
export class RefusedCsv {
  readonly #header: CsvHeader;
  readonly #marks: CsvMarks;
  readonly #table = new CellTable();
  readonly #scanner: RecordScanner;

  constructor(header: CsvHeader) {
    this.#header = header;
    this.#marks = plainMarks(header);
    this.#scanner = createCsvScanner(this.#marks, undefined, this.#table);
  }

  /** Splits one well-formed record with a cell for each column; null for anything else, such as a record that may be cut off. */
  split(reject: Reject): RecordCell[] | null {
    const { columns } = this.#header;
    const texts = this.allCells(reject);
    if (texts === null || texts.length < columns.length) return null;
    const raw = Buffer.from(reject.raw);
    const isEmpty = (text: string, cell: number) => text === '' || this.#table.isEmpty(raw, cell);
    if (!texts.every((text, cell) => cell < columns.length || isEmpty(text, cell))) return null;
    return columns.map((_, at) => ({
      text: texts[at] ?? '',
      written: fromByteString(this.#table.written(at, raw)),
    }));
  }

  texts(reject: Reject): string[] | null {
    return this.split(reject)?.map(({ text }) => text) ?? null;
  }

  /** All cells of a well-formed record, whether or not they are as many as the columns; null if it is none. */
  allCells({ code, raw: bytes }: Reject): string[] | null {
    const raw = Buffer.from(bytes);
    if (unread.has(code) || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0)) return null;
    return isUtf8(raw) && this.#scan(raw) ? this.#table.texts(raw, this.#marks) : null;
  }

  /** Returns the number of cells; 0 for a record that is not well-formed. */
  count(reject: Reject): number {
    return this.allCells(reject)?.length ?? 0;
  }

  /** Returns one cell; null if the record has fewer, or is not well-formed. */
  cell(raw: Buffer, column: number): string | null {
    if (!this.#scan(raw) || column >= this.#table.count) return null;
    return this.#table.text(column, raw, this.#marks);
  }

  /** Finds the cells of a record; returns false if it is not well-formed, or may be cut off. */
  #scan(raw: Buffer): boolean {
    if (raw.length === 0) return false;
    this.#scanner.next(raw, 0, raw.length, true);
    return this.#scanner.problem === null && this.#scanner.contentEnd === raw.length;
  }
}
