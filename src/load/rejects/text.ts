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
 * Rejects as CSV: the columns of the source, then the reason. Cells keep their bytes, except that
 * formulas get an apostrophe, which a load removes. A record that does not fit the columns could
 * corrupt the next ones, so its text is in `sluice_raw`. This text has no id, so it is refused
 * again unless it is corrected.
 */
export class RejectsAsCsv {
  readonly head: Buffer;
  readonly #records: RefusedCsv;
  readonly #delimiter: string;
  /** Positions of the source's columns, without those that an earlier file of rejects added. */
  readonly #kept: readonly number[];
  /** Formulas in the source already have an apostrophe, and must not get a second one. */
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

  #own({ written, text }: RecordCell): string {
    const safe = this.#safe(text);
    return safe === text ? written : csvCell(safe, this.#delimiter);
  }

  line(reject: Reject): Buffer {
    const cells = this.#records.split(reject);
    const sourceCells = this.#kept.map((at) => {
      const cell = cells?.[at];
      return cell === undefined ? '' : this.#own(cell);
    });
    const raw = cells !== null ? '' : readableText(reject.raw);
    const reason = [this.#jobId, ...reasonCells(reject), raw, bytesOf(reject) ?? ''];
    return this.#join([...sourceCells, ...reason.map((cell) => csvCell(defuse(cell), this.#delimiter))]);
  }

  #join(cells: readonly string[]): Buffer {
    return Buffer.from(`${cells.join(this.#delimiter)}\n`);
  }
}

function reasonCells({ row, line, code, message, column }: Reject): string[] {
  return [String(row), String(line), code, message, column ?? ''];
}

/**
 * Rejects as NDJSON: each record as in the source, with the reason under additional keys. If a
 * record is not an object, its text is in `sluice_raw`. This text has no id, so it is refused again
 * unless it is corrected.
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
    const start = object === null || object === '{}' ? '{' : `${object.slice(0, -1)},`;
    return Buffer.from(`${start}${reason.slice(1)}\n`);
  }

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

/**
 * Removes the reason for an earlier rejection from the end of an object. Returns `null` if the text
 * is not an object. Works on the text, because parsed numbers could lose digits.
 */
function jsonObject(text: string): string | null {
  const keys = keysOf(text);
  if (keys === null) return null;
  if (keys.length === 0) return '{}';
  if (!keys.some(isAdded)) return text;
  if (keys[0] === rejectJobKey) return '{}';
  const at = text.lastIndexOf(`,"${rejectJobKey}":"`);
  const shortened = at < 0 ? text : `${text.slice(0, at)}}`;
  return keysOf(shortened)?.some(isAdded) === false ? shortened : text;
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

/**
 * Returns a function that converts rejects to JSON. The function leaves out empty cells, which mean
 * the same as missing ones. It returns `null` if the cells are unknown.
 */
function createCsvReader(header: CsvHeader): (reject: Reject) => string | null {
  const records = new RefusedCsv(header);
  const undefused = (text: string): string => (header.defused === true ? undoDefuse(text) : text);
  const names = header.columns.map(undefused);
  return (reject) => {
    const cells = records.split(reject);
    if (cells === null) return null;
    const pairs = cells
      .map(({ text }, at): [string, string] => [names[at] ?? '', undefused(text)])
      .filter(([name, text]) => text !== '' && !isRejectColumn(name));
    return JSON.stringify(Object.fromEntries(pairs));
  };
}

export function csvCell(text: string, delimiter: string): string {
  const plain = !text.includes(delimiter) && !/["\r\n]|^\s|\s$/.test(text);
  return plain ? text : `"${text.replaceAll('"', '""')}"`;
}

/** Returns the record in Base64, or `null` if text can represent all its bytes. */
function bytesOf({ raw }: Reject): string | null {
  return isUtf8(raw) && !raw.includes(0) ? null : Buffer.from(raw).toString('base64');
}

/** U+FFFD replaces invalid UTF-8, and a symbol replaces U+0000. */
function readableText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8').replaceAll('\0', '␀');
}

interface RecordCell {
  /** Including its quotes. */
  readonly written: string;
  readonly text: string;
}

/** If a record has one of these codes, its cells are unknown. */
const withoutCells: ReadonlySet<RejectCode> = new Set([
  'invalid_quote',
  'unclosed_quote',
  'invalid_escape',
  'record_too_large',
]);

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

  /** A cell for each column. `null` if the record does not fit them or may be truncated. */
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

  /** Returns the texts of all cells, or `null` if the record is not well-formed. */
  allCells({ code, raw: bytes }: Reject): string[] | null {
    const raw = Buffer.from(bytes);
    if (withoutCells.has(code) || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0)) return null;
    return isUtf8(raw) && this.#scan(raw) ? this.#table.texts(raw, this.#marks) : null;
  }

  count(reject: Reject): number {
    return this.allCells(reject)?.length ?? 0;
  }

  /**
   * Returns the text of a cell, or `null` if the record has too few cells or is not well-formed.
   */
  cell(raw: Buffer, column: number): string | null {
    if (!this.#scan(raw) || column >= this.#table.count) return null;
    return this.#table.text(column, raw, this.#marks);
  }

  /**
   * Finds the cells of a record. Returns false if the record is not well-formed or may be
   * truncated.
   */
  #scan(raw: Buffer): boolean {
    if (raw.length === 0) return false;
    this.#scanner.next(raw, 0, raw.length, true);
    return this.#scanner.problem === null && this.#scanner.contentEnd === raw.length;
  }
}
