import { gzipSync } from 'node:zlib';
import type pg from 'pg';
import type { Logger } from 'pino';
import { readExportLayout } from '../access/environment-store.ts';
import { FinalFailure, InputError, inputError, type Problem, TookTooLong } from '../base/errors.ts';
import { MAX_PAGE_BYTES, MAX_SHOWN_RAW_BYTES, READ_TIMEOUT_MS } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';
import { shorten } from '../base/wording.ts';
import {
  type ExportRequest,
  type ExportWarning,
  exportFormatFacts,
  type FileDataset,
  namesAmong,
} from '../domain/export.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import { type DueTask, jobFields, type Origin } from '../domain/task.ts';
import type { FileStore } from '../files/file-store.ts';
import { readSegmentDefinitions } from '../lookups/segment-store.ts';
import { findFeaturesAndEvents } from '../lookups/store.ts';
import { findCursorProblem } from '../postgres/change-log.ts';
import { type CopySelect, estimateRows, setParameters } from '../postgres/copy-out.ts';
import { type Database, inSavepoint, inTransaction } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { countWithin, inSnapshot, type Snapshot } from '../postgres/session.ts';
import { isCancelledStatement } from '../postgres/sqlstate.ts';
import { claimIdempotencyKey } from '../tasks/idempotency.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { ExportContext } from './context.ts';
import { cursorExpired, findSegments } from './filter.ts';
import { findEventWarnings } from './kept-events.ts';
import { MEASURED_ROWS, PREVIEWED_ROWS } from './limits.ts';
import { noSuchSegment, type ReadRequest, readRequest } from './read-request.ts';
import { insertExport } from './store.ts';
import { type FilePlan, planFiles } from './write/write-export.ts';

/** Counting the rows of a file falls back to an estimate after this time. */
const EXPORT_COUNT_MS = 2_000;

export interface ExportExtras {
  readonly requestId?: string;
  readonly origin?: Origin;
  /** `null` for the configured retention. */
  readonly retentionDays?: number | null;
  readonly warnings?: readonly ExportWarning[];
  /** Runs in the transaction that adds the export. */
  readonly inSameTransaction?: (db: Database, jobId: string) => Promise<void>;
}

/**
 * Accepts an export. Returns its job id, or the first one with the same idempotency key.
 * @throws InputError with all problems, or for a conflict.
 */
export async function requestExport(
  context: ExportContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>>,
  idempotency: Idempotency | null = null,
  extras: ExportExtras | null = null,
): Promise<string> {
  const read = readRequest(body, await readExportLayout(context.db, environmentId));
  const jobId = uuidv7();
  const answer = await inTransaction(context.pool, async ({ db }) => {
    const accepted = await accept(db, environmentId, read, jobId, idempotency, extras);
    await extras?.inSameTransaction?.(db, accepted.jobId);
    return accepted;
  });
  if (answer.jobId !== jobId) return answer.jobId;
  const fields = jobFields({ jobId, requestId: extras?.requestId ?? null });
  context.log.info({ ...fields, datasets: read.request.datasets }, 'export accepted');
  // The ledger has the task. The reconciler repeats a lost notice.
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
  // First, so that a repetition gets the first answer even if its names are gone.
  if (idempotency !== null) {
    const { key, digest } = idempotency;
    const earlier = await claimIdempotencyKey(db, environmentId, key, digest, jobId);
    if (earlier !== null) return { jobId: earlier.jobId, tasks: [] };
  }
  await requireValid(db, environmentId, read);
  const { requestId = null, origin = null, retentionDays = null, warnings = [] } = extras ?? {};
  const task = await insertExport(db, {
    jobId,
    requestId,
    origin,
    environmentId,
    request: read.request,
    emails: read.emails,
    warnings: [...warnings, ...read.warnings, ...(await findEventWarnings(db, read.request))],
    retentionDays,
  });
  return { jobId, tasks: task === null ? [] : [task] };
}

/** @throws InputError with every problem, also names that the environment lacks. */
async function requireValid(db: Database, environmentId: number, read: ReadRequest): Promise<void> {
  const [first, ...more] = [...read.problems, ...(await lookUpNames(db, environmentId, read))];
  if (first !== undefined) throw new InputError(first, ...more);
  const problem = await findCursorProblem(db, read.request);
  if (problem === 'expired') throw inputError('cursor_expired', cursorExpired, 'since');
  if (problem === 'log off') throw inputError('invalid_field', logOff, 'include_removed');
}

const logOff =
  'What was removed is not known, because changes are not kept (CHANGES_DAYS is 0); leave include_removed out';

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

interface PreviewedFile {
  readonly dataset: FileDataset;
  readonly rows: number;
  /** False for a planner estimate, used if counting takes too long. */
  readonly isExact: boolean;
  /** Stored size, estimated from the first rows. */
  readonly bytes: number;
  /** Column line of a CSV. `null` for other formats. */
  readonly header: string | null;
  /** First rows as in the file, shortened, as NDJSON for binary formats. */
  readonly firstRows: readonly string[];
}

