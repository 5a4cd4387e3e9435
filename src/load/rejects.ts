import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { defuse, undoDefuse } from '../domain/formula.ts';
import {
  MAX_PAGE_BYTES,
  MAX_REJECT_RAW_BYTES,
  MAX_SHOWN_RAW_BYTES,
  REJECT_BYTES_AT_A_TIME,
  REJECTS_AT_A_TIME,
} from '../domain/limits.ts';
import { isRejectColumn, type Reject, rejectColumns, rejectKey, rejectRawKey } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { CellTable, PlainRecords } from '../formats/csv-plain.ts';
import { createRecordScanner } from '../formats/csv-scanner.ts';
import { CsvCells } from '../mapping/csv-cells.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import {
  type ReadRejects,
  type RejectsSource,
  readRejectsPage,
  readRejectsSource,
} from '../postgres/stores/rejects.ts';
import type { LoadContext } from './context.ts';

export type RejectsFormat = 'csv' | 'ndjson';

export interface RejectsPage extends ReadRejects {
  /** Rejects of the load, on all pages. */
  readonly total: number;
}

const heldAtATime = {
  rows: REJECTS_AT_A_TIME,
  bytes: REJECT_BYTES_AT_A_TIME,
  rawBytes: MAX_REJECT_RAW_BYTES,
};

/**
 * In file order, with their records cut. While the load still runs, chunks that end later may add rejects before `after`.
 * @throws InputError `not_found`.
 */
export async function listRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number },
): Promise<RejectsPage> {
  const { tally } = await requireLoad(context, environmentId, jobId);
  const { loadId } = await requireSource(context, environmentId, jobId);
  const bounds = { rows: page.limit, bytes: MAX_PAGE_BYTES, rawBytes: MAX_SHOWN_RAW_BYTES };
  const found = await readRejectsPage(context.db, loadId, page.after, bounds);
  return { ...found, total: tally.rejected };
}

/**
 * All rejects of a load as a file that can be mended and loaded again, in its own shape where it is CSV and
 * CSV is wanted, or NDJSON and NDJSON. Memory does not grow with their number.
 * @throws InputError `not_found`.
 */
export async function* exportRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  format: RejectsFormat,
): AsyncGenerator<Buffer> {
  const source = await requireSource(context, environmentId, jobId);
  const shape = format === 'csv' ? new RejectsAsCsv(source.header) : new RejectsAsNdjson(source.header);
  if (shape.head.length > 0) yield shape.head;
  for (let after: number | null = 0; after !== null; ) {
    const piece: Piece = await readPiece(context, source, shape, after);
    if (piece.lines.length > 0) yield piece.lines;
    after = piece.next;
  }
}

interface Piece {
  readonly lines: Buffer;
  readonly next: number | null;
}

/** The rejects themselves are forgotten before a reader, who may be slow, takes their lines. */
async function readPiece(
  { db }: Pick<LoadContext, 'db'>,
  { loadId }: RejectsSource,
  shape: RejectsAsCsv | RejectsAsNdjson,
  after: number,
): Promise<Piece> {
  const { rejects, more } = await readRejectsPage(db, loadId, after, heldAtATime);
  const lines = Buffer.concat(rejects.map((reject) => shape.line(reject)));
  return { lines, next: more ? (rejects.at(-1)?.row ?? null) : null };
}

async function requireSource(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource> {
  const source = await readRejectsSource(db, environmentId, jobId);
  if (source === null) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return source;
}

/**
 * A file of rejects as CSV: the columns of the source, then the reason. A record that stands in its columns is given cell
 * by cell, in the bytes it came in, but for what a spreadsheet would run: that is defused, and a load undoes it. Any other (a stray quote, too many cells, bytes that are no text, cut because of its
 * length) could shift or swallow what follows: its columns stay empty and the record is the text of `sluice_raw`. Sent
 * again unmended, such a line has no id and is refused again.
 */
class RejectsAsCsv {
  readonly head: Buffer;
  readonly #split: ReturnType<typeof createRecordSplitter>;
  readonly #delimiter: string;
  /** Positions of the source's own columns; those of an earlier file of rejects are left out. */
  readonly #kept: readonly number[];
  /** The source was such a file itself: what it has defused is not defused twice. */
  readonly #isDefused: boolean;

  constructor(header: CsvHeader | null) {
    const { columns, delimiter } = header ?? { columns: [], delimiter: ',' };
    this.#split = createRecordSplitter(header ?? { columns, delimiter });
    this.#delimiter = delimiter;
    this.#isDefused = header?.defused === 'undone';
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
    const { row, line, code, message, column } = reject;
    // In a file of rejects an apostrophe before a formula is ours: one that is in doubt must not stand there as if it was.
    const cells = code === 'unclear_apostrophe' ? null : this.#split(Buffer.from(reject.raw));
    const own = this.#kept.map((at) => {
      const cell = cells?.[at];
      return cell === undefined ? '' : this.#own(cell);
    });
    const raw = cells !== null ? '' : readableText(reject.raw);
    const reason = [String(row), String(line), code, message, column ?? '', raw, bytesOf(reject) ?? ''];
    const added = reason.map((cell) => this.#added(defuse(cell)));
    return Buffer.from(`${[...own, ...added].join(this.#delimiter)}\n`);
  }
}

