import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { LakeField } from '../domain/definitions.ts';
import { entities, idColumn } from '../domain/entity.ts';
import { ConflictError, Fault } from '../domain/errors.ts';
import type { ExportFile, ExportRequest } from '../domain/export.ts';
import { columnsOf } from '../domain/export-columns.ts';
import { instantOfMicros } from '../domain/instant.ts';
import { ARCHIVE_PART_BYTES, LAKE_KEPT_APPENDS, MAX_ARCHIVE_TRIES } from '../domain/limits.ts';
import type { Filter } from '../export/filter.ts';
import { AttemptFiles, StoredFileWriter } from '../export/write/attempt-files.ts';
import { ContentHash } from '../export/write/content-hash.ts';
import { allHits, type Hits, isWhole } from '../export/write/lake-hits.ts';
import { eventText, lakeWriters, readText } from '../export/write/lake-rows.ts';
import { selectValues } from '../export/write/page.ts';
import { ParquetFile } from '../export/write/parquet.ts';
import { ndjsonText, ndjsonWriter, type RowBlock } from '../export/write/rows.ts';
import { groupRows } from '../export/write/split-files.ts';
import { type FilePlan, planRows, writeFiles } from '../export/write/write-export.ts';
import type { FileRef, FileStore, FileWriter } from '../files/file-store.ts';
import { commitLake, createDataFile, isAbandoned, openFields } from '../lake/commit.ts';
import { packSums } from '../lake/group-sums.ts';
import { IdFilter } from '../lake/id-filter.ts';
import { readGroups, readStatistics } from '../lake/read-events.ts';
import type { LakeGroup } from '../lake/row-group.ts';
import { compileForCopy } from '../postgres/copy-out.ts';
import { type Database, databaseOn, inTransaction } from '../postgres/database.ts';
import { inSnapshot, type Snapshot } from '../postgres/session.ts';
import { forgetFile, listData, storeData, type WrittenData } from '../postgres/stores/lake.ts';
import {
  type LakeMonth,
  leaveHot,
  listLakeMonths,
  type MonthState,
  readMonth,
  releaseMonth,
  settleMonth,
} from '../postgres/stores/lake-months.ts';
import { eventTable } from '../postgres/stores/retention.ts';
import {
  beginArchiving,
  markArchived,
  type Retirement,
  readRevision,
} from '../postgres/stores/retirements.ts';
import { removeKnownEvents } from './known-events.ts';

export interface RetentionContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Pick<Config, 'eventRetentionDays' | 'lake'>;
}

/** All columns of all events: a data file of the lake is the Parquet file of an export that leaves nothing out. */
export const everything: ExportRequest = {
  from: null,
  to: null,
  since: null,
  includeRemoved: false,
  distinctIds: false,
  layout: 'datasets',
  datasets: ['events'],
  eventKinds: [],
  eventNames: [],
  userIds: [],
  companyIds: [],
  segmentId: null,
  exclusions: [],
  format: 'parquet',
  compression: 'none',
  escapeFormulas: false,
};

/** A change of the lake: a month of one environment, as one snapshot shows it. */
export interface LakeChange extends LakeMonth {
  /** The state of its hot files in the snapshot; null: there are none. */
  readonly state: MonthState | null;
  /** null: it has left `sluice.events`. */
  readonly next: Parameters<typeof settleMonth>[3] | null;
  /** The fate of the hot files that there are; null: they stay. */
  readonly before: 'replaced' | 'kept' | null;
  readonly hot: readonly ExportFile[];
  readonly cold: readonly ExportFile[];
}

/**
 * Moves what a retired table holds into the lake, and lets exports read it there: in one transaction with the commit of the lake, and only
 * if nobody has changed it meanwhile. Hot files that hold exactly the events of the table are left as they are; otherwise they are replaced
 * by files that are written of the table and read again.
 */
export async function archiveEvents(context: RetentionContext, retirement: Retirement): Promise<void> {
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const attempt = await beginArchiving(context.db, retirement);
    await removeKnownEvents(context, retirement);
    const { revision, changes } = await writeAll(context, retirement);
    const isTaken = await commitChanges(context, changes, (db) =>
      markArchived(db, retirement, { attempt, revision }),
    );
    if (isTaken) return;
  }
  throw new Error('the events were changed whenever they had been archived');
}

/**
 * Takes all changes in one transaction, or none: if `begin` returns false, or a month has changed since it was read. Then the files go at
 * once, since they may hold who was deleted meanwhile.
 */
