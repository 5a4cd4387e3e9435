/*
 * Edits: refused records that a person changed, by the cell or as their text. They are stored as the file of the job writes its records and
 * read with its header, so that all that was not edited is what it was, byte for byte; and what is refused again is kept as it was sent.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { inputError } from '../../domain/errors.ts';
import { MAX_REJECT_RAW_BYTES, MAX_SHOWN_RAW_BYTES } from '../../domain/limits.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { countLines } from '../../formats/csv-walker.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { readRejectsOf } from '../../postgres/stores/rejects.ts';
import { receivingStore } from '../accept-load.ts';
import type { LoadContext } from '../context.ts';
import { describeCsv, type ReceivedFile } from '../receive/receive.ts';
import { EditedCsv } from './edited-csv.ts';

/** A refused record as it is to be: its text, or values by the names of its columns. */
export interface RecordEdit {
  readonly row: number;
  readonly raw?: string;
  readonly values?: Readonly<Record<string, string>>;
}

export interface ReceivedEdits {
  readonly received: ReceivedFile;
  /** Which row each record takes the place of, in the order of the file. */
  readonly rows: readonly number[];
}

/**
 * Writes edited records into a file of their own, in the order of the file of the job.
 * @throws InputError `invalid_field` naming the row; `already_amended`.
 */
export async function receiveEdits(
  context: LoadContext,
  parent: Parent,
  given: readonly RecordEdit[],
): Promise<ReceivedEdits> {
  const edits = given.toSorted((a, b) => a.row - b.row);
  const rows = edits.map(({ row }) => row);
  const twice = rows.find((row, at) => rows[at + 1] === row);
  if (twice !== undefined) throw inputError('invalid_field', `row ${twice} comes twice`, `row ${twice}`);
  const rejects = new Map(
    (await readRejectsOf(context.db, parent.loadId, rows)).map((each) => [each.row, each]),
  );
  const csv = parent.header === null ? null : new EditedCsv(editedHeader(parent.header));
  const records = edits.map((edit) => {
    const reject = rejects.get(edit.row);
    // Whoever claims the rows says why one is not there.
    return reject === undefined ? Buffer.from('{}') : recordOf(csv, edit, reject);
  });
  return { received: await store(context, parent, csv, records), rows };
}

/** An apostrophe of which the file does not say whose it is counts as the record's own: a person has seen it. */
function editedHeader({ defused, ...header }: CsvHeader): CsvHeader {
  return defused === 'undone' ? { ...header, defused } : header;
}

function recordOf(csv: EditedCsv | null, { row, raw, values }: RecordEdit, reject: Reject): Buffer {
  const place = `row ${row}`;
  if ((raw === undefined) === (values === undefined)) {
    throw inputError('invalid_field', 'an edit has one of raw and values', place);
  }
  const before = Buffer.from(reject.raw);
  if (raw === undefined && before.length >= MAX_REJECT_RAW_BYTES) {
    throw inputError('invalid_field', 'of this record the beginning is kept only; send its raw', place);
  }
  const text = raw === undefined ? before : editedText(before, raw, place);
  if (csv === null) {
    if (values !== undefined)
      throw inputError('invalid_field', 'a record of JSON is edited as its raw', place);
    if (text.toString('utf8').trim() === '') throw inputError('invalid_field', nothingLeft, place);
    // A line break means nothing in JSON but between its tokens.
    return Buffer.from(text.toString('latin1').replace(/[\r\n]+/g, ' '), 'latin1');
  }
  const edited = values === undefined ? text : csv.withValues(text, values, place);
  const { records, end } = csv.measure(edited);
  if (records === 1) return edited.subarray(0, end);
  const message = records === 0 ? nothingLeft : `the text is read as ${records} records; an edit is one`;
  throw inputError('invalid_field', message, place);
}

const nothingLeft = 'nothing is left of the record; leave it out, and it stays refused';

/** Bytes that the text could not show are kept only where nothing was edited. */
function editedText(before: Buffer, raw: string, place: string): Buffer {
  const shown = before.toString('utf8');
  if (raw === shown) return before;
  if (!isUtf8(before) && raw.includes('\ufffd')) {
    const message = 'U+FFFD stands where the bytes of the record are no text; write what is meant';
    throw inputError('invalid_field', message, place);
  }
  if (before.length > MAX_SHOWN_RAW_BYTES && raw.endsWith('…')) {
    throw inputError('invalid_field', 'the text of this record is shown in part; send all of it', place);
  }
  return Buffer.from(raw);
}

async function store(
  context: LoadContext,
  { header, fileFormat }: Parent,
  csv: EditedCsv | null,
  records: readonly Buffer[],
): Promise<ReceivedFile> {
  const lines = records.map((record) => Buffer.concat([record, Buffer.from('\n')]));
  const bytes = Buffer.concat(lines);
  const writer = await receivingStore(context).create();
  try {
    await writer.write(bytes);
    const ref = await writer.commit();
    const own = header === null ? null : editedHeader(header);
    return {
      ref,
      format: fileFormat,
      header: own,
      object: null,
      readAs: {
        format: fileFormat,
        encoding: 'utf-8',
        csv: own === null ? null : describeCsv(own, null),
        sheet: null,
        member: null,
        notes: [],
      },
      receivedBytes: bytes.length,
      storedBytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      totalRows: records.length,
      isWhole: true,
      chunks: cutChunks(lines, (at) => csv === null || csv.isWhole(records[at] ?? Buffer.alloc(0))),
    };
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
}

/** Whole records share a chunk. One that is not stands alone: an open quote in it swallows nothing. */
function cutChunks(lines: readonly Buffer[], isWhole: (at: number) => boolean): ChunkRange[] {
  const chunks: ChunkRange[] = [];
  let [byteStart, firstLine, mayGrow] = [0, 1, false];
  for (const [at, line] of lines.entries()) {
    const joins = isWhole(at);
    const last = joins && mayGrow ? chunks.pop() : undefined;
    const byteEnd = byteStart + line.length;
    chunks.push(
      last === undefined
        ? { byteStart, byteEnd, firstRow: at + 1, firstLine, rowCount: 1, oversized: false }
        : { ...last, byteEnd, rowCount: last.rowCount + 1 },
    );
    [byteStart, firstLine, mayGrow] = [byteEnd, firstLine + countLines(line, 0, line.length), joins];
  }
  return chunks;
}
