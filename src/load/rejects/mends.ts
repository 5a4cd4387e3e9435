/*
 * A mend loads a file of corrected rejects. Each record names the job (`sluice_job`) and row
 * (`sluice_row`) that it corrects. The corrected rows are stored when the mend ends, because
 * storing them with each chunk would slow the chunks down.
 */
import { isUuid } from '../../base/validation.ts';
import { yielding } from '../../base/yielding.ts';
import { isRejectColumn, rejectJobKey, rejectRowKey } from '../../domain/reject.ts';
import type { TaskClaim } from '../../domain/task.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { plainRecords } from '../../formats/csv-scanner.ts';
import { parseObject } from '../../formats/json-text.ts';
import { createLineScanner } from '../../formats/record-scanner.ts';
import { listChunkRanges } from '../chunk-store.ts';
import type { LoadContext } from '../context.ts';
import type { Beginning } from '../foreign-file.ts';
import type { ReceivedFile } from '../receive/received-file.ts';
import { insertMends, type Mended, type MendedRow, readMended, readMending } from './store.ts';

const SEARCHED_RECORDS = 10_000;

/** The job and row that a record names. `null` if the record cannot be read. */
type Names = { readonly job: unknown; readonly row: unknown } | null;

/**
 * Finds the job whose rejects the file corrects. In NDJSON, the first record specifies this job. In
 * CSV, the first record that names a job specifies it.
 */
export async function findMended(
  { db, files }: Pick<LoadContext, 'db'> & { readonly files: Pick<FileStore, 'readRange'> },
  environmentId: number,
  { ref, header, chunks: [chunk] }: ReceivedFile,
  { records: [first] }: Beginning,
): Promise<Mended | null> {
  const canHaveJob = header?.columns.includes(rejectJobKey) === true && chunk?.oversized === false;
  const bytes = canHaveJob ? await files.readRange(ref, chunk.byteStart, chunk.byteEnd) : null;
  const job = bytes === null || header === null ? first?.[rejectJobKey] : firstJob(header, bytes);
  return isJob(job) ? readMended(db, environmentId, job) : null;
}

function firstJob(header: CsvHeader, bytes: Buffer): unknown {
  let records = 0;
  for (const names of rowsOf(header, bytes)) {
    if (isJob(names?.job) || ++records === SEARCHED_RECORDS) return names?.job;
  }
  return null;
}

function isJob(name: unknown): name is string {
  return typeof name === 'string' && isUuid(name);
}

/** Adds the options of the mended job that the request does not specify. */
export function readAsMended<T extends { readonly received: ReceivedFile; readonly options: Reading }>(
  request: T,
  mended: Mended,
): T {
  const { received, options } = request;
  const isSpecified = options.preset !== null || Object.keys(options.map).length > 0;
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
      map: isSpecified ? options.map : mapOf(mended.map, header),
      preset: isSpecified ? options.preset : mended.preset,
    },
  };
}

type Reading = Pick<Mended, 'entity' | 'map' | 'preset'>;

/** Returns the map without columns that are not in the file. */
function mapOf(map: Mended['map'], header: CsvHeader | null): Mended['map'] {
  if (header === null) return map;
  return Object.fromEntries(Object.entries(map).filter(([name]) => header.columns.includes(name)));
}

/** Stores which refused rows a mend has corrected. Repeating the call changes nothing. */
export async function recordMends({ db, files }: LoadContext, { subjectId }: TaskClaim): Promise<void> {
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

function recordsOf(header: CsvHeader | null, bytes: Buffer): Iterable<Names> {
  return header === null ? objectsOf(bytes) : rowsOf(header, bytes);
}

function* rowsOf(header: CsvHeader, bytes: Buffer): Generator<Names> {
  const job = header.columns.indexOf(rejectJobKey);
  const row = header.columns.indexOf(rejectRowKey);
  if (job === -1 || row === -1) return;
  for (const cells of plainRecords(header, bytes)) yield cells && { job: cells[job], row: cells[row] };
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
