import type { RawBuilder } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { TSchema } from 'typebox';
import type { LoadEntity } from '../domain/entity.ts';
import type { ChunkRange, LoadOptions, LoadType, Tally } from '../domain/load.ts';
import { keyOf } from '../domain/option-table.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { OptionSeam } from '../domain/source-option.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { FileRef, FileStore } from '../files/file-store.ts';
import type { JudgeContext, JudgeSeam } from '../ingest/judge-seam.ts';
import type { Database } from '../postgres/database.ts';
import type { LoadProgress } from './chunk-store.ts';
import type { RecordStage } from './map/seam.ts';

export interface LoadSeam extends Partial<OptionSeam> {
  readonly fields?: readonly LoadField[];
  readonly hooks?: LoadHooks;
  readonly kind?: LoadKind;
}

/** Hooks of loads with the option. Other loads call none of them. */
export interface LoadHooks {
  /** Key of `options`, such as `max_removed`. */
  readonly option: string;
  /** Checks the load. A refusal discards the received file. @throws InputError */
  accept?(db: Database, options: LoadOptions, entity: LoadEntity): Promise<void>;
  readonly end?: EndSeam;
}

/** Hooks at the end of a load. The load keeps the keys of its chunks for them. */
export interface EndSeam {
  /** Decides in the fence's transaction, once nothing can fail the load. Repeats do nothing. */
  decide(db: Database, loadId: number): Promise<void>;
  /** Executes the decision in its own transactions. May be repeated after an interruption. */
  settle(context: HookContext, claim: TaskClaim): Promise<void>;
  /** Adds its changes to a plan, after the changes of chunks. Returns the added rows as a query. */
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
 * Kind of loads that write their own file and process their own chunks. They may take back loads.
 */
export interface LoadKind {
  readonly type: LoadType;
  /**
   * SQL beside a row of `loads`: true if a queued or running load of this kind will take it back.
   */
  readonly takesBack: RawBuilder<boolean>;
  /** Writes the file, with `receivingStore`. @throws FinalFailure if that is impossible now */
  writeFile(context: HookContext, claim: TaskClaim, signal: AbortSignal): Promise<OwnFile>;
  /** Runs in the transaction in which such a load starts to write. */
  begins(db: Database, loadId: number): Promise<void>;
  /** Applies or plans the lines of a chunk, and counts them, in one transaction. */
  chunk(context: HookContext, claim: TaskClaim, range: ChunkRange): Promise<LoadProgress>;
}

export interface OwnFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hexadecimal digits. */
  readonly sha256: string;
  readonly rows: number;
  readonly chunks: readonly ChunkRange[];
}

/** Field of the job. Its `summary`, if any, is a sentence for people. */
export interface LoadField {
  readonly name: string;
  readonly schema: TSchema;
  readonly absent: unknown;
  isOf(load: FieldLoad): boolean;
  /** SQL beside a row of `loads` with the field. */
  readonly select: RawBuilder<unknown>;
  render(load: FieldLoad, value: unknown): unknown;
  /** True if something that the caller requested was not done. */
  isPartial?(value: unknown): boolean;
}

interface FieldLoad {
  /** Capabilities that the environment uses. */
  readonly uses: readonly string[];
  readonly type: LoadType;
  readonly source: SourceOptions;
  readonly tally: Tally;
  readonly isTakenBack: boolean;
}

/** Judge of the records of loads, by its settings at acceptance. At most one capability has one. */
export interface RecordSeam extends JudgeSeam {
  /** Stores the settings for a load, in the transaction that accepts it. */
  accept(db: Database, loadId: number, environmentId: number): Promise<void>;
  /** Returns `null` if nothing judges the load's records. @throws TransientError */
  ofLoad(context: JudgeContext, load: { loadId: number; environmentId: number }): Promise<RecordStage | null>;
  /** Deletes the counts of an earlier pass. */
  forget(db: Database, loadId: number): Promise<void>;
}

/** Part of a capability that forbids keeping the text of some loads. */
export interface SecretSeam {
  /** Name of the capability. Only loads of environments with it are checked. */
  readonly use: string;
  /**
   * Returns true if the file is removed at the load's end, and rejects keep only place and reason.
   */
  isSecret(db: Database, loadId: number): Promise<boolean>;
  /** Reason that the file of such a load is gone. */
  readonly gone: string;
}

/** Returns the capability that forbids keeping the load's text, or `undefined`. */
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

/** Returns the kind of a load. Returns `undefined` for a load of a sent file. */
export function kindOf(seams: readonly LoadSeam[], type: LoadType): LoadKind | undefined {
  return seams.find(({ kind }) => kind?.type === type)?.kind;
}
