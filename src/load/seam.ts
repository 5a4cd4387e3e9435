import type { RawBuilder } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { TSchema } from 'typebox';
import type { LoadEntity } from '../domain/entity.ts';
import type { ChunkRange, LoadOptions, LoadType, Tally } from '../domain/load.ts';
import { keyOf } from '../domain/option-table.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { OptionSeam } from '../domain/source-option.ts';
import type { DueTask, TaskClaim } from '../domain/task.ts';
import type { FileRef, FileStore } from '../files/file-store.ts';
import type { JudgeContext, JudgeSeam } from '../ingest/records.ts';
import type { ActContext } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import type { LoadProgress } from './chunk-store.ts';
import type { RecordStage } from './map/rows.ts';

export interface LoadSeam extends Partial<OptionSeam> {
  readonly fields?: readonly LoadField[];
  readonly hooks?: LoadHooks;
  readonly kind?: LoadKind;
}

/** Hooks that run only for loads with a certain option. */
interface LoadHooks {
  /** Key in `options`, such as `max_removed`. */
  readonly option: string;
  /**
   * Checks the option before the load is accepted. If this fails, the received file is discarded.
   * @throws InputError
   */
  accept?(db: Database, options: LoadOptions, entity: LoadEntity): Promise<void>;
  readonly end?: EndSeam;
  /**
   * Runs in the transaction that marks the load as failed or cancelled. After this transaction, no
   * chunk can commit. The returned tasks must be passed to `notifyQueue` after the commit.
   */
  stopped?(context: StopContext, loadId: number): Promise<readonly DueTask[]>;
}

export interface StopContext extends ActContext {
  readonly records: RecordSeam | null;
}

/** Hooks at the end of a load. Until then, the hashes of its keys are kept. */
export interface EndSeam {
  /**
   * Decides what the option does. Runs after all checks that can fail the load, in the transaction
   * that renews the claim. A repeated call does nothing.
   */
  decide(db: Database, loadId: number): Promise<void>;
  /** Carries out the decision in its own transactions. Is called again after an interruption. */
  settle(context: HookContext, claim: TaskClaim): Promise<void>;
  /**
   * Adds changes to a plan after the chunks have added theirs. Returns a query for the added rows.
   */
  planned(db: Database, loadId: number): Promise<RawBuilder<unknown>>;
  /** Runs in the transaction that completes the load. */
  completed(db: Database, loadId: number): Promise<void>;
  /** Deletes the results of an earlier pass. */
  forget(db: Database, loadId: number): Promise<void>;
}

export interface HookContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly loads: readonly LoadSeam[];
  readonly secrets: readonly SecretSeam[];
}

/**
 * Kind of load that writes its own file and processes its chunks. Such a load may take back another
 * load.
 */
export interface LoadKind {
  readonly type: LoadType;
  /**
   * Condition for queries of `loads`. True if an unfinished load of this kind takes back the load.
   */
  readonly takesBack: RawBuilder<boolean>;
  /**
   * Writes the file of a load to a `receivingStore`.
   * @throws FinalFailure if that is impossible at present
   */
  writeFile(context: HookContext, claim: TaskClaim, signal: AbortSignal): Promise<OwnFile>;
  /** Runs in the transaction in which a load of this kind starts to write. */
  begins(db: Database, loadId: number): Promise<void>;
  /** Applies or plans the lines of a chunk and counts them, in one transaction. */
  chunk(context: HookContext, claim: TaskClaim, range: ChunkRange): Promise<LoadProgress>;
}

export interface OwnFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hash in hexadecimal digits. */
  readonly sha256: string;
  readonly rows: number;
  readonly chunks: readonly ChunkRange[];
}

/** Field that a capability adds to jobs. A `summary` in its value is a sentence for people. */
export interface LoadField {
  readonly name: string;
  readonly schema: TSchema;
  readonly absent: unknown;
  isOf(load: FieldLoad): boolean;
  /** SQL expression for the value of the field, in queries of `loads`. */
  readonly select: RawBuilder<unknown>;
  render(load: FieldLoad, value: unknown): unknown;
  /** True if something requested by the caller was not done. */
  isPartial?(value: unknown): boolean;
  /** True if work continues after the end of the load. Commands also wait for this work. */
  isOpen?(value: unknown): boolean;
}

interface FieldLoad {
  /** Capabilities that the environment uses. */
  readonly uses: readonly string[];
  readonly type: LoadType;
  readonly source: SourceOptions;
  readonly tally: Tally;
  readonly isTakenBack: boolean;
}

/**
 * Judges the records of loads with the settings from the time when the load was accepted. Only one
 * capability can judge records.
 */
export interface RecordSeam extends JudgeSeam {
  /** Stores the settings, in the transaction that accepts the load. */
  accept(db: Database, loadId: number, environmentId: number): Promise<void>;
  /**
   * Returns the stage that judges the records of a load. Returns `null` if the records are not
   * judged.
   * @throws TransientError
   */
  ofLoad(context: JudgeContext, load: { loadId: number; environmentId: number }): Promise<RecordStage | null>;
  /** Deletes the counts of an earlier pass. */
  forget(db: Database, loadId: number): Promise<void>;
}

/** Part of a capability that forbids storing the text of some loads. */
export interface SecretSeam {
  /** Only loads in environments that use this capability are checked. */
  readonly use: string;
  /**
   * If true, the file is removed when the load ends, and rejects contain only a place and a reason.
   */
  isSecret(db: Database, loadId: number): Promise<boolean>;
  /** Message for users: why the file of such a load no longer exists. */
  readonly gone: string;
}

export async function secretOf(
  { db, secrets }: { readonly db: Database; readonly secrets: readonly SecretSeam[] },
  { loadId, uses }: { readonly loadId: number; readonly uses: readonly string[] },
): Promise<SecretSeam | undefined> {
  for (const seam of secrets) if (uses.includes(seam.use) && (await seam.isSecret(db, loadId))) return seam;
  return undefined;
}

export function hooksFor(seams: readonly LoadSeam[], source: SourceOptions): readonly LoadHooks[] {
  return seams.flatMap(({ hooks }) =>
    hooks !== undefined && source[keyOf(hooks.option)] !== undefined ? hooks : [],
  );
}

export function endsFor(seams: readonly LoadSeam[], source: SourceOptions): readonly EndSeam[] {
  return hooksFor(seams, source).flatMap(({ end }) => end ?? []);
}

/**
 * Returns the kind of a load that writes its own file. Returns `undefined` if the load's file was
 * sent.
 */
export function kindOf(seams: readonly LoadSeam[], type: LoadType): LoadKind | undefined {
  return seams.find(({ kind }) => kind?.type === type)?.kind;
}
