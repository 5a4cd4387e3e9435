import { Fault } from '../domain/errors.ts';
import { endedStatuses } from '../domain/load.ts';
import { addressesFor, type Notify, outcomeOf } from '../domain/notification.ts';
import { recordEnd } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import type { DueDelivery } from '../postgres/stores/deliveries.ts';
import type { LoadContext } from './context.ts';
import { countRejects, requireLoad } from './inspect-load.ts';
import { renderLoadDetail } from './render-load.ts';

/** Writes the event of a load's end; call it in the transaction that ends it. See `recordEnd`. */
export async function recordLoadEnd(
  { baseUrl }: Pick<LoadContext, 'baseUrl'>,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<DueDelivery[]> {
  const row = await db
    .selectFrom('loads')
    .select(['status', 'rows_rejected', 'notify'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  const status = endedStatuses.find((ended) => ended === row.status);
  if (status === undefined) throw new Fault(`load ${jobId} is ${row.status} and has not ended`);
  const outcome = outcomeOf(status, row.rows_rejected);
  return recordEnd(db, {
    kind: 'load',
    environmentId,
    jobId,
    outcome,
    emails: addressesFor(row.notify as unknown as Notify | null, outcome),
    async describe() {
      const load = await requireLoad({ db }, environmentId, jobId);
      const byCode = row.rows_rejected === 0 ? {} : await countRejects({ db }, environmentId, jobId);
      return renderLoadDetail(load, byCode, baseUrl);
    },
  });
}
