/* Reads chunks into rows and rejects. A record whose digest is stored gets no row. */

import { Fault } from '../base/errors.ts';
import { MAX_REJECT_RAW_BYTES } from '../base/limits.ts';
import { breathing } from '../base/yielding.ts';
import { entities } from '../domain/entity.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import { type FileStore, MissingFileError } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import type { LoadContext, LoadMemory } from './context.ts';
import { planFile } from './map/column-plan.ts';
import { CsvRows } from './map/csv-rows.ts';
import { NdjsonRows } from './map/ndjson-rows.ts';
import { tooLarge } from './map/reasons.ts';
import { digestKey } from './map/record-digests.ts';
import { type ChunkScope, type RecordStage, Rows } from './map/rows.ts';
import type { UnchangedRecords } from './map/unchanged-records.ts';
import { findRefuted } from './merge/merge-batch.ts';
import type { LoadSource } from './running-store.ts';

/**
 * A search for unchanged records is worthwhile if at least one record in this many is unchanged.
 */
const worthwhileShare = 8;
/** Maximum number of consecutive chunks that are read without a search for unchanged records. */
const maxUnsearched = 64;

interface ReadScope extends Pick<ChunkScope, 'stamp' | 'counter'> {
  /** Marks those `candidates` that are unchanged. The marked records are not mapped. */
  readonly findUnchanged?: (candidates: UnchangedRecords) => Promise<void>;
  /** Default: true. */
  readonly hasDigests?: boolean;
}

type MapScope = ReadScope & Pick<ChunkScope, 'refused'>;

export type ReadSource = Pick<
  LoadSource,
  | ('entity' | 'header' | 'columnMap' | 'preset' | 'recordKey')
  | ('fileRef' | 'fileFormat' | 'jobId' | 'environmentId' | 'acceptedAt')
> &
  Partial<Pick<LoadSource, 'keepsExisting'>>;

/** Returns the refused users among `ids`, with the reasons. `ids` is a text[] in binary format. */
export type FindRefusedUsers = (ids: Buffer) => Promise<ReadonlyMap<string, Reason>>;

/** Reading a chunk overwrites the `rows` of the previous one. */
export interface ChunkReader {
  readonly rows: Rows;
  read(chunk: ChunkRange, scope?: ReadScope): Promise<Rows>;
}

/** @throws TransientError if records cannot be judged at present */
export async function createStoringReader(
  context: LoadContext,
  source: LoadSource,
  rows = new Rows(),
  findRefusedUsers: FindRefusedUsers | null = null,
): Promise<ChunkReader> {
  const { files, records } = context;
  const isJudged = records !== null && source.uses.includes(records.use);
  const stage = isJudged ? await records.ofLoad(context, source) : null;
  return createChunkReader(source, files, stage, rows, findRefusedUsers);
}

/**
 * Creates a reader for the chunks of a load. Without `findRefusedUsers`, the caller must leave out
 * the records of refused users.
 */
export function createChunkReader(
  source: ReadSource,
  files: Pick<FileStore, 'readRange'>,
  stage: RecordStage | null,
  rows = new Rows(),
  findRefusedUsers: FindRefusedUsers | null = null,
): ChunkReader {
  const parser = createParser(source, rows);
  rows.startLoad({ keepsExisting: source.keepsExisting ?? false, stage });
  // A record has no digest if it states its kind, or if a preset makes several rows from it.
  const key = !parser.hasKinds && source.preset === null ? digestKeyOf(source, stage) : null;
  const { fileRef } = source;
  if (fileRef === null) throw new MissingFileError(`the file of job ${source.jobId} has expired`);
  const map = async (chunk: ChunkRange, bytes: Buffer, scope: MapScope): Promise<void> => {
    const digestKey = scope.hasDigests === false ? null : key;
    rows.reset({ ...scope, bytes, digestKey, origin: source });
    if (scope.findUnchanged !== undefined && key !== null) {
      parser.offerUnchanged(bytes);
      await scope.findUnchanged(rows.unchanged);
    }
    if (chunk.oversized) rejectOversized(rows, chunk, bytes);
    else await breathing(parser.read(chunk, bytes));
  };
  return {
    rows,
    async read(chunk, scope = {}) {
      const end = chunk.oversized
        ? Math.min(chunk.byteEnd, chunk.byteStart + MAX_REJECT_RAW_BYTES)
        : chunk.byteEnd;
      const bytes = await files.readRange(fileRef, chunk.byteStart, end);
      await map(chunk, bytes, scope);
      let finalScope: MapScope = scope;
      if (findRefusedUsers !== null) {
        const users = chunk.oversized ? noRecords : usersOfRefused(rows, chunk, parser);
        const refused = await findRefusedUsers(rows.userIds(users.values()));
        if (refused.size > 0) finalScope = { ...scope, refused: rows.recordsOf(refused, users) };
      }
      if (finalScope !== scope) await map(chunk, bytes, finalScope);
      if (rows.records.count !== chunk.rowCount) {
        throw new Fault(
          `bytes ${chunk.byteStart}-${chunk.byteEnd} of ${fileRef} hold ${rows.records.count} records; ${chunk.rowCount} were counted while receiving`,
        );
      }
      rows.complete();
      return rows;
    },
  };
}