export async function commitChanges(
  context: Pick<RetentionContext, 'pool' | 'db' | 'files'>,
  changes: readonly LakeChange[],
  begin: (db: Database) => Promise<boolean> = async () => true,
): Promise<boolean> {
  const written = changes.flatMap(({ hot, cold }) => [...hot, ...cold]);
  const checked = new Map<ExportFile, WrittenData>();
  const store = async (db: Database, files: readonly ExportFile[], isHot: boolean) => {
    for (const file of files) await storeData(db, checked.get(file) as WrittenData, isHot);
  };
  try {
    for (const file of written) checked.set(file, await checkArchive(context.files, file));
    return await inTransaction(context.pool, async ({ db }) => {
      if (!(await begin(db))) throw new ConflictError('the events have changed');
      for (const change of changes) {
        const { state, next, before, hot, cold } = change;
        const settle = (of: MonthState) =>
          next === null ? releaseMonth(db, change, of) : settleMonth(db, change, of, next);
        if (state !== null && !(await settle(state))) throw new ConflictError('the month has changed');
        if (before !== null) await leaveHot(db, change, before);
        await store(db, hot, true);
        await store(db, cold, false);
        if (before !== 'kept') await commitLake(context, db, change, [change.month]);
      }
      return true;
    });
  } catch (error) {
    if (!(error instanceof ConflictError || isAbandoned(error))) throw error;
    for (const { ref } of written) {
      await context.files.remove(ref as FileRef);
      await forgetFile(context.db, ref as FileRef);
    }
    return false;
  }
}

async function writeAll(context: RetentionContext, retirement: Retirement) {
  const { signal } = new AbortController();
  return inSnapshot(context, { name: 'sluice archive', signal }, async (snapshot) => {
    const db = databaseOn(snapshot.client);
    const revision = await readRevision(db, retirement);
    const changes: LakeChange[] = [];
    for (const month of await listLakeMonths(db, retirement, retirement.isWhole))
      changes.push(await writeRetired(context, snapshot, retirement, month));
    return { revision, changes };
  });
}

/** If something of the month stays in `sluice.events`, and is in the lake, that is written anew too. */
async function writeRetired(
  context: RetentionContext,
  snapshot: Snapshot,
  { table, isWhole, retirementId }: Retirement,
  month: LakeMonth,
): Promise<LakeChange> {
  const state = await readMonth(databaseOn(snapshot.client), month);
  const change = {
    ...month,
    state,
    next: isWhole ? null : { cursor: snapshot.cursor, isWhole: true },
    hot: [],
  };
  const place = { ...month, retirementId };
  const retired = selectEvents(month, { events: eventTable(table) });
  if (isWhole && state !== null && (await isMirrored(context, snapshot, month, { state, retired })))
    return { ...change, before: 'kept', cold: [] };
  const cold = await writeData(context, snapshot, place, retired);
  const hot = isWhole || state === null ? [] : await writeData(context, snapshot, place, selectEvents(month));
  return { ...change, before: 'replaced', hot, cold };
}

/** Tells whether the hot files of a month hold the events of the retired table and no others. */
async function isMirrored(
  { files }: RetentionContext,
  { client }: Snapshot,
  month: LakeMonth,
  { state, retired }: { readonly state: MonthState; readonly retired: FilePlan },
): Promise<boolean> {
  if (state.appends > LAKE_KEPT_APPENDS) return false;
  const data = (await listData(databaseOn(client), month, month.month)).filter(({ isHot }) => isHot);
  const stored = await contentOf(retired.blocks(client, new AbortController().signal));
  const mirrored = await contentOf(readText(files, data));
  return stored.hash === mirrored.hash && mirrored.rows === data.reduce((sum, { rows }) => sum + rows, 0);
}

async function contentOf(blocks: AsyncIterable<RowBlock>): Promise<{ rows: number; hash: string }> {
  const hash = new ContentHash('events', ndjsonText);
  const toText = ndjsonWriter(columnsOf('events', everything));
  let rows = 0;
  for await (const block of blocks) {
    hash.add(block.isText === true ? block : toText(block));
    rows += block.ends.length;
  }
  return { rows, hash: hash.digest() };
}

/** Plans to read a month, of `sluice.events` unless of another table. */
export function selectEvents(
  { environmentId, month }: LakeMonth,
  {
    events = sql.table('events'),
    since = null,
  }: Partial<Pick<ExportRequest, 'since'> & Pick<Filter, 'events'>> = {},
): FilePlan {
  const [from, to] = [0, 1].map((months) => instantOfMicros(1000 * monthStart(month, months)));
  const request = { ...everything, from: from ?? null, to: to ?? null, since };
  const filter = { environmentId, request, segment: null, excludedSegments: [], events };
  const select = compileForCopy(selectValues('events', filter));
  // Its content is checked by reading it again, and compared with nothing.
  return { ...planRows('events', everything, { select, pieces: null }), content: null };
}

