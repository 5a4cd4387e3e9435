/* Reads chunks into rows and rejects. Records whose digests the profiles have never become rows. */

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
import { type ChunkScope, Rows } from './map/rows.ts';
import type { RecordStage } from './map/seam.ts';
import type { UnchangedRecords } from './map/unchanged-records.ts';
import { findRefuted } from './merge/merge-batch.ts';
import type { LoadSource } from './running-store.ts';

/** Looking for unchanged records pays if one in so many is. */
const worthwhileShare = 8;
/** Most chunks that are read without looking for unchanged records. */
const maxNotAsked = 64;

interface ReadScope extends Pick<ChunkScope, 'stamp' | 'counter'> {
  /** Receives records that may be unchanged. Those that are will not be mapped. */
  readonly findUnchanged?: (offered: UnchangedRecords) => Promise<void>;
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

/** Returns the refused ones of the users (a binary text[]), with the reason. */
export type FindRefusedUsers = (ids: Buffer) => Promise<ReadonlyMap<string, Reason>>;

/** Reads chunks of one load. The next chunk reuses `rows`. */
export interface ChunkReader {
  readonly rows: Rows;
  read(chunk: ChunkRange, scope?: ReadScope): Promise<Rows>;
}

/** @throws TransientError if the records cannot be judged now. */
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
 * Without `findRefusedUsers` the caller knows the refused records. @throws InputError if the header
 * and the map do not fit, which acceptance excludes.
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
  // Records with kinds have no digests, and a preset makes several rows of one record.
  const key = !parser.saysKinds && source.preset === null ? digestKeyOf(source, stage) : null;
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
      let own: MapScope = scope;
      if (findRefusedUsers !== null) {
        const wrong = chunk.oversized ? noRecords : usersOfRefused(rows, chunk, parser);
        const refused = await findRefusedUsers(rows.userIds(wrong.values()));
        if (refused.size > 0) own = { ...scope, refused: rows.recordsOf(refused, wrong) };
      }
      if (own !== scope) await map(chunk, bytes, own);
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
  const more = [...(stage === null ? [] : [stage.key]), ...(keepsExisting ? ['existing=keep'] : [])];
  return digestKey(recordKey, [entity, fileFormat, header, columnMap, ...more]);
}

function createParser(source: ReadSource, rows: Rows): CsvRows | NdjsonRows {
  const { header, entity, columnMap: map, preset } = source;
  if (header === null) return new NdjsonRows({ ...source, map, isRewritten: preset !== null }, rows);
  return new CsvRows(header, planFile(header, map, entity), rows);
}

type Parser = ReturnType<typeof createParser>;

const noRecords: ReadonlyMap<number, string> = new Map();

/** A refused user is the reason, even if the record has other problems. */
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
 * Reads a chunk, but counts unchanged records by their digests only, without rows. If another
 * transaction writes such a profile before the commit, it is as if it came later. If a chunk of the
 * same load does, finishing finds that both met the key.
 */
export async function readChanged(
  context: LoadContext,
  source: LoadSource,
  chunk: ChunkRange,
  reader: ChunkReader,
): Promise<Rows> {
  const memory = context.memory.of(source.loadId);
  if (chunk.oversized || memory.chunksNotAsked > 0) {
    memory.chunksNotAsked = Math.max(0, memory.chunksNotAsked - 1);
    return reader.read(chunk);
  }
  const rows = await reader.read(chunk, {
    findUnchanged: (offered) => findUnchanged(context.db, source, offered),
  });
  learnShare(memory, rows);
  if (!isDoubtful(rows)) return rows;
  memory.chunksNotAsked = maxNotAsked;
  return reader.read(chunk);
}

async function findUnchanged(db: Database, source: LoadSource, offered: UnchangedRecords): Promise<void> {
  for (const entity of entities) {
    const claims = offered.claims(entity);
    if (claims !== null) offered.keepClaims(entity, await findRefuted(db, entity, source, claims));
  }
}

/** A skipped and a mapped record of one profile belong together. */
function isDoubtful(rows: Rows): boolean {
  return rows.unchanged.count > 0 && rows.unchanged.meets(rows);
}

/** If almost nothing is unchanged, a growing number of chunks is read without looking. */
function learnShare(memory: LoadMemory, { unchanged, records }: Rows): void {
  if (unchanged.count * worthwhileShare >= records.count) {
    memory.nextNotAsked = 0;
    return;
  }
  memory.nextNotAsked = Math.min(maxNotAsked, Math.max(4, 2 * memory.nextNotAsked));
  memory.chunksNotAsked = memory.nextNotAsked;
}
