import { Fault } from '../domain/errors.ts';
import { endedStatuses } from '../domain/load.ts';
import { recordEnd } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import type { DueDelivery } from '../postgres/stores/deliveries.ts';
import type { ExportContext } from './context.ts';
import { requireExport } from './inspect-exports.ts';
import { renderExportDetail } from './render-export.ts';

/** Writes the event of an export's end; call it in the transaction that ends it. See `recordEnd`. */
export async function recordExportEnd(
  { baseUrl }: Pick<ExportContext, 'baseUrl'>,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<DueDelivery[]> {
  const row = await db
    .selectFrom('exports')
    .select(['status', 'emails'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  const status = endedStatuses.find((ended) => ended === row.status);
  if (status === undefined) throw new Fault(`export ${jobId} is ${row.status} and has not ended`);
  return recordEnd(db, {
    kind: 'export',
    environmentId,
    jobId,
    outcome: status,
    // Whoever cancels knows.
    emails: status === 'cancelled' ? [] : row.emails,
    describe: async () => renderExportDetail(await requireExport({ db }, environmentId, jobId), baseUrl),
  });
}
