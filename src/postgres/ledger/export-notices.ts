import { sql } from 'kysely';
import type { JobIdentity } from '../../domain/job-fields.ts';
import { NOTICE_LEASE_MS } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { isLapsed, leaseFor } from './lease.ts';

/** One attempt at telling of the end of an export; the attempt number fences what it notes. */
export interface NoticeClaim extends JobIdentity {
  readonly exportId: number;
  readonly environmentId: number;
  readonly environmentName: string;
  readonly attempt: number;
  /** Addresses still to be told. */
  readonly left: readonly string[];
}

const isDue = sql<boolean>`(
  (notify_lease_until is null and notify_due_at <= now())
  or ${isLapsed('notify_lease_until', NOTICE_LEASE_MS)}
)`;

/** Takes a message that is due; should we die, it is due again when the lease has lapsed. Null if there is nothing to tell. */
export async function claimNotice(db: Database, exportId: number): Promise<NoticeClaim | null> {
  const { rows } = await sql<NoticeClaim>`
    update exports e
    set
      notify_attempts = notify_attempts + 1,
      notify_due_at = ${leaseFor(NOTICE_LEASE_MS)},
      notify_lease_until = ${leaseFor(NOTICE_LEASE_MS)}
    from environments v
    where e.export_id = ${exportId}
      and v.environment_id = e.environment_id
      and ${isDue}
    returning
      e.export_id as "exportId",
      e.job_id as "jobId",
      e.request_id as "requestId",
      e.environment_id as "environmentId",
      v.name as "environmentName",
      e.notify_attempts as attempt,
      array(select unnest(e.emails) except select unnest(e.emails_told)) as left`.execute(db);
  return rows[0] ?? null;
}

/** An address is settled: it has the message, or never will. Noted at once, so that nobody is told twice. */
export async function markTold(
  db: Database,
  claim: NoticeClaim,
  address: string,
  refusal: string | null,
): Promise<void> {
  await own(db, claim)
    .set({
      emails_told: sql`array_append(emails_told, ${address})`,
      ...(refusal !== null && { notify_error: refusal }),
    })
    .execute();
}

/** Nothing more is to be told. */
export async function completeNotice(db: Database, claim: NoticeClaim): Promise<void> {
  await own(db, claim)
    .set({ notify_due_at: null, notify_lease_until: null, notified_at: sql`now()` })
    .execute();
}

/** To be tried again after `pauseMs`; null: never. */
export async function postponeNotice(
  db: Database,
  claim: NoticeClaim,
  pauseMs: number | null,
  error: string,
): Promise<void> {
  const due = pauseMs === null ? null : sql<Date>`now() + ${pauseMs} * interval '1 millisecond'`;
  await own(db, claim).set({ notify_due_at: due, notify_lease_until: null, notify_error: error }).execute();
}

function own(db: Database, claim: NoticeClaim) {
  return db
    .updateTable('exports')
    .where('export_id', '=', claim.exportId)
    .where('notify_attempts', '=', claim.attempt)
    .where('notify_lease_until', 'is not', null);
}

export async function findDueNotices(
  db: Database,
  limit: number,
): Promise<{ exportId: number; attempt: number }[]> {
  return db
    .selectFrom('exports')
    .select(['export_id as exportId', 'notify_attempts as attempt'])
    .where(isDue)
    .orderBy('notify_due_at')
    .limit(limit)
    .execute();
}
