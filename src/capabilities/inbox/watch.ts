import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { listEnvironments } from '../../access/environment-store.ts';
import { ConflictError, Interrupted } from '../../base/errors.ts';
import { type Poller, startPoller } from '../../base/timers.ts';
import type { Environment } from '../../domain/caller.ts';
import { codeOf } from '../../files/disk.ts';
import type { WorkSeam } from '../../jobs/seam.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { concludeFiles } from './conclude.ts';
import { Backoff, createInboxOpener, type Inbox, type InboxContext, Warnings } from './context.ts';
import { type InboxFolder, inboxFolders } from './files.ts';
import { ensureFolder, isFolder, lookInto, offerFolder, placeOf, StableFiles, statOf } from './folders.ts';
import { FolderMapping } from './mapping.ts';
import { InboxLock, readOpenInboxFiles, rowKey } from './store.ts';
import { giveUp, type ReadyFile, takeIn } from './take-in.ts';

/*
 * Watches the inbox, which has a folder for each environment. Until the load of a file has ended,
 * the file remains in place, and a row in `inbox_files` marks it as taken.
 */

/** Pause between scans, as a fraction of the time for which a file must be unchanged. */
const lookShare = 0.4;
const shortestLookMs = 20;
const longestLookMs = 2_000;
const concludeMs = 500;
const visitsAtATime = 4;
/** If taking a file fails this many times with errors not known to be transient, it is given up. */
const maxFailures = 8;

interface LockedInbox {
  readonly inbox: Inbox;
  readonly lock: InboxLock;
  /** `null` while another process has the lock. */
  watch: InboxWatch | null;
}

/** Errors are logged and retried, never thrown. */
export function startInbox(context: InboxContext, directory: string): Poller {
  const { config, databaseUrl, monitor, log } = context;
  const lookEveryMs = Math.min(longestLookMs, Math.max(shortestLookMs, config.inboxStableMs * lookShare));
  const open = createInboxOpener(directory);
  const backoff = new Backoff<'step'>();
  let current: LockedInbox | null = null;
  let lookAtMs = 0;
  let isStopped = false;

  const leave = async (): Promise<void> => {
    const previous = current;
    current = null;
    await previous?.watch?.stop('the inbox is left');
    await previous?.lock.release();
  };

  /** If the inbox has a new id, another volume was mounted, so the watch starts again. */
  const hold = async (): Promise<InboxWatch | null> => {
    const inbox = await open();
    if (current !== null && (current.inbox.id !== inbox.id || current.inbox.path !== inbox.path))
      await leave();
    const lost = (): void => {
      log.warn('inbox: the lock is lost');
      current?.watch?.interrupt('the lock of the inbox is lost');
    };
    current ??= { inbox, lock: new InboxLock({ url: databaseUrl, monitor }, inbox.id, lost), watch: null };
    const isOurs = await current.lock.hold();
    if (current.watch?.isInterrupted === true) {
      await current.watch.stop('the lock of the inbox is lost');
      current.watch = null;
    }
    if (!isOurs || isStopped) return null;
    if (current.watch === null) log.info({ inbox: inbox.path }, 'inbox: this process watches it');
    current.watch ??= new InboxWatch(context, inbox);
    return current.watch;
  };

  const step = async (): Promise<void> => {
    const isDue = performance.now() >= lookAtMs;
    if (isStopped || !backoff.isDue('step') || (!isDue && !current?.watch)) return;
    try {
      const watch = await hold();
      if (isDue) {
        lookAtMs = performance.now() + lookEveryMs;
        await watch?.look();
      }
      await watch?.conclude();
      backoff.succeeded('step');
    } catch (error) {
      if (isStopped) return;
      const fields = { err: error, wait_ms: backoff.failed('step') };
      log.warn(fields, 'inbox: it cannot be watched now; it will be tried again');
    }
  };

  const poller = startPoller(Math.min(lookEveryMs, concludeMs), step);
  return {
    async stop() {
      isStopped = true;
      current?.watch?.interrupt('the worker stops');
      await poller.stop();
      await leave();
    },
  };
}

export class InboxWatch {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #abort = new AbortController();
  readonly #warnings: Warnings;
  readonly #atATime = pLimit(visitsAtATime);
  readonly #visiting = new Map<number, Promise<void>>();
  readonly #environments = new Map<number, EnvironmentWatch>();
  readonly #unvisited = new Backoff<number>();
  readonly #unconcluded = new Backoff<string>();

  constructor(context: InboxContext, inbox: Inbox) {
    this.#context = context;
    this.#inbox = inbox;
    this.#warnings = new Warnings(context.log);
  }

