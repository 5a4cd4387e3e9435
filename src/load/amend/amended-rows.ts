import { inputError } from '../../domain/errors.ts';
import { MAX_AMENDED_ROWS } from '../../domain/limits.ts';
import type { ChunkRange } from '../../domain/load.ts';
import { type rejectColumns, rejectKey } from '../../domain/reject.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { createLineScanner } from '../../formats/record-scanner.ts';
import { CsvCells } from '../../mapping/csv-cells.ts';
import { CsvChunk } from '../../mapping/csv-chunk.ts';
import { RecordIndex } from '../../mapping/rows.ts';
import type { ReceivedFile } from '../receive/receive.ts';

/** Which refused row each record of a mended file takes the place of. */
export interface AmendedRows {
  /** In the order of the file, in which they ascend. */
  readonly rows: readonly number[];
  /** The lines of the file on which the records start; `null` if nobody sent the file. */
  readonly lines: readonly number[] | null;
}

export const rowColumn = 'sluice_row' satisfies (typeof rejectColumns)[number];

/** A record of a chunk: its line within the chunk, from 0, and the row it names; null: it names none. */
type NamedRow = (line: number, row: number | null) => void;

/**
 * Reads the numbers of the refused rows from a file that was received: of CSV the column `sluice_row`, of NDJSON `sluice_reject.row`.
 * They must ascend, as they do in the download: so no row comes twice, records of one key take effect in the order of the parent's
 * file, and two senders never wait for each other.
 * @throws InputError `invalid_field` naming the line; `too_many_records`.
 */
export async function readAmendedRows(
  files: Pick<FileStore, 'readRange'>,
  { ref, header, chunks }: ReceivedFile,
): Promise<AmendedRows> {
  const rows: number[] = [];
  const lines: number[] = [];
  const read = header === null ? readJsonRows : createCsvReader(header);
  for (const chunk of chunks) {
    if (chunk.oversized) throw unreadable(chunk.firstLine);
    const bytes = await files.readRange(ref, chunk.byteStart, chunk.byteEnd);
    read(bytes, (lineInChunk, row) => {
      const line = chunk.firstLine + lineInChunk;
      if (row === null) throw unreadable(line);
      checkOrder(rows.at(-1) ?? 0, row, line);
      rows.push(row);
      lines.push(line);
    });
    checkCount(chunk, rows.length);
  }
  return { rows, lines };
}

function checkOrder(before: number, row: number, line: number): void {
  if (row > before) return;
  const what = row === before ? `row ${row} comes twice` : `row ${row} comes after row ${before}`;
  const message = `${what}: each refused row may come once, in the order of the download`;
  throw inputError('invalid_field', message, `line ${line}`);
}

function checkCount({ firstRow, rowCount }: ChunkRange, found: number): void {
  if (found !== firstRow - 1 + rowCount)
    throw new Error(`${found} records were found in a file that has ${firstRow - 1 + rowCount} so far`);
  if (found <= MAX_AMENDED_ROWS) return;
  const message = `a mended file may have ${MAX_AMENDED_ROWS} records; send it in parts`;
  throw inputError('too_many_records', message);
}

function unreadable(line: number): Error {
  const message = `the record does not say which refused row it mends: keep ${rowColumn} (in NDJSON ${rejectKey}.row) as the download has it`;
  return inputError('invalid_field', message, `line ${line}`);
}

function createCsvReader(header: CsvHeader): (bytes: Buffer, named: NamedRow) => void {
  const column = header.columns.indexOf(rowColumn);
  const records = new RecordIndex();
  const chunk = new CsvChunk(header, records);
  const cells = new CsvCells(header.delimiter.charCodeAt(0), header.columns.length, true);
  return (source, named) => {
    records.reset();
    chunk.index(source);
    for (let record = 0; record < records.count; record++) {
      const [start, end] = [chunk.starts[record] ?? 0, chunk.ends[record] ?? 0];
      const isWhole = !chunk.problems.has(record);
      const found = isWhole ? cells.find(chunk.bytes, start, end) : 0;
      const text = found > column ? cells.text(chunk.bytes, column) : '';
      named(records.lines[record] ?? 0, readNumber(text.trim()));
    }
  };
}

function readJsonRows(bytes: Buffer, named: NamedRow): void {
  const scanner = createLineScanner();
  let line = 0;
  for (let start = 0; start < bytes.length; ) {
    const end = scanner.next(bytes, start, bytes.length, true);
    if (!scanner.blank) named(line, rowOf(bytes.toString('utf8', start, scanner.contentEnd)));
    line += scanner.lines;
    start = end;
  }
}

function rowOf(record: string): number | null {
  try {
    const value: unknown = JSON.parse(record);
    const reason = (value as Readonly<Record<string, unknown>> | null)?.[rejectKey];
    const row = (reason as { readonly row?: unknown } | null | undefined)?.row;
    return row === undefined ? null : readNumber(String(row));
  } catch {
    return null;
  }
}

function readNumber(text: string): number | null {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}