/**
 * A file of rejects as NDJSON: each record as it was written, with the reason added under one key. What is no object is
 * the text of `sluice_raw`; sent again unmended it has no id and is refused again.
 */
class RejectsAsNdjson {
  readonly head = Buffer.alloc(0);
  readonly #csv: ((raw: Buffer) => string | null) | null;

  constructor(header: CsvHeader | null) {
    this.#csv = header === null ? null : createCsvReader(header);
  }

  line(reject: Reject): Buffer {
    const reason = JSON.stringify({
      row: reject.row,
      line: reject.line,
      byte_offset: reject.byteOffset,
      error_code: reject.code,
      message: reject.message,
      column: reject.column,
      raw_base64: bytesOf(reject) ?? undefined,
    });
    const object = this.#object(reject.raw) ?? JSON.stringify({ [rejectRawKey]: readableText(reject.raw) });
    const comma = object === '{}' ? '' : ',';
    return Buffer.from(`${object.slice(0, -1)}${comma}"${rejectKey}":${reason}}\n`);
  }

  /** The text of the object that the record is. */
  #object(raw: Uint8Array): string | null {
    if (this.#csv !== null) return this.#csv(Buffer.from(raw));
    return isUtf8(raw) ? jsonObject(Buffer.from(raw).toString('utf8').trim()) : null;
  }
}

/** Text, not value: numbers keep every digit they were written with. An earlier reason, always last, is taken off. */
function jsonObject(text: string): string | null {
  const keys = keysOf(text);
  if (keys === null) return null;
  if (keys.length === 0) return '{}';
  if (!keys.includes(rejectKey)) return text;
  const at = text.lastIndexOf(`,"${rejectKey}":{`);
  const without = at < 0 ? text : `${text.slice(0, at)}}`;
  return keysOf(without)?.includes(rejectKey) === false ? without : text;
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
function createCsvReader(header: CsvHeader): (raw: Buffer) => string | null {
  const split = createRecordSplitter(header);
  const meant = (text: string): string => (header.defused === 'undone' ? undoDefuse(text) : text);
  const names = header.columns.map(meant);
  return (raw) => {
    const cells = split(raw);
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

/** One cell of a refused record. */
interface RecordCell {
  /** As it stands in the record, quotes and all. */
  readonly written: string;
  /** What that means. */
  readonly text: string;
}

/**
 * A function that splits refused records of a file. It gives null for what is not exactly one well-formed record of proper
 * text with a cell for each column; one that may have been cut off is not.
 */
function createRecordSplitter(header: CsvHeader): (raw: Buffer) => RecordCell[] | null {
  const { columns, delimiter, dialect } = header;
  const table = new CellTable();
  const scanner = createRecordScanner(header, undefined, dialect === undefined ? null : table);
  const plain = dialect === undefined ? null : new PlainRecords(dialect, delimiter);
  const cells = new CsvCells(delimiter.charCodeAt(0), columns.length, true);
  return (raw) => {
    if (raw.length === 0 || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0) || !isUtf8(raw))
      return null;
    scanner.reset();
    scanner.next(raw, 0, raw.length, true);
    if (scanner.problem !== null || scanner.contentEnd !== raw.length) return null;
    const record = plain === null ? raw : rewrite(raw, table, plain);
    if (record === null) return null;
    const found = cells.find(record, 0, record.length);
    const fits =
      found === columns.length || cells.fits(record, record.length, found, header.ragged === 'pad');
    if (!fits) return null;
    return columns.map((_, at) => ({ written: cells.written(record, at), text: cells.text(record, at) }));
  };
}

/** The record in Base64 where its text is not all there is to it. */
function bytesOf({ raw }: Reject): string | null {
  return isUtf8(raw) && !raw.includes(0) ? null : Buffer.from(raw).toString('base64');
}

/** A record of another dialect as RFC 4180 has it. */
function rewrite(raw: Buffer, cells: CellTable, plain: PlainRecords): Buffer | null {
  plain.clear();
  return plain.write(raw, cells) ? plain.bytes.subarray(0, plain.at) : null;
}

/** Bytes as text that any program can read: what is not UTF-8 shows as U+FFFD, U+0000 as its symbol. */
function readableText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8').replaceAll('\0', '␀');
}