  /**
   * Visits the environments. Skips an environment if its previous visit has not ended, or if it has
   * to wait after a failure. An error in one environment does not affect another.
   */
  async look(): Promise<void> {
    const environments = await listEnvironments(this.#context.db);
    await this.#warnOfOthers(environments);
    for (const environment of environments) {
      const { environmentId } = environment;
      if (this.#visiting.has(environmentId) || !this.#unvisited.isDue(environmentId)) continue;
      const visit = this.#atATime(() => this.#visit(environment)).finally(() =>
        this.#visiting.delete(environmentId),
      );
      this.#visiting.set(environmentId, visit);
    }
  }

  async conclude(): Promise<void> {
    await concludeFiles(this.#context, this.#inbox, this.#unconcluded, this.#abort.signal);
  }

  get isInterrupted(): boolean {
    return this.#abort.signal.aborted;
  }

  interrupt(reason: string): void {
    this.#abort.abort(new Interrupted(reason));
  }

  async stop(reason: string): Promise<void> {
    this.interrupt(reason);
    await this.ended();
  }

  async ended(): Promise<void> {
    await Promise.all(this.#visiting.values());
  }

  async #visit(environment: Environment): Promise<void> {
    const { environmentId, name } = environment;
    const { signal } = this.#abort;
    if (signal.aborted) return;
    const watch =
      this.#environments.get(environmentId) ?? new EnvironmentWatch(this.#context, this.#inbox, environment);
    this.#environments.set(environmentId, watch);
    try {
      await watch.visit(signal);
      this.#unvisited.succeeded(environmentId);
    } catch (error) {
      if (signal.aborted) return;
      const fields = { err: error, environment: name, wait_ms: this.#unvisited.failed(environmentId) };
      this.#context.log.warn(fields, 'inbox: files cannot be taken in now; it will be tried again');
    }
  }

  async #warnOfOthers(environments: readonly Environment[]): Promise<void> {
    const environmentNames = new Set(environments.map(({ name }) => name));
    for (const name of await readdir(this.#inbox.path)) {
      const path = join(this.#inbox.path, name);
      const isReal = name.startsWith('.') || (await isFolder(path));
      if (!isReal) this.#warnings.warn(path, environmentNames.has(name) ? notAFolder : noEnvironment);
      else if (!name.startsWith('.') && !environmentNames.has(name))
        this.#warnings.warn(path, unknownEnvironment);
    }
    this.#warnings.endLook();
  }
}

/**
 * A file with the name of a folder is easily created by accident. If the folder is missing, `cp
 * a.csv inbox/default/users` creates a file named `users`.
 */
const notAFolder =
  'is left alone: it is to be a folder, not a file or a link; rename it, and make the folder';
const unknownEnvironment =
  'is left alone: there is no environment of that name; create it with `sluice env create <name>`, or rename the folder';
const unreadable = 'is left alone: the user that sluice runs as may not look into it';
const noEnvironment = 'is left alone: files go into the folder of an environment, such as default/';

class EnvironmentWatch {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #environment: Environment;
  readonly #path: string;
  readonly #warnings: Warnings;
  readonly #stable: StableFiles;
  readonly #mappings: ReadonlyMap<InboxFolder, FolderMapping>;
  #isMade = false;
  /** The file whose intake failed last. Later files must not overtake it. */
  #blocker: { readonly place: string; readonly failures: number } | null = null;

  constructor(context: InboxContext, inbox: Inbox, environment: Environment) {
    const { config, optionTable } = context;
    const { inboxStableMs } = config;
    this.#context = context;
    this.#inbox = inbox;
    this.#environment = environment;
    this.#path = join(inbox.path, environment.name);
    this.#warnings = new Warnings(context.log);
    this.#stable = new StableFiles(inboxStableMs);
    this.#mappings = new Map(
      inboxFolders.map((each) => [each, new FolderMapping(optionTable, each, inboxStableMs)]),
    );
  }

  /** Takes the files that are ready. Throws if a file must be tried again. */
  async visit(signal: AbortSignal): Promise<void> {
    for (const file of await this.#findReady()) {
      if (signal.aborted) return;
      try {
        await takeIn(this.#context, this.#inbox, this.#environment, file, signal);
      } catch (error) {
        if (error instanceof ConflictError) continue;
        if (signal.aborted || isTransient(error) || this.#mayPass(file)) throw error;
        this.#context.log.error({ err: error, file: placeOf(file) }, 'inbox: the file is given up');
        await giveUp(this.#context, this.#inbox, this.#environment, file, maxFailures, error);
      }
      this.#blocker = null;
    }
  }

  async #findReady(): Promise<ReadyFile[]> {
    if (!this.#isMade) await this.#makeFolders();
    // Reads the taken files before the scan. Otherwise, a file that is concluded in between would
    // be mistaken for new.
    const { at: seenAt, keys } = await readOpenInboxFiles(
      this.#context.db,
      this.#inbox.id,
      this.#environment.environmentId,
    );
    const now = { monotonicMs: performance.now(), wallMs: Date.now() };
    const seen: ReadyFile[] = [];
    for (const [folder, mapping] of this.#mappings) {
      const path = join(this.#path, folder);
      if (!(await isFolder(path))) {
        if ((await statOf(path)) !== null) this.#warnings.warn(path, notAFolder);
        continue;
      }
      try {
        const view = await lookInto(path, folder);
        for (const { name, why } of view.ignored) this.#warnings.warn(join(path, name), why);
        const options = await mapping.look(path, view.mapping, now, this.#warnings);
        if (options === null) continue;
        const files = view.files.filter((file) => !keys.has(rowKey(file)));
        seen.push(...files.map((file) => ({ ...file, seenAt, options })));
      } catch (error) {
        if (codeOf(error) !== 'EACCES') throw error;
        this.#warnings.warn(path, unreadable);
      }
    }
    this.#warnings.endLook();
    return this.#stable.look(seen, now);
  }

  async #makeFolders(): Promise<void> {
    await ensureFolder(this.#path);
    for (const folder of inboxFolders) if (folder !== '') await offerFolder(join(this.#path, folder));
    this.#isMade = true;
  }

  /**
   * Returns false after the last allowed attempt, so that the file no longer blocks later files.
   */
  #mayPass(file: ReadyFile): boolean {
    const place = placeOf(file);
    const failures = (this.#blocker?.place === place ? this.#blocker.failures : 0) + 1;
    this.#blocker = { place, failures };
    return failures < maxFailures;
  }
}

export const work: WorkSeam = {
  open: (system) => ({
    start: () => (system.config.inboxDir === null ? null : startInbox(system, system.config.inboxDir)),
  }),
};
