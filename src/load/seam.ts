import type { RawBuilder } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { TSchema } from 'typebox';
import type { LoadEntity } from '../domain/entity.ts';
import type { LoadOptions } from '../domain/load.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';

/** Hooks of a capability in the loads that ask for it. Other loads call none of them. */
export interface LoadSeam {
  /** The option by which a load asks for it. The keys that each chunk meets are then kept until the load ends. */
  readonly option: keyof SourceOptions & string;
  readonly field: LoadField;
  /** Checks what it needs before the load is accepted. @throws InputError */
  accept(db: Database, options: LoadOptions, entity: LoadEntity): Promise<void>;
  /** Decides, once nothing can fail the load any more, in the transaction that holds the fence. A second call does nothing. */
  decide(db: Database, loadId: number): Promise<void>;
  /** Works off what was decided, in transactions of its own. May be called again after half of it. */
  settle(context: SettleContext, claim: TaskClaim): Promise<void>;
  /** Adds its changes to the rows of a plan, behind the rows of chunks. Returns the added rows as a query. */
  planned(db: Database, loadId: number): Promise<RawBuilder<unknown>>;
  /** Is called in the transaction that completes the load. */
  completed(db: Database, loadId: number): Promise<void>;
  /** Forgets what an earlier pass left. */
  forget(db: Database, loadId: number): Promise<void>;
}

interface SettleContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly log: Logger;
}

/** A field of the job, null for loads that did not ask. Its `summary`, if it has one, is a sentence for people. */
export interface LoadField {
  readonly name: string;
  readonly schema: TSchema;
  /** SQL beside a row of `loads`: JSON of what was decided, or null. */
  readonly select: RawBuilder<unknown>;
  render(source: SourceOptions, found: unknown): object | null;
  /** Something that the caller asked for was not done. */
  isPartial(found: unknown): boolean;
}

/** Returns the capabilities that the options ask for. */
export function askedFor(seams: readonly LoadSeam[], source: SourceOptions): readonly LoadSeam[] {
  return seams.filter(({ option }) => source[option] !== undefined);
}
