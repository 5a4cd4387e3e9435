/**
 * The rows of `lake_files` determine what a table contains. The transaction that changes these rows
 * also writes the metadata for other query engines, so a crash leaves a consistent snapshot.
 */
import type pg from 'pg';
import { uuidv7 } from '../../base/uuid.ts';
import type { PropertyField } from '../../domain/definitions.ts';
import {
  checkRef,
  type FileRef,
  type FileStore,
  MissingFileError,
  writeWhole,
} from '../../files/file-store.ts';
import { type Database, inTransaction } from '../../postgres/database.ts';
import {
  AbandonedFile,
  findReplaced,
  forgetFile,
  type LakeFileKind,
  listData,
  listManifests,
  listMonths,
  recordFile,
  replaceMetadata,
  storeMetadata,
} from './file-store.ts';
import { evolveFields, tableMetadata, writeManifest, writeManifestList } from './iceberg.ts';
import { findMovedTables, lakeColumns, lockTable, openTable, setFields, setSnapshot } from './table-store.ts';

export interface LakeContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
}

/**
 * Makes a snapshot of the files whose state is `stored`. `months` (YYYY-MM-DD) are the months whose
 * files have changed. Locks the table until the transaction ends.
 */
export async function commitLake(
  { db: outside, files }: Pick<LakeContext, 'db' | 'files'>,
  db: Database,
  environmentId: number,
  months: Iterable<string>,
): Promise<void> {
  const table = await lockTable(db, environmentId);
  const { folder, fields } = table;
  const version = table.version + 1;
  const address = (ref: FileRef): string => `${files.location}/${ref}`;
  const write = async (kind: Exclude<LakeFileKind, 'data'>, bytes: Buffer, month: string | null = null) => {
    const ref = createLakeRef(folder, kind, version);
    await recordFile(outside, { environmentId, kind, ref, month, retirementId: null });
    await writeWhole(await files.createAs(ref), [bytes]);
    return { ref, bytes: bytes.length };
  };
  const changed = table.location === files.location ? months : await listMonths(db, environmentId);
  for (const month of new Set(changed)) {
    const data = await listData(db, environmentId, month);
    await replaceMetadata(db, environmentId, ['manifest'], month);
    if (data.length === 0) continue;
    const entries = data.map(({ ref, ...file }) => ({ ...file, path: address(ref) }));
    const manifest = await write('manifest', writeManifest(fields, version, month, entries), month);
    const rows = data.reduce((sum, file) => sum + file.rows, 0);
    await storeMetadata(db, { ...manifest, version, files: data.length, rows });
  }
  const manifests = (await listManifests(db, environmentId)).map(({ ref, ...manifest }) => ({
    ...manifest,
    path: address(ref),
  }));
  await replaceMetadata(db, environmentId, ['list', 'metadata'], null);
  const list = await write('list', writeManifestList(version, manifests));
  const state = {
    uuid: folder,
    location: `${files.location}/lake/${folder}`,
    version,
    fields,
    at: new Date(),
    manifestList: address(list.ref),
    manifests,
  };
  const metadata = await write('metadata', Buffer.from(JSON.stringify(tableMetadata(state))));
  for (const file of [list, metadata]) await storeMetadata(db, { ...file, version, files: null, rows: null });
  await setSnapshot(db, { environmentId, location: files.location, version, metadataRef: metadata.ref });
}

function createLakeRef(table: string, kind: LakeFileKind, version: number): FileRef {
  const number = String(version).padStart(5, '0');
  const name = {
    data: `data/${uuidv7()}.parquet`,
    manifest: `metadata/${uuidv7()}.avro`,
    list: `metadata/${uuidv7()}.avro`,
    metadata: `metadata/${number}-${uuidv7()}.metadata.json`,
  }[kind];
  return checkRef(`lake/${table}/${name}`);
}

export function isAbandoned(error: unknown): boolean {
  return error instanceof AbandonedFile || error instanceof MissingFileError;
}

/** The metadata contains absolute addresses, so it is rewritten if the file store has moved. */
export async function refreshLake(context: LakeContext): Promise<void> {
  for (const environmentId of await findMovedTables(context.db, context.files.location))
    await inTransaction(context.pool, ({ db }) => commitLake(context, db, environmentId, []));
}

/** Adapts the property columns of the table to the current definitions, and returns them. */
export async function openFields(db: Database, environmentId: number): Promise<readonly PropertyField[]> {
  const table = await openTable(db, environmentId);
  const fields = evolveFields(table.fields, await lakeColumns.read(db, environmentId));
  if (fields === table.fields || (await setFields(db, table, fields))) return fields.properties;
  return openFields(db, environmentId);
}

/** The file is recorded before its first byte is written. */
export async function createDataFile(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  place: Pick<Parameters<typeof recordFile>[1], 'environmentId' | 'month' | 'retirementId'>,
) {
  const { folder } = await openTable(db, place.environmentId);
  const ref = createLakeRef(folder, 'data', 0);
  await recordFile(db, { ...place, kind: 'data', ref });
  return files.createAs(ref);
}

export async function removeReplaced(context: Pick<LakeContext, 'db' | 'files'>): Promise<number> {
  const replaced = await findReplaced(context.db);
  await removeFiles(context, replaced);
  return replaced.length;
}

export async function removeFiles(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  refs: readonly FileRef[],
): Promise<void> {
  for (const ref of refs) {
    await files.remove(ref);
    await forgetFile(db, ref);
  }
}
