import pLimit from 'p-limit';
import { ConflictError, Interrupted } from '../domain/errors.ts';
import type { InboxFile } from '../domain/inbox.ts';
import { MAX_INBOX_FAILURES } from '../domain/limits.ts';
import { isTransient } from '../postgres/sqlstate.ts';
import { claimedFiles, countInboxFailure, environmentsWithClaims } from '../postgres/stores/inbox-files.ts';
import type { Inbox, InboxContext } from './context.ts';
import { Patience } from './patience.ts';
import { giveUp, takeIn } from './take-in.ts';

const filesAtATime = 100;
/** Environments whose files are being received at the same moment. */
const linesAtATime = 4;

/**
 * The files of an environment are taken in one after another, in order of arrival, whatever their loads are doing;
 * environments do not wait for each other.
 */
export class Lines {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #signal: AbortSignal;
  readonly #running = new Map<number, Promise<void>>();
  readonly #patience = new Patience<number>();
  readonly #atATime = pLimit(linesAtATime);

  constructor(context: InboxContext, inbox: Inbox, signal: AbortSignal) {
    this.#context = context;
    this.#inbox = inbox;
    this.#signal = signal;
  }

  /** Starts a line wherever files wait and none runs. */
  async start(): Promise<void> {
    for (const environmentId of await environmentsWithClaims(this.#context.db, this.#inbox.id)) {
      if (this.#running.has(environmentId) || !this.#patience.isOver(environmentId)) continue;
      const line = this.#atATime(() => this.#run(environmentId)).finally(() =>
        this.#running.delete(environmentId),
      );
      this.#running.set(environmentId, line);
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
    this.#patience.succeeded(file.environmentId);
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
    const waitMs = this.#patience.failed(environmentId);
    const fields = { err: error, environment_id: environmentId, file_id: file?.fileId, wait_ms: waitMs };
    this.#context.log.warn(fields, 'inbox: a file cannot be taken in now; it will be tried again');
  }
}
