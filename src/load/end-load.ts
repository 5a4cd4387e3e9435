import { sql } from 'kysely';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';

/**
 * Ends a running load as failed, keeping what was applied, and starts the next of its lane.
 * Does nothing if the load has ended already.
 */
export async function failLoad(
  context: LoadContext,
  loadId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<void> {
  const ended = await context.db
    .updateTable('loads')
    .set({
      status: 'failed',
      failure_code: failure.code,
      failure_message: sql`${failure.message}::text || ' (' || (rows_inserted + rows_updated) || ' rows had been applied)'`,
      ended_at: sql`now()`,
    })
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .returning(['environment_id', 'job_id', 'failure_message'])
    .executeTakeFirst();
  if (ended === undefined) return;
  context.log.warn({ job_id: ended.job_id, code: failure.code }, `load failed: ${ended.failure_message}`);
  await dispatchLane(context, ended.environment_id);
}

export function tooManyRejects(rejected: number, maxErrors: number): { code: string; message: string } {
  return {
    code: 'too_many_rejects',
    message: `${rejected} records were refused and max_errors allows ${maxErrors}`,
  };
}
