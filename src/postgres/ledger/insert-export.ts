import type { ExportRequest } from '../../domain/export.ts';
import type { JobIdentity } from '../../domain/job-fields.ts';
import type { Database } from '../database.ts';

export interface NewExport extends JobIdentity {
  readonly environmentId: number;
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  /** Null: as the configuration says. */
  readonly retentionDays: number | null;
}

/** Returns the id that the workers know it by. */
export async function insertExport(db: Database, asked: NewExport): Promise<number> {
  const { export_id } = await db
    .insertInto('exports')
    .values({
      job_id: asked.jobId,
      request_id: asked.requestId,
      environment_id: asked.environmentId,
      request: JSON.stringify(asked.request),
      format: asked.request.format,
      compression: asked.request.compression,
      emails: [...asked.emails],
      retention_days: asked.retentionDays,
    })
    .returning('export_id')
    .executeTakeFirstOrThrow();
  return export_id;
}
