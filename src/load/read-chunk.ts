import type { ChunkRange } from '../domain/chunk.ts';
import { Fault } from '../domain/errors.ts';
import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import { type FileStore, MissingFileError } from '../files/file-store.ts';
import { planColumns } from '../mapping/column-plan.ts';
import { CsvRows } from '../mapping/csv-rows.ts';
import { NdjsonRows } from '../mapping/ndjson-rows.ts';
import { Rows } from '../mapping/rows.ts';
import type { LoadSource } from '../postgres/stores/loads.ts';

/** Reads chunks of one load. Its `rows` are the last chunk's, and are reused by the next. */
export interface ChunkReader {
  readonly rows: Rows;
  /** With a `stamp`, the rows of users are for their table itself; see `RowBuffer.reset`. */
  read(chunk: ChunkRange, stamp?: Buffer): Promise<Rows>;
}

/** Throws `InputError` if the header and the map do not fit together (found out before a load is accepted). */
export function createChunkReader(source: LoadSource, files: FileStore, rows = new Rows()): ChunkReader {
  const parser = createParser(source, rows);
  const { fileRef } = source;
  if (fileRef === null) throw new MissingFileError(`the file of job ${source.jobId} has expired`);
  return {
    rows,
    async read(chunk, stamp) {
      rows.reset(stamp);
      const end = chunk.oversized
        ? Math.min(chunk.byteEnd, chunk.byteStart + MAX_REJECT_RAW_BYTES)
        : chunk.byteEnd;
      const bytes = await files.readRange(fileRef, chunk.byteStart, end);
      rows.bytes = bytes;
      if (chunk.oversized) rejectOversized(rows, chunk, bytes);
      else parser.read(chunk, bytes);
      if (rows.records.count !== chunk.rowCount) {
        throw new Fault(
          `bytes ${chunk.byteStart}-${chunk.byteEnd} of ${fileRef} hold ${rows.records.count} records; ${chunk.rowCount} were counted while receiving`,
        );
      }
      rows.addLeftCompanies();
      return rows;
    },
  };
}

function createParser(source: LoadSource, rows: Rows): CsvRows | NdjsonRows {
  if (source.header === null) return new NdjsonRows(source.entity, source.columnMap, rows);
  return new CsvRows(
    source.header,
    planColumns(source.header.columns, source.columnMap, source.entity, source.header.defused),
    rows,
  );
}

function rejectOversized(rows: Rows, chunk: ChunkRange, bytes: Buffer): void {
  const record = rows.records.add(0, bytes.length, 0);
  const length = chunk.byteEnd - chunk.byteStart;
  const message = `the record has ${length} bytes, more than a record may have (raw is cut at ${bytes.length})`;
  rows.rejects.push(
    rows.records.reject(record, { code: 'record_too_large', message, column: null }, chunk, bytes),
  );
}
