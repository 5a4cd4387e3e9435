import { createHash } from 'node:crypto';
import { type FileHandle, link, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { ConflictError, InputError, Interrupted, inputError } from '../../domain/errors.ts';
import type { InboxFile, InboxOptions, InboxReason } from '../../domain/inbox.ts';
import { MAX_INBOX_FAILURES, READ_BYTES } from '../../domain/limits.ts';
import { withKeys } from '../../domain/source-options.ts';
import { codeOf, syncFolder } from '../../files/disk.ts';
import { acceptLoad, convertingStore, discardReceived } from '../../load/accept-load.ts';
import { type ReceivedFile, receiveLocal } from '../../load/receive/receive.ts';
import { useMapping, withMapping } from '../../load/saved-mappings.ts';
import type { Database } from '../../postgres/database.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { findFailedInboxFile } from '../../postgres/stores/inbox.ts';
import {
  beginAttempt,
  claimedFiles,
  countInboxFailure,
  dropInboxFile,
  environmentsWithClaims,
  findTwin,
  markLoading,
  markRefused,
} from '../../postgres/stores/inbox-files.ts';
import { claimPaths, isUnchanged, openClaimed, putBack, removeClaimFolder, statOf } from './claimed-file.ts';
import { Backoff, findInbox, type Inbox, type InboxContext } from './inbox.ts';

/**
 * Takes a claimed file into the store and has its load accepted; the ledger's row of the file changes in the same
 * transaction, fenced by the attempt, so that one load comes of it however often this is begun. A file that cannot be
 * loaded as it is becomes `refused`.
 * Throws what may pass (`TransientError`, the signal's reason, errors of Postgres), and errors of reading the file.
 */
export async function takeIn(
  context: InboxContext,
  inbox: Inbox,
  file: InboxFile,
  signal: AbortSignal,
): Promise<void> {
  const attempt = await beginAttempt(context.db, file.fileId);
  if (attempt === null) return;
  const opened = await openClaimed(inbox, file);
  if (opened === 'gone') return drop(context, inbox, file, attempt);
  if (opened === 'changed') return giveBack(context, inbox, file, attempt);
  if (opened === 'unreadable') return refuse(context, file, attempt, null, [unreadable]);
  try {
    const taken = await receiveOrRefuse(context, file, attempt, opened, signal);
    if (taken === null) return;
    // Somebody still wrote to it: it was not complete, and will be looked at again.
    if (await isUnchanged(opened, file)) return await accept(context, file, attempt, taken);
    await discardReceived(context, taken.received.ref);
  } finally {
    await opened.close();
  }
  await giveBack(context, inbox, file, attempt);
}

interface Taken {
  readonly received: ReceivedFile;
  /** With what a saved mapping says. */
  readonly options: InboxOptions;
}

async function receiveOrRefuse(
  context: InboxContext,
  file: InboxFile,
  attempt: number,
  handle: FileHandle,
  signal: AbortSignal,
): Promise<Taken | null> {
  const { environmentId, options: said } = file;
  const store = convertingStore(context, environmentId);
  try {
    const options = await withMapping(context.db, environmentId, said.mapping, said);
    const { format, source, map } = options;
    const hints = { filename: file.name, format: format ?? undefined, source, map };
    const bytes = readThrough(handle, signal);
    return { received: await receiveLocal(bytes, store, hints, context.config, signal), options };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    await refuse(context, file, attempt, await hash(handle, signal), reasonsOf(error));
    return null;
  }
}

async function accept(
  context: InboxContext,
  file: InboxFile,
  attempt: number,
  { received, options: { format: _, mapping, ...options } }: Taken,
): Promise<void> {
  const { sha256 } = received;
  // The mapping of the other file at its time is unknown.
  const mayHaveTwin = options.ifDuplicate === 'skip' && mapping === null;
  const twin = mayHaveTwin ? await findTwin(context.db, file, sha256) : null;
  if (twin !== null) {
    await discardReceived(context, received.ref);
    return markLoading(context.db, file.fileId, attempt, { jobId: twin, isDuplicate: true, sha256 });
  }
  try {
    await acceptLoad(context, {
      environmentId: file.environmentId,
      type: 'import',
      filename: file.name,
      received,
      options: { ...options, dryRun: false, plan: false },
      idempotencyKey: null,
      inSameTransaction: async (db, { jobId, created }) => {
        await useMapping(db, file.environmentId, mapping);
        await markLoading(db, file.fileId, attempt, { jobId, isDuplicate: !created, sha256 });
      },
      origin: { kind: 'inbox', name: file.folder === '' ? file.name : `${file.folder}/${file.name}` },
    });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    await refuse(context, file, attempt, sha256, reasonsOf(error));
  }
}

/** Ends a file that there will be no load of. */
async function refuse(
  context: InboxContext,
  file: InboxFile,
  attempt: number,
  sha256: string | null,
  reasons: readonly InboxReason[],
): Promise<void> {
  await markRefused(context.db, file.fileId, attempt, sha256, reasons);
}

/** Refuses a file on which nobody works. */
async function giveUp(context: InboxContext, file: InboxFile, error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const attempt = await beginAttempt(context.db, file.fileId);
  if (attempt === null) return;
  const details = `given up after ${file.failures} attempts`;
  await refuse(context, file, attempt, null, [{ error_code: 'internal_error', message, details }]);
}

/** It is looked at again, as if it had just come; unless its place is taken: then it ends in failed, with its bytes. */
async function giveBack(
  context: InboxContext,
  inbox: Inbox,
  file: InboxFile,
  attempt: number,
): Promise<void> {
  if (await putBack(inbox, file)) await dropInboxFile(context.db, file.fileId, attempt);
  else await refuse(context, file, attempt, null, [replaced]);
}

/** Taken away by somebody between the look and the claim. */
async function drop(context: InboxContext, inbox: Inbox, file: InboxFile, attempt: number): Promise<void> {
  await removeClaimFolder(claimPaths(inbox, file));
  await dropInboxFile(context.db, file.fileId, attempt);
  context.log.warn(
    { path: claimPaths(inbox, file).dropped },
    'inbox: the file was taken away before it could be loaded',
  );
}

async function hash(handle: FileHandle, signal: AbortSignal): Promise<string> {
  const digest = createHash('sha256');
  for await (const bytes of readThrough(handle, signal)) digest.update(bytes);
  return digest.digest('hex');
}

/** All of the file, from its beginning. The handle stays open: what it is of is asked afterwards. */
async function* readThrough(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function reasonsOf(error: InputError): InboxReason[] {
  return error.problems.map(({ code, message, details }) => ({
    error_code: code,
    // The message names the option of the HTTP interface; here it is a key of mapping.yaml.
    message: withKeys(message).replace('with `map:', 'in mapping.yaml with `map:'),
    details,
  }));
}

const unreadable: InboxReason = {
  error_code: 'unreadable_file',
  message: 'The user that sluice runs as may not read this file',
  details: 'give it the right to, and put the file into the inbox again',
};

const replaced: InboxReason = {
  error_code: 'file_changed',
  message: 'The file was written to while it was being taken, and another lies in its place by now',
  details: 'write files under another name, and rename them when they are complete',
};

const filesAtATime = 100;
/** Environments whose files are being received at the same moment. */
const lanesAtATime = 4;

/**
 * The files of an environment are taken in one after another, in order of arrival, whatever their loads are doing;
 * environments do not wait for each other.
 */
export class InboxLanes {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #signal: AbortSignal;
  readonly #running = new Map<number, Promise<void>>();
  readonly #backoff = new Backoff<number>();
  readonly #atATime = pLimit(lanesAtATime);

  constructor(context: InboxContext, inbox: Inbox, signal: AbortSignal) {
    this.#context = context;
    this.#inbox = inbox;
    this.#signal = signal;
  }

  /** Starts a lane wherever files wait and none runs. */
  async start(): Promise<void> {
    for (const environmentId of await environmentsWithClaims(this.#context.db, this.#inbox.id)) {
      if (this.#running.has(environmentId) || !this.#backoff.isDue(environmentId)) continue;
      const lane = this.#atATime(() => this.#run(environmentId)).finally(() =>
        this.#running.delete(environmentId),
      );
      this.#running.set(environmentId, lane);
    }
  }

  /** Resolves when none runs any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Ends when no file waits, or one cannot be taken in now: those behind it must not overtake it. */
  async #run(environmentId: number): Promise<void> {
    try {
      for (;;) {
        const files = await claimedFiles(this.#context.db, this.#inbox.id, environmentId, filesAtATime);
        if (files.length === 0) return;
        for (const file of files) {
          if (this.#signal.aborted || !(await this.#takeIn(file))) return;
        }
      }
    } catch (error) {
      this.#wait(environmentId, error);
    }
  }

  /** False: not now. */
  async #takeIn(file: InboxFile): Promise<boolean> {
    try {
      await takeIn(this.#context, this.#inbox, file, this.#signal);
    } catch (error) {
      if (this.#signal.aborted || error instanceof Interrupted) return false;
      // Another process takes it in, or has done so.
      if (error instanceof ConflictError) return false;
      if (isTransient(error) || (await this.#mayPass(file, error))) {
        this.#wait(file.environmentId, error, file);
        return false;
      }
    }
    this.#backoff.succeeded(file.environmentId);
    return true;
  }

  /** An error that nobody knows may be the disk's, or this file's: after some tries it is not let hold up the others. */
  async #mayPass(file: InboxFile, error: unknown): Promise<boolean> {
    const failures = await countInboxFailure(this.#context.db, file.fileId);
    if (failures < MAX_INBOX_FAILURES) return true;
    this.#context.log.error({ err: error, file_id: file.fileId }, 'inbox: the file is given up');
    await giveUp(this.#context, { ...file, failures }, error);
    return false;
  }

  #wait(environmentId: number, error: unknown, file?: InboxFile): void {
    if (this.#signal.aborted) return;
    const waitMs = this.#backoff.failed(environmentId);
    const fields = { err: error, environment_id: environmentId, file_id: file?.fileId, wait_ms: waitMs };
    this.#context.log.warn(fields, 'inbox: a file cannot be taken in now; it will be tried again');
  }
}

/**
 * Puts a file that failed back to where it was dropped, under its name, so that whoever watches the inbox takes it in anew. Its
 * receipt stays. Throws `InputError` `not_found`: there is no such file, or somebody has taken it away, or another one of that
 * name lies there now.
 */
export async function takeInAgain(
  { db }: { readonly db: Database },
  directory: string | null,
  environmentId: number,
  fileId: string,
): Promise<InboxFile> {
  const inbox = directory === null ? null : await findInbox(directory);
  const file = inbox === null ? null : await findFailedInboxFile(db, inbox.id, environmentId, fileId);
  if (inbox === null || file === null || file.placedAs === null) {
    throw inputError('not_found', 'there is no such failed file', `file_id: ${fileId}`);
  }
  const own = join(inbox.path, file.environment);
  const folder = join(own, file.folder);
  await moveWithoutOverwriting(join(own, 'failed', file.placedAs), join(folder, file.name));
  await syncFolder(folder);
  return file;
}

/**
 * A link fails where something of the name is there; where a file system has none, renaming is the best there is. Who is killed
 * between the two steps leaves a file with both names, which nobody takes; doing it again mends that.
 */
async function moveWithoutOverwriting(from: string, to: string): Promise<void> {
  try {
    await link(from, to).catch(async (error: unknown) => {
      if (codeOf(error) !== 'EEXIST' || !(await areOneFile(from, to))) throw error;
    });
    await rm(from);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') throw inputError('not_found', 'another file of that name lies in the inbox', to);
    if (code === 'ENOENT') throw inputError('not_found', 'the file is not in its place any more', from);
    if (code !== 'EPERM' && code !== 'ENOTSUP') throw error;
    await rename(from, to);
  }
}

async function areOneFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([statOf(one), statOf(other)]);
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}
