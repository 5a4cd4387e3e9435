import { isDeepStrictEqual } from 'node:util';
import { inputError } from '../../domain/errors.ts';
import { defuse, undoDefuse } from '../../domain/formula.ts';
import { MAX_AMENDED_ROWS } from '../../domain/limits.ts';
import type { ChunkRange } from '../../domain/load.ts';
import { isRejectColumn, type rejectColumns, rejectKey, rejectRawKey } from '../../domain/reject.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject, parseJsonText } from '../../formats/json-text.ts';
import { CsvChunk } from '../../mapping/csv-rows.ts';
import { RecordIndex } from '../../mapping/rows.ts';
import type { Database } from '../../postgres/database.ts';
import {
  concludeClaims,
  readAmendmentShapes,
  readRefusedAgain,
  refuseAgain,
  releaseClaims,
} from '../../postgres/stores/amendments.ts';
import type { ReceivedFile } from '../receive/receive.ts';
import { csvCell, RefusedCsv, withoutReason } from '../rejects-text.ts';

/** Refused records that are held at a time: each may have MAX_REJECT_RAW_BYTES. */
const heldAtATime = 100;

/**
 * Moves the counts of the parent when an amendment completes: what it accepted counts as amended; what it refused stays refused, with
 * the new reason and as it was sent now, and may be mended again; what was sent back as it came stays as it was. Nothing, of a load that amends nothing. Call it in the transaction that
 * completes the load.
 */
export async function endAmendment(db: Database, loadId: number): Promise<void> {
  const shapes = await readAmendmentShapes(db, loadId);
  if (shapes === null) return;
  const { header, parentHeader } = shapes;
  const isUnmended = header === null ? isUnmendedJson : createUnmendedCsv(header);
  const reshape =
    header === null || parentHeader === null ? withoutReason : createReshaping(header, parentHeader);
  for (let after: number | null = 0; after !== null; ) {
    const refused = await readRefusedAgain(db, loadId, after, heldAtATime);
    const unmended = refused.filter(({ raw }) => isUnmended(raw));
    const sent = refused.filter((each) => !unmended.includes(each));
    if (unmended.length > 0) await releaseClaims(db, loadId, unmended);
    if (sent.length > 0)
      await refuseAgain(
        db,
        loadId,
        sent.map(({ record, raw }) => ({ record, raw: reshape(raw) })),
      );
    after = refused.length < heldAtATime ? null : (refused.at(-1)?.record ?? null);
  }
  await concludeClaims(db, loadId);
}

/** Tells which lines of a CSV come back as downloaded, for records whose cells cannot be told apart: the text, and nothing filled in. */
function createUnmendedCsv(header: CsvHeader): (raw: Buffer) => boolean {
  const records = new RefusedCsv(header);
  const own = [...header.columns.keys()].filter((at) => !isRejectColumn(header.columns[at] ?? ''));
  const rawAt = header.columns.indexOf(rejectRawKey);
  return (raw) => {
    const cells = rawAt === -1 ? null : records.split(raw);
    return cells !== null && cells[rawAt]?.text !== '' && own.every((at) => cells[at]?.text === '');
  };
}

/** Tells whether a line of NDJSON comes back as downloaded, for a record that is no object. */
function isUnmendedJson(raw: Buffer): boolean {
  if (!raw.includes(rejectRawKey)) return false;
  const parsed = parseJsonText(raw.toString('utf8'));
  if ('code' in parsed || !isObject(parsed.value)) return false;
  const keys = Object.keys(parsed.value);
  return keys.includes(rejectRawKey) && keys.every(isRejectColumn);
}

/** Edited records are stored in the dialect of the parent's file, and kept as they are even if their cells cannot be told apart. */
function isSameShape(from: CsvHeader, to: CsvHeader): boolean {
  return isDeepStrictEqual({ ...from, defused: null }, { ...to, defused: null });
}

/**
 * A record of a mended file as the parent's file would have it, by the names of the columns. Null where that cannot be told: then the
 * parent keeps what it has.
 */
function createReshaping(from: CsvHeader, to: CsvHeader): (raw: Buffer) => Buffer | null {
  if (isSameShape(from, to)) return (raw) => raw;
  const sent = new RefusedCsv(from);
  const kept = new RefusedCsv(to);
  const positions = to.columns.map((name) => (isRejectColumn(name) ? -1 : from.columns.indexOf(name)));
  const given = (text: string): string => {
    const meant = from.defused === 'undone' ? undoDefuse(text) : text;
    return to.defused === 'undone' ? defuse(meant) : meant;
  };
  return (raw) => {
    const cells = sent.split(raw);
    if (cells === null) return null;
    const texts = positions.map((at) => given(cells[at]?.text ?? ''));
    const record = Buffer.from(texts.map((text) => csvCell(text, to.delimiter)).join(to.delimiter));
    // In the dialect of the parent the same text may mean something else.
    const again = kept.split(record);
    return again !== null && texts.every((text, at) => again[at]?.text === text) ? record : null;
  };
}

export const rowColumn = 'sluice_row' satisfies (typeof rejectColumns)[number];

/** The line of a record within its chunk, from 0, and the row that it names. */
type NamedRow = readonly [line: number, row: number | null];

/**
 * Reads the numbers of the refused rows from a file that was received: of CSV the column `sluice_row`, of NDJSON `sluice_reject.row`.
 * They must ascend, as they do in the download: so no row comes twice, records of one key take effect in the order of the parent's
 * file, and two senders never wait for each other.
 * @throws InputError `invalid_field` naming the line; `too_many_records`.
 */
export async function readAmendedRows(
  files: Pick<FileStore, 'readRange'>,
  { ref, header, chunks }: ReceivedFile,
): Promise<number[]> {
  const rows: number[] = [];
  const read = header === null ? readJsonRows : createCsvReader(header);
  for (const chunk of chunks) {
    if (chunk.oversized) throw unreadable(chunk.firstLine);
    for (const [lineInChunk, row] of read(await files.readRange(ref, chunk.byteStart, chunk.byteEnd))) {
      const line = chunk.firstLine + lineInChunk;
      if (row === null) throw unreadable(line);
      checkOrder(rows.at(-1) ?? 0, row, line);
      rows.push(row);
    }
    checkCount(chunk, rows.length);
  }
  return rows;
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

function createCsvReader(header: CsvHeader): (bytes: Buffer) => Generator<NamedRow> {
  const column = header.columns.indexOf(rowColumn);
  const records = new RecordIndex();
  const chunk = new CsvChunk(header, records);
  return function* (bytes) {
    records.reset();
    chunk.index(bytes);
    for (let record = 0; record < records.count; record++) {
      const text = chunk.count(record) > column ? chunk.cells.text(column) : '';
      yield [records.lines[record] ?? 0, readNumber(text.trim())];
    }
  };
}

function* readJsonRows(bytes: Buffer): Generator<NamedRow> {
  for (const [line, text] of bytes.toString('utf8').split('\n').entries())
    if (!/^[ \t\r]*$/.test(text)) yield [line, rowOf(text)];
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
