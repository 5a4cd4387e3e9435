import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { type InboxFile, type InboxOutcome, type InboxReason, isSameFile } from '../../domain/inbox.ts';
import type { GuardLimit, Load } from '../../domain/load.ts';
import type { ReadAs, SourceOptions } from '../../domain/source.ts';
import { sourceOptionNames, sourceOptions } from '../../domain/source-options.ts';
import { syncFolder } from '../../files/disk.ts';
import { exportRejects } from '../../load/rejects.ts';
import { renderReadAs } from '../../load/render-load.ts';
import { filesToConclude, markConcluded, reservePlace } from '../../postgres/stores/inbox-files.ts';
import { countRejects, readLoads, readReadAs } from '../../postgres/stores/read-loads.ts';
import { claimPaths, removeClaimFolder, statOf } from './claimed-file.ts';
import { ensureFolder, identify, writeWhole } from './folders.ts';
import {
  type Backoff,
  type Inbox,
  type InboxContext,
  placedNames,
  receiptSuffix,
  rejectsSuffix,
} from './inbox.ts';

const filesAtATime = 100;
const writesAtATime = 4;

/**
 * Moves the files whose loads have ended, and those there is no load of, to done and failed, with their receipts. Where it
 * is cut short it is done again: a file's place stands in the ledger before anything is written there.
 * `backoff` is by file id, for those that cannot be moved now.
 */
export async function concludeFiles(
  context: InboxContext,
  inbox: Inbox,
  backoff: Backoff<string>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const files = await filesToConclude(context.db, inbox.id, backoff.waiting(), filesAtATime);
    const loads = await loadsOf(context, files);
    const atATime = pLimit(writesAtATime);
    const concluding: Promise<boolean>[] = [];
    for (const file of files) {
      if (signal.aborted) break;
      const load = loads.get(file.jobId ?? '') ?? null;
      concluding.push(
        tryTo(context, file, backoff, await prepare(context, inbox, file, load, backoff), atATime),
      );
    }
    const concluded = await Promise.all(concluding);
    if (signal.aborted || files.length < filesAtATime || !concluded.includes(true)) return;
  }
}

/** The files to write, once their place is fixed; null if not now. */
type Conclusion = (() => Promise<void>) | null;

/** Prepares conclusions in sequence, so that the first of files with one name gets it. */
async function prepare(
  context: InboxContext,
  inbox: Inbox,
  file: InboxFile,
  load: Load | null,
  backoff: Backoff<string>,
): Promise<Conclusion> {
  try {
    const paths = claimPaths(inbox, file);
    const claimed = await statOf(paths.claimed);
    const changed = claimed !== null && !isSameFile(identify(claimed), file);
    const decision = decideOutcome(file, load, changed);
    const place = await findPlace(context, inbox, file, decision);
    return () => conclude(context, inbox, file, load, { ...decision, outcome: place.outcome }, place);
  } catch (error) {
    failed(context, file, backoff, error);
    return null;
  }
}

async function tryTo(
  context: InboxContext,
  file: InboxFile,
  backoff: Backoff<string>,
  conclusion: Conclusion,
  atATime: ReturnType<typeof pLimit>,
): Promise<boolean> {
  if (conclusion === null) return false;
  try {
    await atATime(conclusion);
    backoff.succeeded(file.fileId);
    return true;
  } catch (error) {
    failed(context, file, backoff, error);
    return false;
  }
}

function failed({ log }: InboxContext, file: InboxFile, backoff: Backoff<string>, error: unknown): void {
  const waitMs = backoff.failed(file.fileId);
  const fields = { err: error, file_id: file.fileId, wait_ms: waitMs };
  log.warn(fields, 'inbox: a file cannot be moved to its place now; it will be tried again');
}

/** Folder and name, the same at every attempt. */
interface Place {
  readonly outcome: Outcome['outcome'];
  /** Absolute. */
  readonly folder: string;
  readonly name: string;
}