function digestKeyOf({ recordKey, ...source }: ReadSource, stage: RecordStage | null): Int32Array {
  const { entity, fileFormat, header, columnMap, keepsExisting } = source;
  const settings = [...(stage === null ? [] : [stage.key]), ...(keepsExisting ? ['existing=keep'] : [])];
  return digestKey(recordKey, [entity, fileFormat, header, columnMap, ...settings]);
}

function createParser(source: ReadSource, rows: Rows): CsvRows | NdjsonRows {
  const { header, entity, columnMap: map, preset } = source;
  if (header === null) return new NdjsonRows({ ...source, map, isRewritten: preset !== null }, rows);
  return new CsvRows(header, planFile(header, map, entity), rows);
}

type Parser = ReturnType<typeof createParser>;

const noRecords: ReadonlyMap<number, string> = new Map();

/**
 * Users of the rejects, by the number of the record in the chunk. If the user of a reject is
 * refused too, the reason for refusing the user takes precedence.
 */
function usersOfRefused(
  { rejects }: Rows,
  { firstRow }: ChunkRange,
  parser: Parser,
): ReadonlyMap<number, string> {
  const users = new Map<number, string>();
  for (const { row } of rejects) {
    const id = parser.userOf(row - firstRow);
    if (id !== null) users.set(row - firstRow, id);
  }
  return users;
}

function rejectOversized(rows: Rows, chunk: ChunkRange, bytes: Buffer): void {
  const record = rows.records.add(0, bytes.length, 0);
  const reason = tooLarge(chunk.byteEnd - chunk.byteStart, bytes.length);
  rows.addReject(rows.records.reject(record, reason, chunk, bytes));
}

/**
 * Reads a chunk. Records whose digests are unchanged are only counted. If another transaction
 * writes the profile of such a record in the meantime, the result is the same as if that
 * transaction wrote the profile afterwards. The finish task finds keys that occur in several
 * chunks.
 */
export async function readChanged(
  context: LoadContext,
  source: LoadSource,
  chunk: ChunkRange,
  reader: ChunkReader,
): Promise<Rows> {
  const memory = context.memory.of(source.loadId);
  if (chunk.oversized || memory.unsearchedChunks > 0) {
    memory.unsearchedChunks = Math.max(0, memory.unsearchedChunks - 1);
    return reader.read(chunk);
  }
  const rows = await reader.read(chunk, {
    findUnchanged: (candidates) => findUnchanged(context.db, source, candidates),
  });
  learnShare(memory, rows);
  if (!isDoubtful(rows)) return rows;
  memory.unsearchedChunks = maxUnsearched;
  return reader.read(chunk);
}

async function findUnchanged(db: Database, source: LoadSource, candidates: UnchangedRecords): Promise<void> {
  for (const entity of entities) {
    const claims = candidates.claims(entity);
    if (claims !== null) candidates.keepClaims(entity, await findRefuted(db, entity, source, claims));
  }
}

/** A skipped and a mapped record may belong to the same profile. Both must then be mapped. */
function isDoubtful(rows: Rows): boolean {
  return rows.unchanged.count > 0 && rows.unchanged.meets(rows);
}

/**
 * If a search finds too few unchanged records, the next four chunks are read without a search. If
 * the following search also finds too few, eight chunks are read without a search, then 16, and so
 * on up to `maxUnsearched`.
 */
function learnShare(memory: LoadMemory, { unchanged, records }: Rows): void {
  if (unchanged.count * worthwhileShare >= records.count) {
    memory.nextUnsearched = 0;
    return;
  }
  memory.nextUnsearched = Math.min(maxUnsearched, Math.max(4, 2 * memory.nextUnsearched));
  memory.unsearchedChunks = memory.nextUnsearched;
}
