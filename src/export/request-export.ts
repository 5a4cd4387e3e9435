import { uuidv7 } from 'uuidv7';
import { InputError, idempotencyConflict, type Problem } from '../domain/errors.ts';
import { namesAmong } from '../domain/export.ts';
import { type DueTask, jobFields, type Origin } from '../domain/task.ts';
import type { Idempotency } from '../ingest/records.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { keepTrace } from '../postgres/stores/background-jobs.ts';
import { findFeaturesAndEvents } from '../postgres/stores/definitions.ts';
import { insertExport } from '../postgres/stores/exports.ts';
import { claimIdempotencyKey } from '../postgres/stores/idempotency.ts';
import { readSegmentDefinitions } from '../postgres/stores/segments.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { ExportContext } from './context.ts';
import { noSuchSegment, type ReadRequest, readRequest } from './read-request.ts';

export interface ExportExtras {
  /** The id of the HTTP request, if it came by one. */
  readonly requestId?: string;
  /** Who or what asked for it; by default that is not known. */
  readonly origin?: Origin;
  /** The retention; null for that of the configuration. */
  readonly retentionDays?: number | null;
  /** Written in the transaction of the export, so that both are there or neither. */
  readonly inSameTransaction?: (db: Database, jobId: string) => Promise<void>;
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
    if (accepted.jobId === jobId) await keepTrace(db, context.tracing, jobId);
    await extras?.inSameTransaction?.(db, accepted.jobId);
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
  await requireValid(db, environmentId, read);
  const { requestId = null, origin = null, retentionDays = null } = extras ?? {};
  const task = await insertExport(db, {
    jobId,
    requestId,
    origin,
    environmentId,
    request: read.request,
    emails: read.emails,
    warnings: read.warnings,
    retentionDays,
  });
  return { jobId, tasks: task === null ? [] : [task] };
}

/** @throws InputError with every problem of the request, also with what it names and the environment does not have. */
export async function requireValid(db: Database, environmentId: number, read: ReadRequest): Promise<void> {
  const [first, ...more] = [...read.problems, ...(await lookUpNames(db, environmentId, read))];
  if (first !== undefined) throw new InputError(first, ...more);
}

/** Looks up the names in the request. @throws InputError for those that the environment does not have. */
async function lookUpNames(
  db: Database,
  environmentId: number,
  { request, eventTypes }: ReadRequest,
): Promise<Problem[]> {
  const named = request.exclusions
    .filter(({ kind, pattern }) => kind === 'segment' && !pattern.includes('*'))
    .map(({ pattern }) => ({ id: Number(pattern), details: `exclusions: segment:${pattern}` }));
  if (request.segmentId !== null) named.unshift({ id: request.segmentId, details: 'segment_id' });
  return [
    ...(await findUnknownSegments(db, environmentId, named)),
    ...(await findUnknownEvents(db, environmentId, namesAmong(eventTypes))),
  ];
}

async function findUnknownSegments(
  db: Database,
  environmentId: number,
  named: readonly { readonly id: number; readonly details: string }[],
): Promise<Problem[]> {
  if (named.length === 0) return [];
  const known = new Set((await readSegmentDefinitions(db, environmentId)).map(({ id }) => id));
  return named
    .filter(({ id }) => !known.has(id))
    .map(({ details }) => ({ code: 'unknown_segment', message: noSuchSegment, details }));
}

async function findUnknownEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<Problem[]> {
  const known = await findFeaturesAndEvents(db, environmentId, names);
  return names
    .filter((name) => !known.has(name))
    .map((name) => ({
      code: 'unknown_event_type',
      message: 'This is neither users, companies, events nor the key of an event or feature',
      details: `event_type: ${name.slice(0, 100).toWellFormed()}`,
    }));
}