async function findPlace(
  context: InboxContext,
  inbox: Inbox,
  file: InboxFile,
  { outcome }: Outcome,
): Promise<Place> {
  const environment = join(inbox.path, file.environment);
  const day = file.placedAs?.slice(0, 10) ?? new Date().toISOString().slice(0, 10);
  const folder = join(environment, file.outcome ?? outcome, day);
  await ensureFolder(join(environment, file.outcome ?? outcome));
  await ensureFolder(folder);
  if (file.outcome !== null && file.placedAs !== null) {
    return { outcome: file.outcome, folder, name: file.placedAs.slice(11) };
  }
  for (const name of placedNames(file.name, file.fileId)) {
    if (await isTaken(folder, name)) continue;
    const reserved = await reservePlace(context.db, file.fileId, outcome, `${day}/${name}`);
    if (reserved === null) continue;
    // Another process may have been first.
    if (reserved.outcome !== outcome || reserved.placedAs !== `${day}/${name}`) {
      return findPlace(context, inbox, { ...file, ...reserved }, { outcome, reasons: [] });
    }
    return { outcome, folder, name };
  }
  throw new Error(`no name is free for the file in ${folder}`);
}

async function isTaken(folder: string, name: string): Promise<boolean> {
  for (const suffix of ['', receiptSuffix, rejectsSuffix]) {
    if ((await statOf(join(folder, name + suffix))) !== null) return true;
  }
  return false;
}

/** Beside the file first, then the file itself, then the ledger. */
async function conclude(
  context: InboxContext,
  inbox: Inbox,
  file: InboxFile,
  load: Load | null,
  decision: Outcome,
  { folder, name }: Place,
): Promise<void> {
  const paths = claimPaths(inbox, file);
  const placed = join(folder, name);
  if (await isToBeMoved(paths.claimed, placed)) {
    const rejectsByCode = await writeRejects(context, file, load, folder, name, paths.folder);
    const own = file.isDuplicate ? null : load;
    const readAs = own && (await readReadAs(context.db, file.environmentId, own.jobId));
    const receipt = renderReceipt(file, name, decision, load, { rejectsByCode, readAs });
    const text = Buffer.from(`${JSON.stringify(receipt, null, 2)}\n`);
    await writeWhole(folder, name + receiptSuffix, [text], paths.folder);
    await rename(paths.claimed, placed);
    await syncFolder(folder);
  } else if ((await statOf(placed)) === null) {
    context.log.error({ path: paths.claimed }, 'inbox: a claimed file is gone; somebody removed it');
  }
  await removeClaimFolder(paths);
  await markConcluded(context.db, file.fileId, decision.reasons);
  const fields = { file: placed, job_id: file.jobId, outcome: decision.outcome, reasons: decision.reasons };
  context.log.info(fields, 'inbox: file concluded');
}

/** Nothing is ever overwritten: names are looked at before they are reserved, and again before the file is moved. */
async function isToBeMoved(claimed: string, placed: string): Promise<boolean> {
  if ((await statOf(claimed)) === null) return false;
  if ((await statOf(placed)) === null) return true;
  // Another process may have moved it between the two looks.
  if ((await statOf(claimed)) === null) return false;
  throw new Error(`${placed} is taken by a file that is none of ours; move that one away`);
}

/** Rejects by code. */
async function writeRejects(
  context: InboxContext,
  file: InboxFile,
  load: Load | null,
  folder: string,
  name: string,
  draftFolder: string,
): Promise<Readonly<Record<string, number>>> {
  if (load === null || file.isDuplicate || load.tally.rejected === 0) return {};
  const { environmentId } = file;
  const rejects = exportRejects(context, environmentId, load.jobId, 'csv');
  await writeWhole(folder, name + rejectsSuffix, rejects, draftFolder);
  return countRejects(context, environmentId, load.jobId);
}

async function loadsOf(context: InboxContext, files: readonly InboxFile[]): Promise<Map<string, Load>> {
  const jobs = new Map<number, string[]>();
  for (const { environmentId, jobId } of files) {
    if (jobId !== null) jobs.set(environmentId, [...(jobs.get(environmentId) ?? []), jobId]);
  }
  const loads = new Map<string, Load>();
  for (const [environmentId, jobIds] of jobs) {
    for (const load of await readLoads(context, environmentId, jobIds)) loads.set(load.jobId, load);
  }
  return loads;
}

