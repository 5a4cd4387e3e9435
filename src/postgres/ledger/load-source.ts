import type { LoadEntity } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import type { StoredFormat } from '../../domain/load.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../database.ts';

/** What a worker must know of a load to read any of its chunks. Never changes once the load is accepted. */
export interface LoadSource {
  readonly loadId: number;
  readonly jobId: string;
  readonly environmentId: number;
  readonly entity: LoadEntity;
  readonly fileRef: FileRef | null;
  readonly fileFormat: StoredFormat;
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  readonly chunkCount: number;
}

export async function readLoadSource(db: Database, loadId: number): Promise<LoadSource> {
  const row = await db
    .selectFrom('loads')
    .select([
      'job_id',
      'environment_id',
      'entity',
      'file_ref',
      'file_format',
      'header',
      'column_map',
      'dry_run',
      'chunk_count',
    ])
    .where('load_id', '=', loadId)
    .executeTakeFirst();
  if (row === undefined) throw new Fault(`load ${loadId} is not in the ledger`);
  return {
    loadId,
    jobId: row.job_id,
    environmentId: row.environment_id,
    entity: row.entity as LoadEntity,
    fileRef: row.file_ref as FileRef | null,
    fileFormat: row.file_format as StoredFormat,
    header: row.header as CsvHeader | null,
    columnMap: row.column_map as Readonly<Record<string, string>>,
    dryRun: row.dry_run,
    chunkCount: row.chunk_count,
  };
}
