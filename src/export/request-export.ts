import { gzipSync } from 'node:zlib';
import type pg from 'pg';
import type { Logger } from 'pino';
import { readExportLayout } from '../access/environment-store.ts';
import { FinalFailure, InputError, inputError, type Problem, TookTooLong } from '../base/errors.ts';
import {
  MAX_PAGE_BYTES,
  MAX_SHOWN_RAW_BYTES,
  MEASURED_ROWS,
  PREVIEWED_ROWS,
  READ_TIMEOUT_MS,
} from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';
import { shorten } from '../base/wording.ts';
import type { Act } from '../domain/act.ts';
import {
  type ExportRequest,
  type ExportWarning,
  exportFormatFacts,
  type FileDataset,
  namesAmong,
} from '../domain/export.ts';
import { type DueTask, jobFields, type Origin } from '../domain/task.ts';
import type { FileStore } from '../files/file-store.ts';
import { findFeaturesAndEvents } from '../lookups/store.ts';
import { findCursorProblem } from '../postgres/change-log.ts';
import { type CopySelect, estimateRows, setParameters } from '../postgres/copy-out.ts';
import { type Database, inSavepoint, inTransaction } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { countWithin, inSnapshot, type Snapshot } from '../postgres/session.ts';
import { isCancelledStatement } from '../postgres/sqlstate.ts';
import { claimIdempotencyKey, type Idempotency } from '../tasks/idempotency.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { ExportContext } from './context.ts';
import { cursorExpired, findLaterStart } from './filter.ts';
import type { ExportOptions } from './options.ts';
import { type ReadRequest, readRequest } from './read-request.ts';
import { findUnknownSegments } from './segments.ts';
import { insertExport } from './store.ts';
import { type FilePlan, planFiles } from './write/write-export.ts';

/** If counting the rows of a file takes longer than this, an estimate is used. */
const EXPORT_COUNT_MS = 2_000;

export interface ExportExtras {
  readonly requestId?: string;
  readonly origin?: Origin;
  /** Retention period of the files. `null` uses the settings. */
  readonly retentionDays?: number | null;
  readonly warnings?: readonly ExportWarning[];
  /** Further work that runs in the transaction that creates the export. */
  readonly inSameTransaction?: (db: Database, jobId: string) => Promise<void>;
}

/**
 * Creates an export and returns its job id. For a repeated idempotency key, returns the job id of
 * the first export.
 * @throws InputError with all problems, or for a conflict
 */
export async function requestExport(
  context: ExportContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>>,
  idempotency: Idempotency | null = null,
  extras: ExportExtras | null = null,
): Promise<string> {
  const layout = await readExportLayout(context.db, environmentId);
  const reading = readRequest(context.exportOptions, body, layout);
  const { exportOptions } = context;
  const jobId = uuidv7();
  const answer = await inTransaction(context.pool, async ({ db }) => {
    const accepted = await accept({ db, exportOptions }, environmentId, reading, jobId, idempotency, extras);
    if (accepted.jobId === jobId)
      await context.acts.record(db, describeRequest(environmentId, jobId, reading));
    await extras?.inSameTransaction?.(db, accepted.jobId);
    return accepted;
  });
  if (answer.jobId !== jobId) return answer.jobId;
  const fields = jobFields({ jobId, requestId: extras?.requestId ?? null });
  context.log.info({ ...fields, datasets: reading.request.datasets }, 'export accepted');
  // If this message is lost, the reconciler sends it again.
  void notifyQueue(context, answer.tasks);
  return jobId;
}

function describeRequest(environmentId: number, jobId: string, { request }: ReadRequest): Act {
  const { datasets, format } = request;
  const details = { datasets: datasets.join(', '), format };
  return { action: 'export.requested', environmentId, thing: jobId, details };
}

async function accept(
  { db, exportOptions }: Lookup,
  environmentId: number,
  reading: ReadRequest,
  jobId: string,
  idempotency: Idempotency | null,
  extras: ExportExtras | null,
): Promise<{ readonly jobId: string; readonly tasks: readonly DueTask[] }> {
  // The idempotency key is claimed before the names in the request are checked. Therefore, a
  // repeated request gets the first response, even if one of the names no longer exists.
  if (idempotency !== null) {
    const { key, digest } = idempotency;
    const earlier = await claimIdempotencyKey(db, environmentId, key, digest, jobId);
    if (earlier !== null) return { jobId: earlier.jobId, tasks: [] };
  }
  await requireValid({ db, exportOptions }, environmentId, reading);
  const { requestId = null, origin = null, retentionDays = null, warnings = [] } = extras ?? {};
  const task = await insertExport(db, {
    jobId,
    requestId,
    origin,
    environmentId,
    request: reading.request,
    emails: reading.emails,
    warnings: [...warnings, ...reading.warnings, ...(await findEventWarnings(db, reading.request))],
    retentionDays,
  });
  return { jobId, tasks: task === null ? [] : [task] };
}

async function findEventWarnings(db: Database, request: ExportRequest): Promise<readonly ExportWarning[]> {
  const keptFrom = await findLaterStart(db, request);
  if (keptFrom === null) return [];
  const message = `The range begins before ${keptFrom}. Retention may have removed older events or moved them to the lake`;
  return [{ message, details: 'from' }];
}

interface Lookup {
  readonly db: Database;
  readonly exportOptions: ExportOptions;
}

/**
 * Checks a request.
 * @throws InputError with all problems, including names that the environment lacks
 */
