import { uuidv7 } from 'uuidv7';
import { checkArchive } from '../archive/check-archive.ts';
import type { ExportFile, ExportRequest } from '../domain/export.ts';
import { ARCHIVE_PART_BYTES, MAX_ARCHIVE_TRIES } from '../domain/limits.ts';
import { AttemptFiles } from '../export/write/attempt-files.ts';
import { compileForCopy } from '../export/write/copy-out.ts';
import { selectForParquet } from '../export/write/parquet.ts';
import { inSnapshot, type Snapshot } from '../export/write/snapshot.ts';
import { writeDataset } from '../export/write/write-export.ts';
import type { FileStore } from '../files/file-store.ts';
import { databaseOn } from '../postgres/database.ts';
import {
  type ArchivePlace,
  archiveFolder,
  noteArchive,
  storeArchive,
  type WrittenArchive,
} from '../postgres/retention/archives.ts';
import { eventTable } from '../postgres/retention/retained.ts';
import {
  beginArchiving,
  listEnvironments,
  markArchived,
  type Retirement,
  readRevision,
} from '../postgres/retention/retirements.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { RetentionContext } from './context.ts';

/** All columns of all events: an archive is the Parquet file of an export that leaves nothing out. */
const everything: ExportRequest = {
  from: null,
  to: '9999-12-31T23:59:59.999999Z',
  datasets: ['events'],
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
 * Writes what a retired table holds into files, reads them again, and lets exports read them instead of the table: all in
 * one transaction, and only if nobody has changed the table meanwhile. Returns how many events that were.
 */
export async function archiveEvents(context: RetentionContext, retirement: Retirement): Promise<number> {
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const attempt = await beginArchiving(context.db, retirement);
    const { revision, written } = await writeAll(context, retirement);
    const archives: WrittenArchive[] = [];
    for (const file of written) archives.push(await checkArchive(context.files, file));
    const isTaken = await inTransaction(context.pool, async ({ db }) => {
      if (!(await markArchived(db, retirement, { attempt, revision }))) return false;
      for (const archive of archives) await storeArchive(db, archive);
      return true;
    });
    if (isTaken) return archives.reduce((sum, { rows }) => sum + rows, 0);
    // What was written is removed by the sweep.
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
      const place = { environmentId, month, retirementId };
      written.push(...(await writeEnvironment(context, snapshot, retirement.table, place)));
    }
    return { revision, written };
  });
}

async function writeEnvironment(
  context: RetentionContext,
  snapshot: Snapshot,
  table: string,
  place: ArchivePlace,
): Promise<readonly ExportFile[]> {
  const files = new AttemptFiles(archiveStore(context, place));
  try {
    const filter = {
      ...{ environmentId: place.environmentId, request: everything, segment: null, excludedSegments: [] },
      events: eventTable(table),
    };
    const plan = {
      ...({ dataset: 'events', format: 'parquet', header: Buffer.alloc(0) } as const),
      select: compileForCopy(selectForParquet('events', filter)),
      pieces: null,
    };
    await writeDataset(snapshot, files, plan, {
      request: everything,
      splitBytes: ARCHIVE_PART_BYTES,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    return files.files;
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

/** Each file into a folder of its own, that is written down first. */
export function archiveStore(
  { db, files }: Pick<RetentionContext, 'db' | 'files'>,
  place: ArchivePlace,
): FileStore {
  return {
    ...files,
    create: async () => {
      const folder = archiveFolder(uuidv7());
      await noteArchive(db, folder, place);
      return files.create(folder);
    },
  };
}
