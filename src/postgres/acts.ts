import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { type Act, type Actor, type RefusedAttempt, serviceActor } from '../domain/act.ts';
import type { Database } from './database.ts';

// An act is a decision of a person or program about keys, settings, jobs or downloads. Writing a
// single record is not an act. In the act's transaction, the code reports the act to capabilities
// that listen. Without listeners, a report runs no statements.

export interface ActListener {
  /** Called for each act. Runs in the act's transaction, so an error rolls back the act. */
  acted(db: Database, actor: Actor, act: Act): Promise<void>;
  /**
   * Called for each refused credential. Must return immediately, because anyone can cause many
   * refused credentials. Must not throw.
   */
  refused(attempt: RefusedAttempt): void;
  /** Writes what is still in memory when the process stops. Must not throw. */
  close(): Promise<void>;
}

export interface ActSystem {
  readonly db: Database;
  readonly log: Logger;
  readonly config: Config;
}

/** Creates a listener. Returns `null` if the configuration switches the listener off. */
export type ActSeam = (system: ActSystem) => ActListener | null;

declare module '../context.ts' {
  interface System {
    readonly acts: Acts;
  }
}

export class Acts {
  readonly #listeners: readonly ActListener[];
  readonly #actor: Actor;

  constructor(listeners: readonly ActListener[], actor = serviceActor) {
    this.#listeners = listeners;
    this.#actor = actor;
  }

  get isHeard(): boolean {
    return this.#listeners.length > 0;
  }

  /**
   * Returns an `Acts` that reports for `actor`. If `actor` has no session or address, the current
   * session and address are used.
   */
  as(actor: Actor): Acts {
    return this.isHeard ? new Acts(this.#listeners, { ...this.#actor, ...actor }) : this;
  }

  /** Reports an act. `db` must be the transaction of the act. */
  async record(db: Database, act: Act): Promise<void> {
    for (const listener of this.#listeners) await listener.acted(db, this.#actor, act);
  }

  refused(attempt: RefusedAttempt): void {
    for (const listener of this.#listeners) listener.refused(attempt);
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) await listener.close();
  }
}

export interface ActContext {
  readonly db: Database;
  readonly acts: Acts;
}

export function actingAs<C extends Pick<ActContext, 'acts'>>(context: C, actor: Actor): C {
  return context.acts.isHeard ? { ...context, acts: context.acts.as(actor) } : context;
}

/**
 * Runs `work` and reports the act in one transaction. If there are no listeners, `work` runs
 * without this transaction. `describe` returns `null` if nothing changed.
 */
export function act<T>(
  { db, acts }: ActContext,
  work: (db: Database) => Promise<T>,
  describe: (result: T) => Act | null,
): Promise<T> {
  if (!acts.isHeard) return work(db);
  return inOneTransaction(db, async (transaction) => {
    const result = await work(transaction);
    const report = describe(result);
    if (report !== null) await acts.record(transaction, report);
    return result;
  });
}

export function inOneTransaction<T>(db: Database, work: (db: Database) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db) : db.transaction().execute(work);
}
