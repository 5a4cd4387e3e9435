/*
 * The inbox: files dropped into a folder are loaded. One worker at a time looks (`watch-environment.ts`),
 * waits until a file is stable, claims it by a rename, loads it (`take-in.ts`) and puts it with its receipt
 * into `done` or `failed` (`conclude.ts`). Promise: one load for each file, whatever dies meanwhile.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Interrupted } from '../../domain/errors.ts';
import { type Poller, startPoller } from '../../poller.ts';
import { type Environment, listEnvironments } from '../../postgres/stores/environments.ts';
import { InboxLock } from '../../postgres/stores/inbox.ts';
import type { ClaimTools } from './claimed-file.ts';
import { concludeFiles } from './conclude.ts';
import { findFolder } from './folders.ts';
import { Backoff, createInboxOpener, type Inbox, type InboxContext, Warnings } from './inbox.ts';
import { InboxLanes } from './take-in.ts';
import { EnvironmentWatch } from './watch-environment.ts';

/** Pause between two steps with claimed files; the folders may be scanned less often. */
const advanceMs = 500;

/**
 * Watches `directory`, if no other process does. Whatever goes wrong is logged and tried again later; nothing is thrown.
 */
export function startInbox(context: InboxContext, directory: string): Poller {
  const session = new InboxSession(context, directory);
  const { inboxScanMs } = context.config;
  const poller = startPoller(Math.min(inboxScanMs, advanceMs), () => session.step());
  return {
    async stop() {
      session.interrupt();
      await poller.stop();
      await session.close();
    },
  };
}

interface Holding {
  readonly inbox: Inbox;
  readonly lock: InboxLock;
  /** The lock; null while another process has it. */
  watch: { readonly at: InboxWatch; readonly abort: AbortController } | null;
}

class InboxSession {
  readonly #context: InboxContext;
  readonly #open: () => Promise<Inbox>;
  readonly #backoff = new Backoff<'step'>();
  #holding: Holding | null = null;
  #lookAtMs = 0;
  #stopped = false;

  constructor(context: InboxContext, directory: string) {
    this.#context = context;
    this.#open = createInboxOpener(directory);
  }

  async step(): Promise<void> {
    const isDue = performance.now() >= this.#lookAtMs;
    if (this.#stopped || !this.#backoff.isDue('step') || (!isDue && this.#watch === null)) return;
    try {
      const watch = await this.#hold();
      if (isDue) {
        this.#lookAtMs = performance.now() + this.#context.config.inboxScanMs;
        await watch?.look();
      }
      await watch?.advance();
      this.#backoff.succeeded('step');
    } catch (error) {
      if (this.#stopped) return;
      const waitMs = this.#backoff.failed('step');
      this.#context.log.warn(
        { err: error, wait_ms: waitMs },
        'inbox: it cannot be watched now; it will be tried again',
      );
    }
  }

  /** Ends what is under way at the next occasion. */
  interrupt(): void {
    this.#stopped = true;
    this.#holding?.watch?.abort.abort(new Interrupted('the worker stops'));
  }

  async close(): Promise<void> {
    await this.#end();
  }

  get #watch(): InboxWatch | null {
    return this.#holding?.watch?.at ?? null;
  }

