import type { RawBuilder } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { TSchema } from 'typebox';
import type { LoadEntity } from '../domain/entity.ts';
import type { ChunkRange, LoadOptions, LoadType, Tally } from '../domain/load.ts';
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
  /** Hooks in the loads that ask for it. */
  readonly asked?: AskedSeam;
  readonly kind?: LoadKind;
}

/** Hooks in the loads that ask for a capability. Other loads call none of them. */
export interface AskedSeam {
  /** The option by which a load asks for it. The keys that each chunk meets are then kept until the load ends. */
  readonly option: string;
  /** Checks what it needs before the load is accepted. @throws InputError */
  accept(db: Database, options: LoadOptions, entity: LoadEntity): Promise<void>;
  /** Decides, once nothing can fail the load any more, in the transaction that holds the fence. A second call does nothing. */
  decide(db: Database, loadId: number): Promise<void>;
  /** Works off what was decided, in transactions of its own. May be called again after half of it. */
  settle(context: HookContext, claim: TaskClaim): Promise<void>;
  /** Adds its changes to the rows of a plan, behind the rows of chunks. Returns the added rows as a query. */
  planned(db: Database, loadId: number): Promise<RawBuilder<unknown>>;
  /** Is called in the transaction that completes the load. */
  completed(db: Database, loadId: number): Promise<void>;
  /** Forgets what an earlier pass left. */
  forget(db: Database, loadId: number): Promise<void>;
}

/** The context of hooks with transactions of their own. */
export interface HookContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly loads: readonly LoadSeam[];
  readonly secrets: readonly SecretSeam[];
}

/** A kind of load that writes its own file when its turn comes, and does its chunks itself. It may take other loads back. */
export interface LoadKind {
  readonly type: LoadType;
  /** SQL of a row of `loads`: a load of this kind, queued or running, is to take it back. */
  readonly takesBack: RawBuilder<boolean>;
  /** Writes the file, with `receivingStore`. @throws FinalFailure if it cannot be written any more. */
  writeFile(context: HookContext, claim: TaskClaim, signal: AbortSignal): Promise<OwnFile>;
  /** Is called in the transaction in which such a load begins to write. */
  begins(db: Database, loadId: number): Promise<void>;
  /** Does a chunk: applies its lines, or plans them, and counts them, in one transaction. */
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

/** A field of the job. Its `summary`, if it has one, is a sentence for people. */
export interface LoadField {
  readonly name: string;
  readonly schema: TSchema;
  /** The value in other loads. */
  readonly absent: unknown;
  isOf(load: FieldLoad): boolean;
  /** SQL beside a row of `loads`, in loads that have the field. */
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
  /** Another load takes back what it wrote, and has begun. */
  readonly isTakenBack: boolean;
}

/** Judges the records of loads too: what counted when a load was accepted. At most one capability does. */
export interface RecordSeam extends JudgeSeam {
  /** Has a load keep to what counts now, in the transaction that accepts it. */
  accept(db: Database, loadId: number, environmentId: number): Promise<void>;
  /** Opens what judges the records of a load; null: nothing does. @throws TransientError */
  ofLoad(context: JudgeContext, load: { loadId: number; environmentId: number }): Promise<RecordStage | null>;
  /** Forgets what an earlier pass of a load has counted. */
  forget(db: Database, loadId: number): Promise<void>;
}

/** Loads whose text must not be kept. */
export interface SecretSeam {
  /** The name of the capability. Only loads of environments that use it are asked about. */
  readonly use: string;
  /** Tells whether the file of a load is removed when the load ends, and of refused records only place and reason are kept. */
  isSecret(db: Database, loadId: number): Promise<boolean>;
  /** Why the file of such a load is gone. */
  readonly gone: string;
}

/** Returns the capability that lets no text of a load be kept, or undefined. */
export async function secretOf(
  { db, secrets }: { readonly db: Database; readonly secrets: readonly SecretSeam[] },
  { loadId, uses }: { readonly loadId: number; readonly uses: readonly string[] },
): Promise<SecretSeam | undefined> {
  for (const seam of secrets) if (uses.includes(seam.use) && (await seam.isSecret(db, loadId))) return seam;
  return undefined;
}

/** Returns the hooks of the capabilities that the options ask for. */
export function askedFor(seams: readonly LoadSeam[], source: SourceOptions): readonly AskedSeam[] {
  return seams.flatMap(({ asked }) =>
    asked !== undefined && source[asked.option] !== undefined ? asked : [],
  );
}

/** Returns what does the loads of a type itself; `undefined` for files that were sent. */
export function kindOf(seams: readonly LoadSeam[], type: LoadType): LoadKind | undefined {
  return seams.find(({ kind }) => kind?.type === type)?.kind;
}
