import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { type Act, type Actor, type RefusedAttempt, serviceActor } from '../domain/act.ts';
import type { Database } from './database.ts';

// An act is something that a person or program decides to do with keys, settings, jobs or
// downloads. Writing a single record is not an act. The code that performs an act also reports it,
// in the same transaction. Capabilities can listen to these reports. If no capability listens, a
// report runs no statements.

export interface ActListener {
  /** Runs in the transaction of the act. If it throws, the act is rolled back. */
  acted(db: Database, actor: Actor, act: Act): Promise<void>;
  /**
   * Called for each refused credential. Must return immediately and must not throw, because anyone
   * can cause a large number of refusals.
   */
  refused(attempt: RefusedAttempt): void;
  /**
   * Called when the process stops, to write what the listener still has in memory. Must not throw.
   */
  close(): Promise<void>;
}

export interface ActSystem {
  readonly db: Database;
  readonly log: Logger;
  readonly config: Config;
}

/** Opens a capability's listener. Returns `null` if the configuration switches the listener off. */
export type ActSeam = (system: ActSystem) => ActListener | null;

declare module '../context.ts' {
  interface System {
    readonly acts: Acts;
  }
}

/** Reports the acts of one actor to all listeners. */
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
   * Returns the same listeners for another actor. Keeps the session and address unless `actor` has
   * its own.
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

/** Returns a copy of the context that reports acts in the name of `actor`. */
export function actingAs<C extends Pick<ActContext, 'acts'>>(context: C, actor: Actor): C {
  return context.acts.isHeard ? { ...context, acts: context.acts.as(actor) } : context;
}

/**
 * Runs `work` and reports the act that `describe` returns, in one transaction. `describe` returns
 * `null` if `work` changed nothing. If there are no listeners, this function does not open a
 * transaction.
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

/**
 * Runs `work` in the transaction of `db`. If `db` is not a transaction, runs `work` in a separate
 * one.
 */
export function inOneTransaction<T>(db: Database, work: (db: Database) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db) : db.transaction().execute(work);
}