  /** The watch, if this process has the lock. Another id means another directory: a mount came, or went. */
  async #hold(): Promise<InboxWatch | null> {
    const inbox = await this.#open();
    if (this.#holding !== null && !isSame(this.#holding.inbox, inbox)) await this.#end();
    this.#holding ??= this.#begin(inbox);
    const holding = this.#holding;
    const isOurs = await holding.lock.hold();
    if (holding.watch?.abort.signal.aborted === true) {
      await holding.watch.at.ended();
      holding.watch = null;
    }
    if (!isOurs || this.#stopped) return null;
    if (holding.watch === null) {
      const abort = new AbortController();
      holding.watch = { at: new InboxWatch(this.#context, inbox, abort.signal), abort };
      this.#context.log.info({ inbox: inbox.path }, 'inbox: this process watches it');
    }
    return holding.watch.at;
  }

  #begin(inbox: Inbox): Holding {
    const { databaseUrl, monitor, log } = this.#context;
    const lock: InboxLock = new InboxLock({ url: databaseUrl, monitor }, inbox.id, () => {
      log.warn('inbox: the lock is lost');
      this.#holding?.watch?.abort.abort(new Interrupted('the lock of the inbox is lost'));
    });
    return { inbox, lock, watch: null };
  }

  async #end(): Promise<void> {
    const holding = this.#holding;
    this.#holding = null;
    if (holding === null) return;
    holding.watch?.abort.abort(new Interrupted('the inbox is left'));
    await holding.watch?.at.ended();
    await holding.lock.release();
  }
}

function isSame(a: Inbox, b: Inbox): boolean {
  return a.id === b.id && a.path === b.path;
}

/** The work of the process that holds the lock of the inbox, until `signal` is aborted. */
export class InboxWatch {
  readonly #context: InboxContext;
  readonly #inbox: Inbox;
  readonly #signal: AbortSignal;
  readonly #lanes: InboxLanes;
  readonly #warnings: Warnings;
  readonly #tools: ClaimTools;
  readonly #concluding = new Backoff<string>();
  readonly #looking = new Backoff<string>();
  readonly #environments = new Map<string, EnvironmentWatch>();

  constructor(context: InboxContext, inbox: Inbox, signal: AbortSignal) {
    this.#context = context;
    this.#inbox = inbox;
    this.#signal = signal;
    this.#lanes = new InboxLanes(context, inbox, signal);
    this.#warnings = new Warnings(context.log);
    this.#tools = { warnings: this.#warnings, backoff: new Backoff() };
  }

  /** Looks into the folder of every environment; what goes wrong in one does not keep it from the others. */
  async look(): Promise<void> {
    const environments = await listEnvironments(this.#context.db);
    await this.#warnOfOthers(environments);
    for (const environment of environments) {
      if (this.#signal.aborted) return;
      if (this.#looking.isDue(environment.name)) await this.#lookInto(environment);
    }
    this.#warnings.endScan();
  }

  /** Takes in what is claimed, and concludes what has ended. */
  async advance(): Promise<void> {
    await this.#lanes.start();
    await concludeFiles(this.#context, this.#inbox, this.#concluding, this.#signal);
  }

  /** Resolves when nothing is under way any more, after the signal. */
  async ended(): Promise<void> {
    await this.#lanes.ended();
  }

  async #lookInto(environment: Environment): Promise<void> {
    const { name } = environment;
    const watch =
      this.#environments.get(name) ??
      new EnvironmentWatch(this.#context, this.#inbox, environment, this.#tools);
    this.#environments.set(name, watch);
    try {
      await watch.look();
      this.#looking.succeeded(name);
    } catch (error) {
      const waitMs = this.#looking.failed(name);
      const fields = { err: error, environment: name, wait_ms: waitMs };
      this.#context.log.warn(
        fields,
        'inbox: an environment cannot be looked into now; it will be tried again',
      );
    }
  }

  async #warnOfOthers(environments: readonly Environment[]): Promise<void> {
    const known = new Set(environments.map(({ name }) => name));
    for (const name of await readdir(this.#inbox.path)) {
      if (name.startsWith('.')) continue;
      const path = join(this.#inbox.path, name);
      const isFolder = (await findFolder(path)) !== null;
      if (known.has(name) && isFolder) continue;
      this.#warnings.warn(path, known.has(name) ? notReal : isFolder ? unknownEnvironment : noEnvironment);
    }
  }
}

const notReal = 'is left alone: the folder of an environment must be a folder, not a link to one';
const unknownEnvironment =
  'is left alone: there is no environment of that name; create it with `sluice env create <name>`, or rename the folder';
const noEnvironment = 'is left alone: files go into the folder of an environment, such as default/';
