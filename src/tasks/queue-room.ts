import { inputError } from '../base/errors.ts';
import type { Database } from '../postgres/database.ts';
import { isKeyKnown } from './idempotency.ts';
import { hasQueueRoom } from './job-store.ts';

/**
 * Refuses a request if the environment has too many unfinished jobs, unless its key is known and
 * gets the earlier response. n concurrent requests may exceed the limit by n.
 * @throws InputError `rate_limited`
 */
export async function requireQueueRoom(
  db: Database,
  environmentId: number,
  idempotencyKey: string | null,
  maxUnfinished: number,
): Promise<void> {
  if (maxUnfinished === 0 || (await hasQueueRoom(db, environmentId, maxUnfinished))) return;
  if (idempotencyKey !== null && (await isKeyKnown(db, environmentId, idempotencyKey))) return;
  const message = `This environment has ${maxUnfinished} jobs that have not ended; try again when some have`;
  throw inputError('rate_limited', message, 'MAX_QUEUED_JOBS');
}
