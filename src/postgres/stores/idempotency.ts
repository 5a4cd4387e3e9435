import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { idempotencyConflict } from '../../domain/errors.ts';
import type { OnDrift } from '../../domain/load.ts';
import type { Database } from '../database.ts';

const keptHours = 24;

export type IdempotencyClaim =
  | { readonly outcome: 'claimed' | 'conflict' }
  | {
      readonly outcome: 'known';
      readonly jobId: string | null;
      readonly answer: unknown;
      /** `now()` of the transaction that did what was asked for. */
      readonly claimedAt: Date;
    };

/**
 * Claims an idempotency key for a request; call it inside the transaction that does what was asked for. `jobId` is the
 * job that the answer is about; null where the answer is about none.
 * Two callers at once: the second waits here until the first has committed, and then gets its answer.
 */
export async function claimIdempotencyKey(
  db: Database,
  environmentId: number,
  key: string,
  requestDigest: Buffer,
  jobId: string | null,
): Promise<IdempotencyClaim> {
  const claimed = await db
    .insertInto('idempotency_keys')
    .values({
      environment_id: environmentId,
      idempotency_key: key,
      request_digest: requestDigest,
      job_id: jobId,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['environment_id', 'idempotency_key'])
        .doUpdateSet({
          request_digest: requestDigest,
          job_id: jobId,
          answer: null,
          created_at: sql`excluded.created_at`,
        })
        .where(
          'idempotency_keys.created_at',
          '<',
          sql<Date>`excluded.created_at - ${keptHours} * interval '1 hour'`,
        ),
    )
    .returning('idempotency_key')
    .executeTakeFirst();
  if (claimed !== undefined) return { outcome: 'claimed' };
  const known = await db
    .selectFrom('idempotency_keys')
    .select(['request_digest', 'job_id', 'answer', 'created_at'])
    .where((eb) => eb.and({ environment_id: environmentId, idempotency_key: key }))
    .executeTakeFirstOrThrow();
  return known.request_digest.equals(requestDigest)
    ? { outcome: 'known', jobId: known.job_id, answer: known.answer, claimedAt: known.created_at }
    : { outcome: 'conflict' };
}

/** Keeps what a key that was claimed in this transaction answers with: `answer`, or a job that was there before. */
export async function keepAnswer(
  db: Database,
  environmentId: number,
  key: string,
  answer: { readonly answer: object } | { readonly job_id: string },
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set('answer' in answer ? { answer: JSON.stringify(answer.answer) } : answer)
    .where((eb) => eb.and({ environment_id: environmentId, idempotency_key: key }))
    .execute();
}

/**
 * Claims an Idempotency-Key for doing something to a job; call it in the transaction that does it. Null: it is to be
 * done. A date: that is when it was done, and it must not be done again. Throws `InputError` `idempotency_conflict`.
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
  const claim = await claimIdempotencyKey(db, environmentId, idempotencyKey, digest, jobId);
  if (claim.outcome === 'conflict') throw idempotencyConflict();
  return claim.outcome === 'known' ? claim.claimedAt : null;
}

export async function isKeyKnown(
  db: Database,
  environmentId: number,
  idempotencyKey: string,
): Promise<boolean> {
  const known = await db
    .selectFrom('idempotency_keys')
    .select('idempotency_key')
    .where((eb) => eb.and({ environment_id: environmentId, idempotency_key: idempotencyKey }))
    .executeTakeFirst();
  return known !== undefined;
}
