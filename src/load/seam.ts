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

/** The part of a capability that loads call. */
export interface LoadSeam extends Partial<OptionSeam> {
  readonly fields?: readonly LoadField[];
  readonly hooks?: LoadHooks;
  readonly kind?: LoadKind;
}

/** Hooks of the loads that have the option. Other loads call none of them. */
export interface LoadHooks {
  /** A key of `options`, such as `max_removed`. */
  readonly option: string;
  /** Refuses the load, and so discards the file, which is received by then. @throws InputError */
  accept?(db: Database, options: LoadOptions, entity: LoadEntity): Promise<void>;
  readonly end?: EndSeam;
}

/** Hooks in the end of a load, which keeps the keys of its chunks for them. */
export interface EndSeam {
  /** Decides, once nothing can fail the load, in the fence's transaction. Repeats do nothing. */
  decide(db: Database, loadId: number): Promise<void>;
  /** Executes the decision in its own transactions. May be repeated after a part of it. */
  settle(context: HookContext, claim: TaskClaim): Promise<void>;
  /** Adds its changes to a plan, after those of chunks. Returns the added rows as a query. */
  planned(db: Database, loadId: number): Promise<RawBuilder<unknown>>;
  /** Runs in the transaction that completes the load. */
  completed(db: Database, loadId: number): Promise<void>;
  /** Forgets an earlier pass. */
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

/** A kind of load that writes its own file and does its own chunks. It may take back loads. */
export interface LoadKind {
  readonly type: LoadType;
  /** SQL beside a row of `loads`: a queued or running load of this kind will take it back. */
  readonly takesBack: RawBuilder<boolean>;
  /** Writes the file, with `receivingStore`. @throws FinalFailure if that is impossible now. */
  writeFile(context: HookContext, claim: TaskClaim, signal: AbortSignal): Promise<OwnFile>;
  /** Runs in the transaction in which such a load begins to write. */
  begins(db: Database, loadId: number): Promise<void>;
  /** Applies or plans the lines of a chunk, and counts them, in one transaction. */
  chunk(context: HookContext, claim: TaskClaim, range: ChunkRange): Promise<LoadProgress>;
}

export interface OwnFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  readonly rows: number;
  readonly chunks: readonly ChunkRange[];
}

/** A field of the job. Its `summary`, if any, is a sentence for people. */
export interface LoadField {
  readonly name: string;
  readonly schema: TSchema;
  /** The value in other loads. */
  readonly absent: unknown;
  isOf(load: FieldLoad): boolean;
  /** SQL beside a row of `loads` with the field. */
  readonly select: RawBuilder<unknown>;
  render(load: FieldLoad, found: unknown): unknown;
  /** Something that the caller asked for was not done. */
  isPartial?(found: unknown): boolean;
}

interface FieldLoad {
  /** The capabilities that its environment uses. */
  readonly uses: readonly string[];
  readonly type: LoadType;
  readonly source: SourceOptions;
  readonly tally: Tally;
  /** A load that takes it back has begun. */
  readonly isTakenBack: boolean;
}

/** Judges records of loads by what counted at acceptance. At most one capability does. */
export interface RecordSeam extends JudgeSeam {
  /** Fixes what counts for a load, in the transaction that accepts it. */
  accept(db: Database, loadId: number, environmentId: number): Promise<void>;
  /** Returns `null` if nothing judges the load's records. @throws TransientError */
  ofLoad(context: JudgeContext, load: { loadId: number; environmentId: number }): Promise<RecordStage | null>;
  /** Forgets the counts of an earlier pass. */
  forget(db: Database, loadId: number): Promise<void>;
}

/** Loads whose text must not be kept. */
export interface SecretSeam {
  /** Name of the capability. Only loads of environments that use it are asked about. */
  readonly use: string;
  /** If true, the file goes at the load's end, and rejects keep only place and reason. */
  isSecret(db: Database, loadId: number): Promise<boolean>;
  /** Why the file of such a load is gone. */
  readonly gone: string;
}

/** Returns the capability that forbids keeping the load's text, or undefined. */
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

/** Returns `undefined` for a load of a sent file. */
export function kindOf(seams: readonly LoadSeam[], type: LoadType): LoadKind | undefined {
  return seams.find(({ kind }) => kind?.type === type)?.kind;
}
