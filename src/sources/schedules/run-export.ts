import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, realpath, rename } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ExportFile } from '../../domain/export.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { requestExport } from '../../export/request-export.ts';
import type { FileRef } from '../../files/file-store.ts';
import { insertRunItem, readRunItems } from '../../postgres/stores/schedule-runs.ts';
import {
  endWait,
  findUnfinishedLoad,
  readExportedUntil,
  readWait,
  setDeliveredTo,
  setRange,
  untilCommitted,
} from '../../postgres/stores/schedules.ts';
import { holdRun, type RunAttempt, type ScheduleContext } from './context.ts';
import { type ExportRange, resolveRange } from './due-times.ts';
import { type ExportDefinition, requestOf } from './schedules-schema.ts';
import { isBelow, SourceFailure } from './source.ts';

const exportItem = 'export';

/**
 * Requests the export and, once it is completed, copies its files if `to_dir` is set. Returns what the run waits for before it
 * can request the export; `null` if nothing.
 */
export async function runExportRun(
  context: ScheduleContext,
  run: RunAttempt,
  exported: ExportDefinition,
  timeZone: string,
  signal: AbortSignal,
): Promise<Wait | null> {
  const { range: relative, to_dir: toDir, retention_days: retentionDays = null } = exported;
  const taken = (await readRunItems(context.db, run.runId)).find(({ item }) => item === exportItem);
  if (taken?.jobId != null) {
    if (toDir !== undefined) await deliverExport(context, run, taken.jobId, toDir, signal);
    return null;
  }
  if (toDir !== undefined) findParent(context.schedules.exportRoots, toDir);
  const wanted =
    relative === undefined
      ? null
      : resolveRange(relative, timeZone, run.dueAt, await readExportedUntil(context.db, run));
  // Nothing lies between: an earlier due time is done after a later one.
  if (wanted !== null && isEmpty(wanted)) return null;
  const range =
    wanted === null ? null : await settleRange(context, run, wanted, relative === 'since_last_success');
  if (range !== null && 'pauseMs' in range) return range;
  if (range !== null && isEmpty(range)) return null;
  const body = {
    ...requestOf(exported),
    ...(range !== null && { to: range.to, ...(range.from !== null && { from: range.from }) }),
  };
  await requestExport(context, run.environmentId, body, null, {
    origin: { kind: 'schedule', name: run.name },
    retentionDays,
    inSameTransaction: async (db, jobId) => {
      await holdRun(db, run);
      await endWait(db, run.claim.taskId);
      await setRange(db, run.runId, range?.from ?? null, range?.to ?? null);
      const item = { item: exportItem, version: null, jobId, isNew: true, error: null };
      await insertRunItem(db, run.runId, item);
    },
  });
  return null;
}

/** A wait of a run; the message names the load, if it waits for one. */
export interface Wait {
  readonly pauseMs: number;
  readonly message: string | null;
}

/** The interval at which a run checks whether a load has ended. */
const loadPauseMs = 5_000;

/**
 * Returns the range as it can be read now, or the wait. Events of a file are stored under the time at which its load was
 * accepted. If that load does not end in time, a range since the last success ends before it, and the next run continues
 * there; any other range is read as it is, and so is this one once the load is old.
 */
async function settleRange(
  context: ScheduleContext,
  run: RunAttempt,
  range: ExportRange,
  isResumed: boolean,
): Promise<ExportRange | Wait> {
  const { db, log, schedules } = context;
  const pauseMs = await untilCommitted(db, range.to, schedules.commitLagMs);
  if (pauseMs > 0) return { pauseMs, message: null };
  // Must come after the wait above: a load that is being accepted is in no table yet.
  const load = await findUnfinishedLoad(db, run.environmentId, range, schedules.loadHoldMs);
  if (load === null) return range;
  const fields = { schedule: run.name, due_at: run.dueAt, job_id: load.jobId };
  if (!load.isOld && schedules.now().getTime() - run.dueAt.getTime() < schedules.loadWaitMs) {
    const message = `waits for load ${load.jobId}, which was accepted before the end of the range`;
    if ((await readWait(db, run.claim.taskId)) !== message) log.info(fields, `a scheduled export ${message}`);
    return { pauseMs: loadPauseMs, message };
  }
  if (isResumed && !load.isOld) {
    log.warn(fields, 'the range of a scheduled export ends before a load that has not ended');
    return { ...range, to: load.acceptedAt };
  }
  log.warn(fields, 'a scheduled export lacks what a load that has not ended may still store in its range');
  return range;
}

function isEmpty({ from, to }: ExportRange): boolean {
  return from !== null && Date.parse(from) >= Date.parse(to);
}

/**
 * Copies the files of a completed export into a folder named by the due time, the manifest last: where it is, all is. Done
 * again it writes the same files.
 */
async function deliverExport(
  context: ScheduleContext,
  run: RunAttempt,
  jobId: string,
  toDir: string,
  signal: AbortSignal,
): Promise<void> {
  const { status, files } = await requireExport(context, run.environmentId, jobId);
  // The attempt that asked for it was lost. The run waits, and comes back when there is something to copy.
  if (status !== 'completed') return;
  if (files.length === 0) throw new SourceFailure('job_expired', 'the files of the export are gone');
  const folder = await makeFolder(context.schedules.exportRoots, toDir, run);
  for (const file of files) {
    signal.throwIfAborted();
    await copyFile(context, file, folder, signal);
  }
  await setDeliveredTo(context.db, run.claim, folder);
  context.log.info({ schedule: run.name, job_id: jobId, files: files.length }, 'export delivered');
}

/** Checked before there is an export, too: it would have been written for nobody. @throws SourceFailure */
function findParent(roots: readonly string[], toDir: string): { parent: string; root: string } {
  const parent = resolve(roots[0] ?? '/', toDir);
  const root = roots.find((each) => each === parent || isBelow(each, parent));
  if (root !== undefined) return { parent, root };
  throw outside();
}

async function makeFolder(roots: readonly string[], toDir: string, run: RunAttempt): Promise<string> {
  const { parent, root } = findParent(roots, toDir);
  const name = run.dueAt.toISOString().slice(0, 19).replaceAll(':', '');
  await mkdir(root, { recursive: true });
  const realRoot = await realpath(root);
  let folder = root;
  for (const part of relative(root, join(parent, `${run.name}-${name}Z`)).split(sep)) {
    folder = join(folder, part);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // A link on the way would lead elsewhere: nothing is made behind it. One to nowhere has no real path.
    const real = await realpath(folder).catch(() => null);
    if (real === null || !isBelow(realRoot, real)) throw outside();
  }
  return folder;
}

function outside(): SourceFailure {
  return new SourceFailure('outside_roots', 'to_dir leads out of the folders of SCHEDULES_EXPORT_ROOTS');
}

const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

async function copyFile(
  { files }: ScheduleContext,
  { filename, ref, sha256 }: ExportFile,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const [unfinished, finished] = [join(folder, `.${filename}.unfinished`), join(folder, filename)];
  const target = await open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o640);
  const hash = createHash('sha256');
  const hashed = async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const bytes of pieces) {
      hash.update(bytes);
      yield bytes;
    }
  };
  await pipeline(files.open(ref as FileRef), hashed, target.createWriteStream({ flush: true }), { signal });
  if (hash.digest('hex') !== sha256) throw new Error(`${filename} is not what its export wrote`);
  await rename(unfinished, finished);
}
