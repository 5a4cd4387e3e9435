/*
 * A corrected file of rejects is the mend of the job that refused its records: an ordinary load whose records say, in `sluice_job`
 * and `sluice_row`, which record of which job they are. It is known for one by its first record when it is accepted, and its rows
 * are noted when it ends: the way of a chunk pays nothing.
 */
import { MAX_RECORD_BYTES } from '../../base/limits.ts';
import { isUuid } from '../../base/validation.ts';
import { yielding } from '../../base/yielding.ts';
import { isRejectColumn, rejectJobKey, rejectRowKey } from '../../domain/reject.ts';
import type { TaskClaim } from '../../domain/task.ts';
import type { FileStore } from '../../files/file-store.ts';
import { CellTable } from '../../formats/csv-cell-table.ts';
import { plainMarks } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import { parseObject } from '../../formats/json-text.ts';
import { createLineScanner } from '../../formats/record-scanner.ts';
import { listChunkRanges } from '../chunk-store.ts';
import type { LoadContext } from '../context.ts';
import { insertMends, type Mended, type MendedRow, readMended, readMending } from '../mend-store.ts';
import type { ReceivedFile } from '../receive/received-file.ts';

/** Records of a CSV that are searched for the first that names a job. */
const SEARCHED_RECORDS = 10_000;

/** The job and the row that a record names; null if it names none. */
type Names = { readonly job: unknown; readonly row: unknown } | null;

/** Returns the job of the environment whose refused records the file holds, by its first record that names one; null if none does. */
export async function findMended(
  { db, files }: Pick<LoadContext, 'db'> & { readonly files: Pick<FileStore, 'readRange'> },
  environmentId: number,
  { ref, header, chunks: [chunk] }: ReceivedFile,
): Promise<Mended | null> {
  if (chunk === undefined || chunk.oversized || header?.columns.includes(rejectJobKey) === false) return null;
  const end = header === null ? Math.min(chunk.byteEnd, chunk.byteStart + MAX_RECORD_BYTES) : chunk.byteEnd;
  const bytes = await files.readRange(ref, chunk.byteStart, end);
  let records = 0;
  for (const names of recordsOf(header, bytes)) {
    const job = names?.job;
    if (typeof job === 'string' && isUuid(job)) return readMended(db, environmentId, job);
    // Another file of NDJSON is not read to its end.
    if (header === null || ++records === SEARCHED_RECORDS) return null;
  }
  return null;
}

/** Takes how the records are read from the job that they mend, where the request does not say it. */
export function readAsMended<T extends { readonly received: ReceivedFile; readonly options: Reading }>(
  request: T,
  mended: Mended,
): T {
  const { received, options } = request;
  const isSaid = options.preset !== null || Object.keys(options.map).length > 0;
  const { header } = received;
  const columns = header?.columns.filter((name) => !isRejectColumn(name)) ?? [];
  const typed = Object.entries(mended.types ?? {}).filter(([name]) => columns.includes(name));
  const isTyped = header !== null && header.types === undefined && typed.length > 0;
  return {
    ...request,
    received: isTyped ? { ...received, header: { ...header, types: Object.fromEntries(typed) } } : received,
    options: {
      ...options,
      entity: options.entity === 'auto' ? mended.entity : options.entity,
      map: isSaid ? options.map : mapOf(mended.map, header),
      preset: isSaid ? options.preset : mended.preset,
    },
  };
}

type Reading = Pick<Mended, 'entity' | 'map' | 'preset'>;

/** Columns that somebody took out of the file are not missed. */
function mapOf(map: Mended['map'], header: CsvHeader | null): Mended['map'] {
  if (header === null) return map;
  return Object.fromEntries(Object.entries(map).filter(([name]) => header.columns.includes(name)));
}

/** Notes which records of another job those of the load are. Doing it twice is as if it was done once. */
export async function noteMends({ db, files }: LoadContext, { subjectId }: TaskClaim): Promise<void> {
  const mending = await readMending(db, subjectId);
  if (mending === null) return;
  for (const { byteStart, byteEnd, firstRow, oversized } of await listChunkRanges(db, subjectId)) {
    if (oversized) continue;
    const bytes = await files.readRange(mending.fileRef, byteStart, byteEnd);
    let mendedRow = firstRow;
    const rows: MendedRow[] = [];
    for await (const names of yielding(recordsOf(mending.header, bytes))) {
      const row = names?.job === mending.jobId ? Number(names.row) : Number.NaN;
      if (Number.isSafeInteger(row) && row > 0) rows.push({ row, mendedRow });
      mendedRow++;
    }
    await insertMends(db, subjectId, mending.loadId, rows);
  }
}

/** Every record of a chunk, as it is numbered. */
function recordsOf(header: CsvHeader | null, bytes: Buffer): Iterable<Names> {
  return header === null ? objectsOf(bytes) : rowsOf(header, bytes);
}

function* rowsOf(header: CsvHeader, bytes: Buffer): Generator<Names> {
  const job = header.columns.indexOf(rejectJobKey);
  const row = header.columns.indexOf(rejectRowKey);
  if (job === -1 || row === -1) return;
  const table = new CellTable();
  const marks = plainMarks(header);
  const scanner = createCsvScanner(marks, undefined, table);
  for (let at = 0; at < bytes.length; ) {
    at = scanner.next(bytes, at, bytes.length, true);
    if (scanner.blank) continue;
    const isWhole = scanner.problem === null && Math.max(job, row) < table.count;
    yield isWhole ? { job: table.text(job, bytes, marks), row: table.text(row, bytes, marks) } : null;
  }
}

function* objectsOf(bytes: Buffer): Generator<Names> {
  const scanner = createLineScanner();
  for (let at = 0; at < bytes.length; ) {
    const end = scanner.next(bytes, at, bytes.length, true);
    const record = scanner.blank ? null : parseObject(bytes.toString('utf8', at, scanner.contentEnd));
    if (!scanner.blank) yield record && { job: record[rejectJobKey], row: record[rejectRowKey] };
    at = end;
  }
}
