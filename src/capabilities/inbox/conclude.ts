import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { RefusalReason } from '../../domain/job.ts';
import { syncFolder } from '../../files/disk.ts';
import { type Load, readLoadResult, readLoads } from '../../load/read-store.ts';
import { exportRejects } from '../../load/rejects/rejects.ts';
import { renderLoadRun, renderReadAs } from '../../load/render-load.ts';
import {
  type Backoff,
  type Inbox,
  type InboxContext,
  placedNames,
  receiptSuffix,
  rejectsSuffix,
} from './context.ts';
import { type InboxFile, type InboxOutcome, isSameFile } from './files.ts';
import { ensureFolder, identify, moveWithoutOverwriting, placeOf, statOf, writeWhole } from './folders.ts';
import { renderFileRun } from './run.ts';
import { filesToConclude, markConcluded, reservePlace } from './store.ts';

const filesAtATime = 100;
const writesAtATime = 4;

/**
 * A file's destination is recorded before anything is written there, so an interrupted move can be
 * repeated.
 */
export async function concludeFiles(
  context: InboxContext,
  inbox: Inbox,
  backoff: Backoff<string>,
  signal: AbortSignal,
): Promise<void> {
  const tryTo = async (file: InboxFile): Promise<boolean> => {
    if (signal.aborted) return false;
    try {
      await conclude(context, inbox, file);
      backoff.succeeded(file.fileId);
      return true;
    } catch (error) {
      const fields = { err: error, file_id: file.fileId, wait_ms: backoff.failed(file.fileId) };
      context.log.warn(fields, 'inbox: a file cannot be moved to its place now; it will be tried again');
      return false;
    }
  };
  const atATime = pLimit(writesAtATime);
  for (;;) {
    const files = await filesToConclude(context.db, inbox.id, backoff.waiting(), filesAtATime);
    const concluded = await Promise.all(files.map((file) => atATime(tryTo, file)));
    if (signal.aborted || files.length < filesAtATime || !concluded.includes(true)) return;
  }
}

async function conclude(context: InboxContext, inbox: Inbox, file: InboxFile): Promise<void> {
  const { environmentId, jobId } = file;
  const [load = null] = jobId === null ? [] : await readLoads(context, environmentId, [jobId]);
  const reasons = reasonsOf(file, load);
  const { outcome, folder, name } = await findPlace(context, inbox, file, load);
  const dropped = join(inbox.path, file.environment, file.folder, file.name);
  const placed = join(folder, name);
  if (await isToBeMoved(dropped, placed, file)) {
    const receipt = await renderReceipt(context, file, load, { file: name, outcome, reasons });
    if (receipt.rejects.count > 0 && load !== null) {
      const rejects = exportRejects(context, environmentId, load.jobId, 'csv');
      await writeWhole(folder, name + rejectsSuffix, rejects);
    }
    const text = Buffer.from(`${JSON.stringify(receipt, null, 2)}\n`);
    await writeWhole(folder, name + receiptSuffix, [text]);
    await rename(dropped, placed);
    await syncFolder(folder);
  }
  const moved = await statOf(placed);
  if (moved?.size !== file.size || moved.mtimeNs !== file.modifiedNs) {
    context.log.warn({ path: dropped }, 'inbox: a file that was taken is gone, or was written to since');
    // Just before the move, another file replaced the loaded file. The other file must also be
    // loaded, so it is moved back.
    if (moved?.isFile() === true) await moveWithoutOverwriting(placed, dropped);
  }
  await markConcluded(context.db, file.fileId, reasons);
  context.log.info({ file: placed, job_id: jobId, outcome, reasons }, 'inbox: file concluded');
}

/** The destination was free when it was reserved, but may have been taken since. */
async function isToBeMoved(dropped: string, placed: string, file: InboxFile): Promise<boolean> {
  const isThere = async (): Promise<boolean> => {
    const stats = await statOf(dropped);
    return stats?.isFile() === true && isSameFile(identify(stats), file);
  };
  if (!(await isThere())) return false;
  if ((await statOf(placed)) === null) return true;
  // Another process may have moved the file after the first check.
  if (!(await isThere())) return false;
  throw new Error(`${placed} is taken by a file that is none of ours; move that one away`);
}

