import { createHash } from 'node:crypto';
import { idempotencyConflict } from '../base/errors.ts';
import type { OnDrift } from '../domain/load.ts';
import { type Database, hasRows, selectWhere, updateWhere } from '../postgres/database.ts';

const retentionHours = 24;

interface EarlierAnswer<JobId> {
  readonly jobId: JobId;
  readonly answer: unknown;
  /** Start of the earlier request's transaction (`now()`). */
  readonly claimedAt: Date;
}

/**
 * Claims a key in the transaction of a request. `jobId` is the id of the job that the request
 * creates, or `null`. Waits for another request that is using the key. Returns `null` if the key is
 * new, otherwise the earlier response.
 * @throws InputError `idempotency_conflict`
 */
export async function claimIdempotencyKey<JobId extends string | null>(
  db: Database,
  environmentId: number,
  key: string,
  requestDigest: Buffer,
  jobId: JobId,
): Promise<EarlierAnswer<JobId> | null> {
  const isNew = await hasRows(db)`
    insert into idempotency_keys as known (environment_id, idempotency_key, request_digest, job_id)
    values (${environmentId}, ${key}, ${requestDigest}, ${jobId}::uuid)
    on conflict (environment_id, idempotency_key) do update
    set request_digest = excluded.request_digest, job_id = excluded.job_id, answer = null, created_at = excluded.created_at
    where known.created_at < excluded.created_at - ${retentionHours} * interval '1 hour'
    returning 1`;
  if (isNew) return null;
  const row = await selectWhere(db, 'idempotency_keys', { environmentId, idempotencyKey: key })
    .select(['request_digest', 'job_id', 'answer', 'created_at'])
    .executeTakeFirstOrThrow();
  const isSame = row.request_digest.equals(requestDigest) && (row.job_id === null) === (jobId === null);
  if (!isSame) throw idempotencyConflict();
  return { jobId: row.job_id as JobId, answer: row.answer, claimedAt: row.created_at };
}

/**
 * Stores the response for a key that this transaction claimed. The response is an object or, for an
 * existing job, the job's id.
 */
export async function storeAnswer(
  db: Database,
  environmentId: number,
  key: string,
  answer: { readonly answer: object } | { readonly job_id: string },
): Promise<void> {
  await updateWhere(db, 'idempotency_keys', { environmentId, idempotencyKey: key })
    .set('answer' in answer ? { answer: JSON.stringify(answer.answer) } : answer)
    .execute();
}

/**
 * Claims a key for an action on a job. Returns the time at which an earlier request took this
 * action, or `null`.
 * @throws InputError `idempotency_conflict`
 */
export async function claimJobAction(
  db: Database,
  environmentId: number,
  action: 'cancel' | 'retry' | 'release' | `apply ${OnDrift}`,
  jobId: string,
  idempotencyKey: string | null,
): Promise<Date | null> {
  if (idempotencyKey === null) return null;
  const digest = createHash('sha256')
    .update(JSON.stringify([action, jobId]))
    .digest();
  const earlier = await claimIdempotencyKey(db, environmentId, idempotencyKey, digest, jobId);
  return earlier?.claimedAt ?? null;
}

export function isKeyKnown(db: Database, environmentId: number, idempotencyKey: string): Promise<boolean> {
  return hasRows(db)`
    select 1
    from idempotency_keys
    where environment_id = ${environmentId} and idempotency_key = ${idempotencyKey}`;
}

export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