/** The details of a load that its row in a list lacks. */
interface FileReport {
  readonly rejectsByCode: Readonly<Record<string, number>>;
  readonly readAs: ReadAs | null;
}

/** Renders the file beside one in done or failed; times are in UTC. */
function renderReceipt(
  file: InboxFile,
  placedName: string,
  { outcome, reasons }: Outcome,
  load: Load | null,
  { rejectsByCode, readAs }: FileReport,
): object {
  const own = file.isDuplicate ? null : load;
  const rejected = own?.tally.rejected ?? 0;
  return {
    file: placedName,
    dropped_as: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
    environment: file.environment,
    outcome,
    reasons,
    size: Number(file.size),
    sha256: file.sha256,
    job_id: file.jobId,
    status: load?.status ?? null,
    entity: load?.entity ?? null,
    duplicate_of: file.isDuplicate ? file.jobId : (load?.duplicateOf ?? null),
    counts: own?.tally ?? null,
    counts_by_kind: own?.tallyByKind ?? null,
    read_as: readAs && renderReadAs(readAs),
    rejects: {
      count: rejected,
      by_code: rejectsByCode,
      file: rejected > 0 ? placedName + rejectsSuffix : null,
    },
    options: {
      map: file.options.map,
      entity: file.options.entity,
      preset: file.options.preset,
      max_errors: renderGuard(file.options.maxErrors),
      max_changed: renderGuard(file.options.maxChanged),
      max_removed_values: renderGuard(file.options.maxRemovedValues),
      if_duplicate: file.options.ifDuplicate,
      format: file.options.format,
      ...renderSource(file.options.source),
    },
    modified_at: new Date(Number(file.modifiedNs / 1_000_000n)),
    taken_at: file.claimedAt,
    accepted_at: own?.acceptedAt ?? null,
    started_at: own?.workStartedAt ?? null,
    ended_at: own?.endedAt ?? null,
    written_at: new Date(),
  };
}

/** Renders the options from mapping.yaml. */
function renderSource(source: SourceOptions): object {
  const given = sourceOptionNames.map((name) => [name, source[sourceOptions[name].key]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function renderGuard(limit: GuardLimit | null): number | string | null {
  if (limit === null) return null;
  return 'count' in limit ? limit.count : `${limit.percent}%`;
}

interface Outcome {
  readonly outcome: InboxOutcome;
  readonly reasons: readonly InboxReason[];
}

/**
 * Where a file goes, and why. `load` is that of its job, ended; null: there is none, or its record is gone. `changed`: the
 * claimed file is not what was loaded any more.
 */
function decideOutcome(file: InboxFile, load: Load | null, changed: boolean): Outcome {
  if (file.state === 'refused') return { outcome: 'failed', reasons: file.reasons };
  const failure = failureOf(load);
  if (failure !== null) {
    const reasons = file.isDuplicate ? [ofTheSameBytes(failure)] : [failure];
    return { outcome: 'failed', reasons };
  }
  if (changed) return { outcome: 'failed', reasons: [changedSince] };
  return { outcome: 'done', reasons: file.isDuplicate ? [duplicate(file)] : [] };
}

function failureOf(load: Load | null): InboxReason | null {
  if (load === null)
    return reason('job_expired', 'The record of the job is gone; what became of it is not known');
  if (load.status === 'completed') return null;
  if (load.failure !== null) return reason(load.failure.code, load.failure.message);
  return reason(load.status, `The job is ${load.status}`);
}

function ofTheSameBytes({ error_code, message }: InboxReason): InboxReason {
  return reason(error_code, `The same bytes were being loaded already, and that failed: ${message}`);
}

function duplicate({ jobId }: InboxFile): InboxReason {
  return reason(
    'duplicate_file',
    'The same bytes were loaded before; nothing was loaded',
    `job_id: ${jobId}`,
  );
}

const changedSince = reason(
  'file_changed',
  'The file was written to after it had been read: what was read then is loaded, what came later is not',
  'put the whole file into the inbox again; write files under another name, and rename them when they are complete',
);

function reason(error_code: string, message: string, details = ''): InboxReason {
  return { error_code, message, details };
}
