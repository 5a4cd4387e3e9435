import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { inputError } from '../../domain/errors.ts';
import { CHUNK_BYTES, MAX_REJECT_RAW_BYTES, MAX_SHOWN_RAW_BYTES } from '../../domain/limits.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { countLines } from '../../formats/csv-walker.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { readRejectsOf } from '../../postgres/stores/rejects.ts';
import type { LoadContext } from '../context.ts';
import { EditedCsv } from '../edited-csv.ts';
import { describeCsv, type ReceivedFile } from '../receive/receive.ts';
import { receivingStore } from '../received.ts';

/*
 * An edit is a refused record that a person changed, cell by cell or as text. Edits are stored in the dialect of the job's file
 * and read with its header, so what was not edited stays the same byte for byte. A record that is refused again is kept as sent.
 */

/** The new content of a refused record: its whole text, or new values by column name. */
interface RecordEdit {
  readonly row: number;
  readonly raw?: string;
  readonly values?: Readonly<Record<string, string>>;
}

interface ReceivedEdits {
  readonly received: ReceivedFile;
  /** The row that each record replaces, in file order. */
  readonly rows: readonly number[];
}

/**
 * Writes the edited records to a new file, in the order of the job's file.
 * @throws InputError `invalid_field` naming the row; `already_amended`.
 */
export async function receiveEdits(
  context: LoadContext,
  environmentId: number,
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
    // A row that is not there is reported when the rows are claimed.
    return reject === undefined ? Buffer.from('{}') : recordOf(csv, edit, reject);
  });
  return { received: await store(context, environmentId, parent, csv, records), rows };
}

/** Returns the header of the edits: an apostrophe that may be an export's or the record's own is kept, since a person has seen it. */
function editedHeader({ defused, ...header }: CsvHeader): CsvHeader {
  return defused === 'undone' ? { ...header, defused } : header;
}

function recordOf(csv: EditedCsv | null, { row, raw, values }: RecordEdit, reject: Reject): Buffer {
  const place = `row ${row}`;
  if ((raw === undefined) === (values === undefined)) {
    throw inputError('invalid_field', 'an edit has either raw or values', place);
  }
  const before = Buffer.from(reject.raw);
  if (raw === undefined && before.length >= MAX_REJECT_RAW_BYTES) {
    throw inputError(
      'invalid_field',
      'only the beginning of this record was kept; send all of it as raw',
      place,
    );
  }
  const text = raw === undefined ? before : editedText(before, raw, place);
  if (csv === null) {
    if (values !== undefined) throw inputError('invalid_field', 'a JSON record is edited as raw', place);
    if (text.toString('utf8').trim() === '') throw inputError('invalid_field', nothingLeft, place);
    // In valid JSON a line break stands only between tokens, where a blank means the same.
    return Buffer.from(text.toString('latin1').replace(/[\r\n]+/g, ' '), 'latin1');
  }
  const edited = values === undefined ? text : csv.withValues(text, values, place);
  const { records, end } = csv.measure(edited);
  if (records === 1) return edited.subarray(0, end);
  const message = records === 0 ? nothingLeft : `the text is read as ${records} records; an edit holds one`;
  throw inputError('invalid_field', message, place);
}

const nothingLeft = 'the edit leaves nothing of the record; to keep it refused, leave it out';

/** Returns the bytes of the edited text. Bytes that the text could not show are kept only if nothing was edited. */
function editedText(before: Buffer, raw: string, place: string): Buffer {
  const shown = before.toString('utf8');
  if (raw === shown) return before;
  if (!isUtf8(before) && raw.includes('\ufffd')) {
    const message = 'U+FFFD stands for bytes of the record that are not text; replace it by what is meant';
    throw inputError('invalid_field', message, place);
  }
  if (before.length > MAX_SHOWN_RAW_BYTES && raw.endsWith('…')) {
    throw inputError('invalid_field', 'this record was shown only in part; send all of it', place);
  }
  return Buffer.from(raw);
}

async function store(
  context: LoadContext,
  _environmentId: number,
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
        sheets: null,
        member: null,
        notes: [],
      },
      receivedBytes: bytes.length,
      storedBytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      totalRows: records.length,
      isWhole: true,
      chunkBytes: CHUNK_BYTES,
      chunks: cutChunks(lines, (at) => csv === null || csv.isWhole(records[at] ?? Buffer.alloc(0))),
    };
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
}

/** Cuts the edits into chunks. Whole records share one; any other stands alone, so that an open quote in it swallows nothing. */
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
