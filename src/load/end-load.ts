import { sql } from 'kysely';
import { jobFields } from '../domain/job-fields.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { recordLoadEnd } from './record-load-end.ts';

export interface Failure {
  readonly code: string;
  readonly message: string;
}

/**
 * Ends a running load as failed, keeping what was applied, and starts the next of its lane.
 * Does nothing if the load has ended already.
 */
export async function failLoad(context: LoadContext, loadId: number, failure: Failure): Promise<void> {
  const ended = await inTransaction(context.pool, async ({ db }) => {
    const load = await markFailed(db, loadId, failure);
    if (load === undefined) return null;
    return { ...load, due: await recordLoadEnd(context, db, load.environment_id, load.jobId) };
  });
  if (ended === null) return;
  context.log.warn({ ...jobFields(ended), code: failure.code }, `load failed: ${ended.failure_message}`);
  await dispatchLane(context, ended.environment_id);
  await ringForDeliveries(context, ended.due);
}

async function markFailed(db: Database, loadId: number, failure: Failure) {
  return db
    .updateTable('loads')
    .set({
      status: 'failed',
      failure_code: failure.code,
      failure_message: sql`${failure.message}::text || ' (' || (rows_inserted + rows_updated)
        || case when rows_inserted + rows_updated = 1 then ' row' else ' rows' end || ' had been applied)'`,
      ended_at: sql`now()`,
    })
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .returning(['environment_id', 'job_id as jobId', 'request_id as requestId', 'failure_message'])
    .executeTakeFirst();
}

export function tooManyRejects(rejected: number, maxErrors: number): Failure {
  return {
    code: 'too_many_rejects',
    message: `${rejected} ${rejected === 1 ? 'record was' : 'records were'} refused and max_errors allows ${maxErrors}`,
  };
}
