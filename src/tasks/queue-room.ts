import { inputError } from '../base/errors.ts';
import type { Database } from '../postgres/database.ts';
import { isKeyKnown } from './idempotency.ts';
import { hasQueueRoom } from './job-store.ts';

/**
 * A caller that floods is refused before anything of its request is done; a request that was answered before is let in, to be
 * answered again. Callers that come at the same moment may pass the bound by as many as they are.
 * @throws InputError `rate_limited`.
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
