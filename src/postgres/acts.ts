import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { type Act, type Actor, type RefusedAttempt, serviceActor } from '../domain/act.ts';
import type { Database } from './database.ts';

// An act is something that a person or program decides to do with keys, settings, jobs or
// downloads. Single records are not acts. The code that performs an act reports it in the same
// transaction, and capabilities listen. Without a listener, a report costs no statement.

export interface ActListener {
  /** Runs in the transaction of the act. If it throws, the act is rolled back. */
  acted(db: Database, actor: Actor, act: Act): Promise<void>;
  /**
   * Counts a refused credential. It neither waits nor throws, because anyone can cause many
   * refusals.
   */
  refused(attempt: RefusedAttempt): void;
  /** Writes what has not been written yet. Must not throw. */
  close(): Promise<void>;
}

export interface ActSystem {
  readonly db: Database;
  readonly log: Logger;
  readonly config: Config;
}

/** Starts to listen to the acts of a system. Returns `null` if listening is switched off. */
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

  /** Reports an act. Must be called in its transaction. */
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

/** Returns the context with `actor` as the actor of its acts. */
export function actingAs<C extends Pick<ActContext, 'acts'>>(context: C, actor: Actor): C {
  return context.acts.isHeard ? { ...context, acts: context.acts.as(actor) } : context;
}

/**
 * Does an act and reports it in one transaction. `describe` returns `null` if nothing was changed.
 * Without a listener, `work` does not get a separate transaction.
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