interface Place {
  readonly outcome: InboxOutcome;
  readonly folder: string;
  readonly name: string;
}

async function findPlace(
  context: InboxContext,
  inbox: Inbox,
  file: Pick<InboxFile, 'environment' | 'fileId' | 'name' | 'outcome' | 'placedAs' | 'state'>,
  load: Load | null,
): Promise<Place> {
  const isLoaded = file.state === 'loading' && load?.status === 'completed';
  const outcome = file.outcome ?? (isLoaded ? 'done' : 'failed');
  const day = (file.placedAs ?? new Date().toISOString()).slice(0, 10);
  const parent = join(inbox.path, file.environment, outcome);
  const folder = join(parent, day);
  await ensureFolder(parent);
  await ensureFolder(folder);
  if (file.placedAs !== null) return { outcome, folder, name: file.placedAs.slice(11) };
  for (const name of placedNames(file.name, file.fileId)) {
    if (await isTaken(folder, name)) continue;
    const reserved = await reservePlace(context.db, file.fileId, outcome, `${day}/${name}`);
    if (reserved !== null) return findPlace(context, inbox, { ...file, ...reserved }, load);
  }
  throw new Error(`no name is free for the file in ${folder}`);
}

async function isTaken(folder: string, name: string): Promise<boolean> {
  for (const suffix of ['', receiptSuffix, rejectsSuffix]) {
    if ((await statOf(join(folder, name + suffix))) !== null) return true;
  }
  return false;
}

async function renderReceipt(
  context: InboxContext,
  file: InboxFile,
  load: Load | null,
  {
    file: placedName,
    ...outcome
  }: { file: string; outcome: InboxOutcome; reasons: readonly RefusalReason[] },
) {
  const ownLoad = file.isDuplicate ? null : load;
  // `takenAt` is from the database's clock, which may be ahead of this machine's clock.
  const writtenAt = new Date(Math.max(Date.now(), file.takenAt.getTime()));
  const end = { ...file, ...outcome, status: load?.status ?? 'failed', endedAt: writtenAt };
  const run =
    ownLoad === null
      ? renderFileRun(file, end)
      : renderLoadRun(
          ownLoad,
          await readLoadResult(context.db, file.environmentId, ownLoad),
          context.baseUrl,
        );
  return {
    ...run,
    file: placedName,
    dropped_as: placeOf(file),
    environment: file.environment,
    ...outcome,
    duplicate_of: file.isDuplicate ? file.jobId : (load?.duplicateOf ?? null),
    counts_by_kind: ownLoad?.tallyByKind ?? null,
    read_as: ownLoad?.readAs ? renderReadAs(ownLoad.readAs) : null,
    rejects: { ...run.rejects, file: run.rejects.count > 0 ? placedName + rejectsSuffix : null },
    modified_at: new Date(Number(file.modifiedNs / 1_000_000n)),
    taken_at: file.takenAt,
    written_at: writtenAt,
  };
}

/** `load` is `null` if the file has no load, or if the record of the load was deleted. */
function reasonsOf(file: InboxFile, load: Load | null): readonly RefusalReason[] {
  if (file.state === 'refused') return file.reasons;
  if (load?.status === 'completed') return file.isDuplicate ? [duplicateOf(file)] : [];
  const [code, message] =
    load === null
      ? ['job_expired', 'The record of the job is gone; what became of it is not known']
      : [load.failure?.code ?? load.status, load.failure?.message ?? `The job is ${load.status}`];
  const same = file.isDuplicate ? 'The same bytes were being loaded already, and that failed: ' : '';
  return [{ error_code: code, message: `${same}${message}`, details: '' }];
}

function duplicateOf({ jobId }: InboxFile): RefusalReason {
  const message = 'The same bytes were loaded before; nothing was loaded';
  return { error_code: 'duplicate_file', message, details: `job_id: ${jobId}` };
}
