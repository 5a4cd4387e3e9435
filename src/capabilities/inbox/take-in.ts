import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { InputError, inputError, messageIn } from '../../base/errors.ts';
import { READ_BYTES } from '../../base/limits.ts';
import type { Naming } from '../../base/sentence.ts';
import { uuidv7 } from '../../base/uuid.ts';
import type { Environment } from '../../domain/caller.ts';
import type { RefusalReason } from '../../domain/job.ts';
import { yamlKeys } from '../../domain/option-table.ts';
import { codeOf, syncFolder } from '../../files/disk.ts';
import { localLimits } from '../../load/receive/receive.ts';
import { discardReceived } from '../../load/received.ts';
import { acceptSource, type ReceivedSource, receiveSource, type SourceFile } from '../../load/take-file.ts';
import { type ActContext, inOneTransaction } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import { findInbox, type Inbox, type InboxContext } from './context.ts';
import type { InboxFile, SeenFile } from './files.ts';
import { isFolder, isUnchanged, moveWithoutOverwriting, openSeen, placeOf } from './folders.ts';
import { renderFileRun } from './run.ts';
import { findFailedInboxFile, insertInboxFile, type NewInboxFile } from './store.ts';

export type ReadyFile = Pick<NewInboxFile, keyof SeenFile | 'options' | 'seenAt'>;

/**
 * Starts the load of a file. If the file cannot be loaded, it gets a row with the reasons. A
 * missing or changing file is left for a later scan.
 * @throws ConflictError if another process has taken the file
 */
export async function takeIn(
  context: InboxContext,
  inbox: Inbox,
  { environmentId, name: environment }: Environment,
  file: ReadyFile,
  signal: AbortSignal,
): Promise<void> {
  const handle = await openSeen(join(inbox.path, environment, file.folder, file.name), file);
  if (handle === null) return;
  const row = { ...file, fileId: uuidv7(), inboxId: inbox.id, environmentId };
  if (handle === 'unreadable') return refuse(context, row, null, [unreadable]);
  const { config } = context;
  const source: SourceFile = {
    environmentId,
    filename: file.name,
    options: file.options,
    hints: {},
    signal,
    limits: localLimits(config),
    chunkBytes: config.chunkBytes,
  };
  try {
    const result = await receiveSource(context, source, readThrough(handle, signal));
    if (await isUnchanged(handle, file)) await accept(context, row, source, result);
    else await discardReceived(context, result.received.ref);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const sha256 = await hash(handle, signal);
    if (await isUnchanged(handle, file)) await refuse(context, row, sha256, reasonsOf(error));
  } finally {
    await handle.close();
  }
}

async function accept(
  context: InboxContext,
  row: NewInboxFile,
  source: SourceFile,
  result: ReceivedSource,
): Promise<void> {
  const { sha256 } = result.received;
  const origin = { kind: 'inbox', name: placeOf(row) } as const;
  await acceptSource(context, source, result, origin, (db, { jobId, created }) =>
    insertInboxFile(db, row, { state: 'loading', jobId, isDuplicate: !created, sha256 }),
  );
}

export async function giveUp(
  context: InboxContext,
  inbox: Inbox,
  { environmentId }: Environment,
  file: ReadyFile,
  failures: number,
  error: unknown,
): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const details = `given up after ${failures} attempts`;
  const row = { ...file, fileId: uuidv7(), inboxId: inbox.id, environmentId };
  const reasons = [{ error_code: 'internal_error', message, details }];
  await refuse(context, row, null, reasons);
}

/** Refuses the file, and notifies the receivers that subscribe to failed loads. */
async function refuse(
  context: InboxContext,
  row: NewInboxFile,
  sha256: string | null,
  reasons: readonly RefusalReason[],
): Promise<void> {
  const { fileId, environmentId } = row;
  const file = { file_id: fileId, file: placeOf(row), reasons };
  const due = await context.db.transaction().execute(async (transaction) => {
    await insertInboxFile(transaction, row, { state: 'refused', sha256, reasons });
    return context.jobs.ended(transaction, {
      type: 'file.refused',
      environmentId,
      jobId: null,
      emails: [],
      async describe() {
        const now = new Date();
        const end = { status: 'failed', sha256, reasons, takenAt: now, endedAt: now } as const;
        return { ...renderFileRun(row, end), ...file };
      },
    });
  });
  context.log.warn({ ...file, size: Number(row.size), sha256 }, 'inbox: file refused');
  await notifyQueue(context, due);
}

async function hash(handle: FileHandle, signal: AbortSignal): Promise<string> {
  const digest = createHash('sha256');
  for await (const bytes of readThrough(handle, signal)) digest.update(bytes);
  return digest.digest('hex');
}

/** Leaves the handle open, because it is still needed to check that the file is unchanged. */
function readThrough(handle: FileHandle, signal: AbortSignal): AsyncIterable<Buffer> {
  return addAbortSignal(
    signal,
    handle.createReadStream({ start: 0, highWaterMark: READ_BYTES, autoClose: false }),
  );
}

const mappingKeys: Naming = { ...yamlKeys, preposition: 'in mapping.yaml with' };

function reasonsOf(error: InputError): RefusalReason[] {
  return error.problems.map((problem) => ({
    error_code: problem.code,
    message: messageIn(problem, mappingKeys),
    details: problem.details,
  }));
}

const unreadable: RefusalReason = {
  error_code: 'unreadable_file',
  message: 'The user that sluice runs as may not read this file',
  details: 'give it the right to, and put the file into the inbox again',
};

/**
 * Moves a failed file back, so that it is loaded again. The receipt remains in `failed`.
 * @throws InputError `not_found` if the file no longer exists or another file has its old name
 */
export function takeInAgain(
  { db, acts }: ActContext,
  directory: string | null,
  environmentId: number,
  fileId: string,
): Promise<InboxFile> {
  return inOneTransaction(db, async (transaction) => {
    // The act is recorded first: if recording failed after the move, the move could not be undone.
    await acts.record(transaction, { action: 'inbox_file.taken_again', environmentId, thing: fileId });
    return moveBack(transaction, directory, environmentId, fileId);
  });
}

async function moveBack(
  db: Database,
  directory: string | null,
  environmentId: number,
  fileId: string,
): Promise<InboxFile> {
  const inbox = directory === null ? null : await findInbox(directory);
  const file = inbox === null ? null : await findFailedInboxFile(db, inbox.id, environmentId, fileId);
  if (inbox === null || file === null || file.placedAs === null) {
    throw inputError('not_found', 'There is no such failed file', `file_id: ${fileId}`);
  }
  const environmentPath = join(inbox.path, file.environment);
  const folder = join(environmentPath, file.folder);
  const placed = join(environmentPath, 'failed', file.placedAs);
  // The response must not contain paths on the server.
  const refuse = (message: string, path: string) =>
    inputError('not_found', message, relative(inbox.path, path));
  // Through a link to a folder, people could move any file that this process can move.
  for (const path of [folder, join(environmentPath, 'failed'), dirname(placed)]) {
    if (!(await isFolder(path))) throw refuse('A folder is missing or is a link', path);
  }
  try {
    await moveWithoutOverwriting(placed, join(folder, file.name));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') throw refuse('Another file of that name is in the inbox', folder);
    if (code === 'ENOENT') throw refuse('The file is no longer in its place', placed);
    throw error;
  }
  await syncFolder(folder);
  return file;
}
