import { uuidv7 } from 'uuidv7';
import { InputError, idempotencyConflict } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import type { DueTask } from '../domain/task.ts';
import type { Idempotency } from '../ingest/ingest.ts';
import type { Database } from '../postgres/database.ts';
import { claimIdempotencyKey } from '../postgres/ledger/idempotency.ts';
import { insertExport } from '../postgres/stores/exports.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { ExportContext } from './context.ts';
import { lookUpNames } from './look-up-names.ts';
import { type ReadRequest, readRequest } from './read-request.ts';

/** What the body does not say. */
export interface ExportExtras {
  /** Of the HTTP request that it came by; by default none. */
  readonly requestId?: string;
  /** Null: as the configuration says. */
  readonly retentionDays?: number | null;
  /** Written in the transaction of the export, so that both are there or neither. */
  readonly alongside?: (db: Database, jobId: string) => Promise<void>;
}

/**
 * Accepts an export: ledger first, then the queue. Returns its job id; that of the first one, if the same idempotency
 * key asked before. Throws `InputError` with every problem of the body, or `idempotency_conflict`.
 */
export async function requestExport(
  context: ExportContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>>,
  idempotency: Idempotency | null = null,
  extras: ExportExtras | null = null,
): Promise<string> {
  const read = readRequest(body);
  const jobId = uuidv7();
  const answer = await inTransaction(context.pool, async ({ db }) => {
    const accepted = await accept(db, environmentId, read, jobId, idempotency, extras);
    await extras?.alongside?.(db, accepted.jobId);
    return accepted;
  });
  if (answer.jobId !== jobId) return answer.jobId;
  const fields = jobFields({ jobId, requestId: extras?.requestId ?? null });
  context.log.info({ ...fields, datasets: read.request.datasets }, 'export accepted');
  // It is safe in the ledger; whoever is slow or away here, the reconciler makes up for.
  void notifyQueue(context, answer.tasks);
  return jobId;
}

async function accept(
  db: Database,
  environmentId: number,
  read: ReadRequest,
  jobId: string,
  idempotency: Idempotency | null,
  extras: ExportExtras | null,
): Promise<{ readonly jobId: string; readonly tasks: readonly DueTask[] }> {
  // First, so that a repetition is answered as before even if what it names is gone since.
  if (idempotency !== null) {
    const claim = await claimIdempotencyKey(db, environmentId, idempotency.key, idempotency.digest, jobId);
    if (claim.outcome === 'known' && claim.jobId !== null) return { jobId: claim.jobId, tasks: [] };
    if (claim.outcome !== 'claimed') throw idempotencyConflict();
  }
  const [first, ...more] = [...read.problems, ...(await lookUpNames(db, environmentId, read))];
  if (first !== undefined) throw new InputError(first, ...more);
  const { requestId = null, retentionDays = null } = extras ?? {};
  const task = await insertExport(db, {
    jobId,
    requestId,
    environmentId,
    request: read.request,
    emails: read.emails,
    retentionDays,
  });
  return { jobId, tasks: task === null ? [] : [task] };
}
