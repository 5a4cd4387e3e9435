import { sql } from 'kysely';
import type { ChunkRange } from '../../domain/chunk.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import type { JobIdentity } from '../../domain/job-fields.ts';
import type { LoadType, StoredFormat } from '../../domain/load.ts';
import type { Notify } from '../../domain/notification.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../database.ts';

export interface NewLoad extends JobIdentity {
  readonly environmentId: number;
  readonly type: LoadType;
  readonly entity: LoadEntity;
  readonly filename: string;
  readonly fileSize: number;
  readonly sha256: string;
  readonly fileRef: FileRef;
  readonly fileFormat: StoredFormat;
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
  readonly totalRows: number;
  readonly dryRun: boolean;
  readonly maxErrors: number | null;
  readonly duplicateOf: string | null;
  readonly notify: Notify | null;
  readonly chunks: readonly ChunkRange[];
}

/** Writes a load and its chunks; call it inside a transaction. */
export async function insertLoad(db: Database, load: NewLoad): Promise<void> {
  const { load_id } = await db
    .insertInto('loads')
    .values({
      job_id: load.jobId,
      request_id: load.requestId,
      environment_id: load.environmentId,
      type: load.type,
      entity: load.entity,
      filename: load.filename,
      file_size: load.fileSize,
      sha256: Buffer.from(load.sha256, 'hex'),
      file_ref: load.fileRef,
      file_format: load.fileFormat,
      header: load.header === null ? null : JSON.stringify(load.header),
      column_map: JSON.stringify(load.columnMap),
      total_rows: load.totalRows,
      dry_run: load.dryRun,
      max_errors: load.maxErrors,
      duplicate_of: load.duplicateOf,
      notify: load.notify === null ? null : JSON.stringify(load.notify),
      chunk_count: load.chunks.length,
    })
    .returning('load_id')
    .executeTakeFirstOrThrow();
  await sql`
    insert into load_chunks
      (load_id, chunk_no, byte_start, byte_end, first_row, first_line, row_count, oversized)
    select ${load_id}, (ordinality - 1)::int, byte_start, byte_end, first_row, first_line, row_count, oversized
    from rows from (
      json_to_recordset(${JSON.stringify(load.chunks.map(toColumns))}) as (
        byte_start bigint, byte_end bigint, first_row bigint, first_line bigint, row_count int, oversized boolean
      )
    ) with ordinality as c (byte_start, byte_end, first_row, first_line, row_count, oversized, ordinality)`.execute(
    db,
  );
}

function toColumns(chunk: ChunkRange): object {
  return {
    byte_start: chunk.byteStart,
    byte_end: chunk.byteEnd,
    first_row: chunk.firstRow,
    first_line: chunk.firstLine,
    row_count: chunk.rowCount,
    oversized: chunk.oversized,
  };
}
