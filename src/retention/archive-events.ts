import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { LakeField } from '../domain/definitions.ts';
import { Fault } from '../domain/errors.ts';
import type { ExportFile, ExportRequest } from '../domain/export.ts';
import { ARCHIVE_PART_BYTES, MAX_ARCHIVE_TRIES } from '../domain/limits.ts';
import { AttemptFiles, StoredFileWriter } from '../export/write/attempt-files.ts';
import { type Column, columnsOf, selectValues } from '../export/write/page.ts';
import { ParquetFile } from '../export/write/parquet.ts';
import { separator } from '../export/write/rows.ts';
import { groupRows } from '../export/write/split-files.ts';
import { planRows, writeFiles } from '../export/write/write-export.ts';
import type { FileRef, FileStore, FileWriter } from '../files/file-store.ts';
import { commitLake, createDataFile, openFields } from '../lake/commit.ts';
import { IdFilter } from '../lake/id-filter.ts';
import { type LakeEvent, readEvents, readStatistics } from '../lake/read-events.ts';
import { compileForCopy } from '../postgres/copy-out.ts';
import { type Database, databaseOn, inTransaction } from '../postgres/database.ts';
import { inSnapshot, type Snapshot } from '../postgres/session.ts';
import { storeData, type WrittenData } from '../postgres/stores/lake.ts';
import { eventTable } from '../postgres/stores/retention.ts';
import {
  beginArchiving,
  listEnvironments,
  markArchived,
  type Retirement,
  readRevision,
} from '../postgres/stores/retirements.ts';

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

/**
 * Writes what a retired table holds into data files of the lake, reads them again, and lets exports read them instead of the table: in
 * one transaction with the commit of the lake, and only if nobody has changed the table meanwhile. Returns how many events that were.
 */
export async function archiveEvents(context: RetentionContext, retirement: Retirement): Promise<number> {
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const attempt = await beginArchiving(context.db, retirement);
    const { revision, written } = await writeAll(context, retirement);
    const checked: WrittenData[] = [];
    for (const file of written) checked.push(await checkArchive(context.files, file));
    const isTaken = await inTransaction(context.pool, async ({ db }) => {
      if (!(await markArchived(db, retirement, { attempt, revision }))) return false;
      const environments = new Set<number>();
      for (const file of checked) environments.add((await storeData(db, file)).environmentId);
      for (const id of environments)
        await commitLake(context, db, { environmentId: id, name: 'events' }, [retirement.month]);
      return true;
    });
    if (isTaken) return checked.reduce((sum, { rows }) => sum + rows, 0);
    // The sweep removes the unfinished files.
  }
  throw new Error('the events were changed whenever they had been archived');
}

async function writeAll(
  context: RetentionContext,
  retirement: Retirement,
): Promise<{ revision: number; written: ExportFile[] }> {
  const { signal } = new AbortController();
  return inSnapshot(context, { name: 'sluice archive', signal }, async (snapshot) => {
    const db = databaseOn(snapshot.client);
    const revision = await readRevision(db, retirement);
    const written: ExportFile[] = [];
    for (const environmentId of await listEnvironments(db, retirement)) {
      const { month, retirementId } = retirement;
      const place = { environmentId, name: 'events', month, retirementId } as const;
      written.push(...(await writeEnvironment(context, snapshot, retirement.table, place)));
    }
    return { revision, written };
  });
}

type Place = Parameters<typeof createDataFile>[1];

async function writeEnvironment(
  context: RetentionContext,
  snapshot: Snapshot,
  table: string,
  place: Place,
): Promise<readonly ExportFile[]> {
  const files = new AttemptFiles(archiveStore(context, place));
  try {
    const filter = {
      ...{ environmentId: place.environmentId, request: everything, segment: null, excludedSegments: [] },
      events: eventTable(table),
    };
    const select = compileForCopy(selectValues('events', filter));
    const plan = planRows('events', everything, { select, pieces: null });
    // Its content is checked by reading it again, and compared with nothing.
    await writeFiles(
      snapshot,
      files,
      { ...plan, content: null },
      {
        request: everything,
        splitBytes: ARCHIVE_PART_BYTES,
        fields: await openFields(context.db, place),
        signal: new AbortController().signal,
        onProgress: () => undefined,
      },
    );
    return files.files;
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

/** Each file is known before there is anything in it. */
function archiveStore(context: Pick<RetentionContext, 'db' | 'files'>, place: Place): FileStore {
  return { ...context.files, create: () => createDataFile(context, place) };
}

/**
 * Reads all of a file from where it is stored: it is what is left of its events.
 * @throws Fault if it is not what was written.
 */
export async function checkArchive(
  files: FileStore,
  { ref, rows, bytes, sha256 }: ExportFile,
): Promise<WrittenData> {
  const file = { ref: ref as FileRef, bytes, rows };
  const hash = createHash('sha256');
  for await (const part of files.open(file.ref)) hash.update(part as Buffer);
  if (hash.digest('hex') !== sha256) throw new Fault('a file of the lake is not stored as it was written');
  let first: number | null = null;
  let last = 0;
  const ids = new IdFilter();
  for await (const events of readEvents(files, file)) {
    first ??= events[0]?.micros ?? null;
    last = events.at(-1)?.micros ?? last;
    for (const { user_id, company_id } of events) {
      ids.add('users', user_id);
      if (company_id !== null) ids.add('companies', company_id);
    }
  }
  if (first === null) throw new Fault('a file of the lake without events');
  const statistics = await readStatistics(files, file);
  return { ...file, sha256, firstMicros: first, lastMicros: last, statistics, filter: ids.bytes() };
}

/** Changes an event; null leaves it out. */
export type ChangeEvent = (event: LakeEvent) => LakeEvent | null;

/**
 * Writes a file again with its events changed, a row group at a time; null if none is left. If it fails, nothing is left of
 * the new file.
 */
export async function rewriteArchive(
  files: FileStore,
  archive: { readonly ref: FileRef; readonly bytes: number; readonly rows: number },
  { create, fields }: { create(): Promise<FileWriter>; readonly fields: readonly LakeField[] },
  change: ChangeEvent,
): Promise<ExportFile | null> {
  const columns = columnsOf('events', everything);
  const stored = new StoredFileWriter(await create(), 'none');
  try {
    const parquet = new ParquetFile({ dataset: 'events', request: everything, fields }, stored, groupRows);
    let rows = 0;
    for await (const group of readEvents(files, archive)) {
      const kept = group.map(change).filter((event) => event !== null);
      if (kept.length === 0) continue;
      for (const event of kept) {
        const row = rowOf(event, columns);
        parquet.addRow(row, 0, row.length);
      }
      await parquet.endGroup();
      rows += kept.length;
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

function rowOf(event: LakeEvent, columns: readonly Column[]): Buffer {
  const values = columns.map(({ name, kind }) => {
    if (kind === 'instant') return String(event.micros);
    const value = event[name as keyof LakeEvent];
    if (value === null) return '';
    return kind === 'json' ? value : JSON.stringify(value);
  });
  return Buffer.from(`${values.join(separator)}\n`);
}
