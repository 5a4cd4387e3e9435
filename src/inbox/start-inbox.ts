import { Interrupted } from '../domain/errors.ts';
import { InboxLock } from '../postgres/stores/inbox-lock.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { Inbox, InboxContext } from './context.ts';
import { createInboxOpener } from './open-inbox.ts';
import { Patience } from './patience.ts';
import { InboxWatch } from './watch-inbox.ts';

/** Between two rounds in which claimed files go on; looks into the folders may be rarer. */
const goOnMs = 500;

/**
 * Watches `directory`, if no other process does. Whatever goes wrong is logged and tried again later; nothing is thrown.
 */
export function startInbox(context: InboxContext, directory: string): Rounds {
  const session = new InboxSession(context, directory);
  const { inboxScanMs } = context.config;
  const rounds = startRounds(Math.min(inboxScanMs, goOnMs), () => session.round());
  return {
    async stop() {
      session.interrupt();
      await rounds.stop();
      await session.close();
    },
  };
}

interface Holding {
  readonly inbox: Inbox;
  readonly lock: InboxLock;
  /** Null while another process has the lock. */
  watch: { readonly at: InboxWatch; readonly abort: AbortController } | null;
}

class InboxSession {
  readonly #context: InboxContext;
  readonly #open: () => Promise<Inbox>;
  readonly #patience = new Patience<'round'>();
  #holding: Holding | null = null;
  #lookAtMs = 0;
  #stopped = false;

  constructor(context: InboxContext, directory: string) {
    this.#context = context;
    this.#open = createInboxOpener(directory);
  }

  async round(): Promise<void> {
    const isDue = performance.now() >= this.#lookAtMs;
    if (this.#stopped || !this.#patience.isOver('round') || (!isDue && this.#watch === null)) return;
    try {
      const watch = await this.#hold();
      if (isDue) {
        this.#lookAtMs = performance.now() + this.#context.config.inboxScanMs;
        await watch?.look();
      }
      await watch?.goOn();
      this.#patience.succeeded('round');
    } catch (error) {
      if (this.#stopped) return;
      const waitMs = this.#patience.failed('round');
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