async function requireValid(lookup: Lookup, environmentId: number, reading: ReadRequest): Promise<void> {
  const { db } = lookup;
  const [first, ...more] = [...reading.problems, ...(await lookUpNames(lookup, environmentId, reading))];
  if (first !== undefined) throw new InputError(first, ...more);
  const problem = await findCursorProblem(db, reading.request);
  if (problem === 'expired') throw inputError('cursor_expired', cursorExpired, 'since');
  if (problem === 'log off') throw inputError('invalid_field', logOff, 'include_removed');
}

const logOff =
  'What was removed is not known, because changes are not kept (CHANGES_DAYS is 0); leave include_removed out';

async function lookUpNames(
  { db, exportOptions }: Lookup,
  environmentId: number,
  { request, eventTypes }: ReadRequest,
): Promise<Problem[]> {
  const segments = request.exclusions
    .filter(({ kind, pattern }) => kind === 'segment' && !pattern.includes('*'))
    .map(({ pattern }) => ({ id: Number(pattern), details: `exclusions: segment:${pattern}` }));
  return [
    ...(await exportOptions.findUnknown(db, environmentId, request.options)),
    ...(await findUnknownSegments(db, environmentId, segments)),
    ...(await findUnknownEvents(db, environmentId, namesAmong(eventTypes))),
  ];
}

async function findUnknownEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<Problem[]> {
  const keys = await findFeaturesAndEvents(db, environmentId, names);
  return names
    .filter((name) => !keys.has(name))
    .map((name) => ({
      code: 'unknown_event_type',
      message: 'This is neither users, companies, events nor the key of an event or feature',
      details: `event_type: ${name.slice(0, 100).toWellFormed()}`,
    }));
}

interface PreviewedFile {
  readonly dataset: FileDataset;
  readonly rows: number;
  /** False if counting took too long: `rows` is then the planner's estimate. */
  readonly isExact: boolean;
  /** Size of the stored files, estimated from their first rows. */
  readonly bytes: number;
  /** Header line of a CSV file. `null` for other formats. */
  readonly header: string | null;
  /** The first rows, each cut to a maximum length. Binary formats are shown as NDJSON. */
  readonly firstRows: readonly string[];
}

export interface ExportPreview {
  readonly request: ExportRequest;
  readonly warnings: readonly ExportWarning[];
  readonly files: readonly PreviewedFile[];
}

interface PreviewContext {
  readonly exportOptions: ExportOptions;
  readonly reader: Reader;
  readonly files: FileStore;
  readonly log: Logger;
}

/** If the whole preview takes longer than this, the response is 503. */
const previewMs = 2 * READ_TIMEOUT_MS;

/**
 * Computes a preview of the files that a request would export.
 * @throws InputError with all problems of the body
 */
export async function previewExport(
  context: PreviewContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>>,
): Promise<ExportPreview> {
  const { reader, files, log, exportOptions } = context;
  const { db } = reader;
  const reading = readRequest(exportOptions, body, await readExportLayout(db, environmentId));
  const { request } = reading;
  await requireValid({ db, exportOptions }, environmentId, reading);
  const warnings = [...reading.warnings, ...(await findEventWarnings(db, request))];
  const users = await exportOptions.selectUsers(db, environmentId, request).catch((error: unknown) => {
    if (!(error instanceof FinalFailure)) throw error;
    throw inputError('unknown_segment', error.message, 'segment_id');
  });
  const signal = AbortSignal.timeout(previewMs);
  const snapshot = { name: 'sluice export preview', signal };
  const work = async (openSnapshot: Snapshot): Promise<PreviewedFile[]> => {
    const filter = { environmentId, request, ...users };
    const plans = await planFiles(openSnapshot.client, files, filter);
    const previews: PreviewedFile[] = [];
    for (const plan of plans) previews.push(await previewFile(openSnapshot, plan, request, signal));
    return previews;
  };
  const previews = await reader
    .inTurn(() => inSnapshot({ pool: reader.pool, log }, snapshot, work))
    .catch((error: unknown) => {
      throw signal.aborted ? new TookTooLong() : error;
    });
  return { request, warnings, files: previews };
}

async function previewFile(
  { client }: Snapshot,
  plan: FilePlan,
  request: ExportRequest,
  signal: AbortSignal,
): Promise<PreviewedFile> {
  let rows = 0;
  let isExact = true;
  for (const select of plan.selects) {
    const count = await countRows(client, select);
    rows += count.rows;
    isExact &&= count.isExact;
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

async function countRows(
  client: pg.PoolClient,
  select: CopySelect,
): Promise<{ readonly rows: number; readonly isExact: boolean }> {
  const count = async (): Promise<number> => {
    await setParameters(client, select);
    return countWithin(client, select.text, EXPORT_COUNT_MS);
  };
  const attempt = await inSavepoint(client, count, isCancelledStatement);
  const isExact = 'result' in attempt;
  const rows = isExact ? attempt.result : Math.max(0, Math.round(await estimateRows(client, select)));
  return { rows, isExact };
}

interface Sample {
  /** Number of rows that were read. `bytes` is their size before compression. */
  readonly rows: number;
  readonly bytes: number;
  readonly ratio: number;
  readonly firstRows: readonly string[];
}

async function readSample(client: pg.PoolClient, plan: FilePlan, signal: AbortSignal): Promise<Sample> {
  const { toText } = plan;
  const firstRows: string[] = [];
  const pieces: Buffer[] = [];
  let rows = 0;
  let bytes = 0;
  let keptBytes = 0;
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
      pieces.push(Buffer.from(text.bytes));
      keptBytes += text.bytes.length;
    }
  }
  const ratio = keptBytes === 0 ? 1 : gzipSync(Buffer.concat(pieces)).length / keptBytes;
  return { rows, bytes, ratio, firstRows };
}