export interface ExportPreview {
  readonly request: ExportRequest;
  readonly warnings: readonly ExportWarning[];
  readonly files: readonly PreviewedFile[];
}

interface PreviewContext {
  readonly reader: Reader;
  readonly files: FileStore;
  readonly log: Logger;
}

/** Limit of the whole preview. Beyond it the answer is 503. */
const previewMs = 2 * READ_TIMEOUT_MS;

/** Counts what the export would hold now. @throws InputError with every problem of the body */
export async function previewExport(
  context: PreviewContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>>,
): Promise<ExportPreview> {
  const { reader, files, log } = context;
  const read = readRequest(body, await readExportLayout(reader.db, environmentId));
  const { request } = read;
  await requireValid(reader.db, environmentId, read);
  const warnings = [...read.warnings, ...(await findEventWarnings(reader.db, request))];
  const segments = await findSegments(reader.db, environmentId, request).catch((error: unknown) => {
    if (!(error instanceof FinalFailure)) throw error;
    throw inputError('unknown_segment', error.message, 'segment_id');
  });
  const signal = AbortSignal.timeout(previewMs);
  const snapshot = { name: 'sluice export preview', signal };
  const work = async (held: Snapshot): Promise<PreviewedFile[]> => {
    const filter = { environmentId, request, ...segments };
    const plans = await planFiles(held.client, files, filter);
    const found: PreviewedFile[] = [];
    for (const plan of plans) found.push(await previewFile(held, plan, request, signal));
    return found;
  };
  const previewed = await reader
    .inTurn(() => inSnapshot({ pool: reader.pool, log }, snapshot, work))
    .catch((error: unknown) => {
      throw signal.aborted ? new TookTooLong() : error;
    });
  return { request, warnings, files: previewed };
}

async function previewFile(
  { client }: Snapshot,
  plan: FilePlan,
  request: ExportRequest,
  signal: AbortSignal,
): Promise<PreviewedFile> {
  let [rows, isExact] = [0, true];
  for (const select of plan.selects) {
    const counted = await countRows(client, select);
    rows += counted.rows;
    isExact &&= counted.isExact;
  }
  const sample = await readSample(client, plan, signal);
  const ratio =
    exportFormatFacts[request.format].isPackedInside || request.compression === 'gzip' ? sample.ratio : 1;
  const bytes = (plan.header.length + (sample.rows === 0 ? 0 : (sample.bytes / sample.rows) * rows)) * ratio;
  return {
    dataset: plan.dataset,
    rows,
    isExact,
    bytes: Math.round(bytes),
    header:
      plan.header.length === 0 ? null : shorten(plan.header.toString('utf8').trimEnd(), MAX_SHOWN_RAW_BYTES),
    firstRows: sample.firstRows,
  };
}

/** Counts for EXPORT_COUNT_MS, then returns the planner's estimate. */
async function countRows(
  client: pg.PoolClient,
  select: CopySelect,
): Promise<{ readonly rows: number; readonly isExact: boolean }> {
  const count = async (): Promise<number> => {
    await setParameters(client, select);
    return countWithin(client, select.text, EXPORT_COUNT_MS);
  };
  const counted = await inSavepoint(client, count, isCancelledStatement);
  const isExact = 'result' in counted;
  const rows = isExact ? counted.result : Math.max(0, Math.round(await estimateRows(client, select)));
  return { rows, isExact };
}

interface Sample {
  /** Rows read, and their unpacked bytes. */
  readonly rows: number;
  readonly bytes: number;
  readonly ratio: number;
  readonly firstRows: readonly string[];
}

async function readSample(client: pg.PoolClient, plan: FilePlan, signal: AbortSignal): Promise<Sample> {
  const { toText } = plan;
  const firstRows: string[] = [];
  const kept: Buffer[] = [];
  let [rows, bytes, keptBytes] = [0, 0, 0];
  for await (const block of plan.blocks(client, signal, MEASURED_ROWS)) {
    const text = toText === null ? block : toText(block);
    let start = 0;
    for (const end of text.ends) {
      if (firstRows.length < PREVIEWED_ROWS) {
        firstRows.push(shorten(text.bytes.toString('utf8', start, end).trimEnd(), MAX_SHOWN_RAW_BYTES));
      }
      start = end;
    }
    rows += text.ends.length;
    bytes += text.bytes.length;
    if (keptBytes < MAX_PAGE_BYTES) {
      kept.push(Buffer.from(text.bytes));
      keptBytes += text.bytes.length;
    }
  }
  const ratio = keptBytes === 0 ? 1 : gzipSync(Buffer.concat(kept)).length / keptBytes;
  return { rows, bytes, ratio, firstRows };
}