const monthStart = (month: string, after: number) =>
  Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5, 7)) - 1 + after);

/** Writes what the plan reads into data files; there is none without events. */
export async function writeData(
  context: Pick<RetentionContext, 'db' | 'files' | 'log'>,
  snapshot: Snapshot,
  place: Place,
  plan: FilePlan,
  splitBytes = ARCHIVE_PART_BYTES,
): Promise<readonly ExportFile[]> {
  const files = new AttemptFiles(archiveStore(context, place));
  try {
    const { rows } = await writeFiles(snapshot, files, plan, {
      request: everything,
      splitBytes,
      fields: await openFields(context.db, place),
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    if (rows > 0) return files.files;
    // There is always one.
    const [empty] = files.files;
    await files.discard(context.log);
    if (empty !== undefined) await forgetFile(context.db, empty.ref as FileRef);
    return [];
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

type Place = Parameters<typeof createDataFile>[1];

/** Each file is known before there is anything in it. */
function archiveStore(context: Pick<RetentionContext, 'db' | 'files'>, place: Place): FileStore {
  return { ...context.files, create: () => createDataFile(context, place) };
}

/**
 * Reads all of a file from where it is stored: it is what is left of its events.
 * @throws Fault if it is not what was written.
 */
export async function checkArchive(files: FileStore, written: ExportFile): Promise<WrittenData> {
  const file = await checkStored(files, written);
  let first: number | null = null;
  let last = 0;
  const ids = new IdFilter();
  const sums: (Buffer | null)[] = [];
  const toText = eventText();
  for await (const group of readGroups(files, file)) {
    first ??= group.micros[0] ?? null;
    last = group.micros.at(-1) ?? last;
    for (const entity of entities) ids.addTexts(entity, group.texts(idColumn[entity]));
    const content = new ContentHash('events', ndjsonText);
    content.add(toText(allHits(group)));
    sums.push(content.sum());
    group.release();
  }
  if (first === null) throw new Fault('a file of the lake without events');
  const statistics = await readStatistics(files, file);
  const found = { statistics, filter: ids.bytes(), sums: packSums(sums) };
  return { ...file, firstMicros: first, lastMicros: last, ...found };
}

export async function checkStored(files: FileStore, { ref, rows, bytes, sha256 }: ExportFile) {
  const file = { ref: ref as FileRef, bytes, rows, sha256 };
  const hash = createHash('sha256');
  for await (const part of files.open(file.ref)) hash.update(part as Buffer);
  if (hash.digest('hex') !== sha256) throw new Fault('a file of the lake is not stored as it was written');
  return file;
}

/**
 * Writes a file again with what `change` leaves of its row groups; null if that is nothing. Those that it leaves as they are, are
 * copied if they have the columns of the properties. If it fails, nothing is left of the new file.
 */
export async function rewriteArchive(
  files: FileStore,
  archive: { readonly ref: FileRef; readonly bytes: number; readonly rows: number },
  { create, fields }: { create(): Promise<FileWriter>; readonly fields: readonly LakeField[] },
  change: (group: LakeGroup) => Hits,
): Promise<ExportFile | null> {
  const stored = new StoredFileWriter(await create(), 'none');
  try {
    const parquet = new ParquetFile({ dataset: 'events', request: everything, fields }, stored, groupRows);
    const { toValues } = lakeWriters('events', { request: everything });
    let rows = 0;
    for await (const group of readGroups(files, archive)) {
      const hits = change(group);
      rows += hits.rows.length;
      if (isWhole(hits) && group.hasFields(fields)) await parquet.addPacked(group);
      else if (hits.rows.length > 0) await writeGroup(parquet, toValues(hits));
      group.release();
    }
    if (rows === 0) {
      await stored.discard();
      return null;
    }
    await parquet.end();
    return { filename: 'events.parquet', dataset: 'events', rows, ...(await stored.finish()) };
  } catch (error) {
    await stored.discard();
    throw error;
  }
}

async function writeGroup(parquet: ParquetFile, { bytes, ends }: RowBlock): Promise<void> {
  for (const [row, end] of ends.entries())
    parquet.addRow(bytes, row === 0 ? 0 : (ends[row - 1] as number), end);
  await parquet.endGroup();
}
