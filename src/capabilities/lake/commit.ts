/**
 * Commits to the lake. What a table holds is decided in the database, by the rows of `lake_files`; a commit writes the metadata that
 * says so to other engines, in the transaction that changes those rows. So nothing is in two snapshots or in none, whatever is killed.
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
import { definitionsOf } from '../../lookups/store.ts';
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
import { findMovedTables, lockTable, openTable, setFields, setSnapshot } from './table-store.ts';

export interface LakeContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
}

/**
 * Makes the stored files of the transaction the snapshot of an environment's table. `months` (YYYY-MM-DD) are those that the transaction
 * changed. The next commit waits for the end of the transaction.
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
    ...{ uuid: folder, location: `${files.location}/lake/${folder}`, version, fields },
    ...{ at: new Date(), manifestList: address(list.ref), manifests },
  };
  const metadata = await write('metadata', Buffer.from(JSON.stringify(tableMetadata(state))));
  for (const file of [list, metadata]) await storeMetadata(db, { ...file, version, files: null, rows: null });
  await setSnapshot(db, { environmentId, location: files.location, version, metadataRef: metadata.ref });
}

/** A name that no file has, of a table of the lake; `version`: of the metadata. */
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

/** Tells whether somebody, such as a deletion, has given up or removed a file before it was taken. */
export function isAbandoned(error: unknown): boolean {
  return error instanceof AbandonedFile || error instanceof MissingFileError;
}

/** Writes metadata anew where the file store has moved, since it names files by their whole address. */
export async function refreshLake(context: LakeContext): Promise<void> {
  for (const environmentId of await findMovedTables(context.db, context.files.location))
    await inTransaction(context.pool, ({ db }) => commitLake(context, db, environmentId, []));
}

/** Makes the columns of properties what the definitions want, and returns them for the files that are written next. */
export async function openFields(db: Database, environmentId: number): Promise<readonly PropertyField[]> {
  const table = await openTable(db, environmentId);
  const fields = evolveFields(table.fields, await definitionsOf.lake_columns.read(db, environmentId));
  if (fields === table.fields || (await setFields(db, table, fields))) return fields.properties;
  return openFields(db, environmentId);
}

/** Records a data file before anything is written to it, and returns it. */
export async function createDataFile(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  place: Pick<Parameters<typeof recordFile>[1], 'environmentId' | 'month' | 'retirementId'>,
) {
  const { folder } = await openTable(db, place.environmentId);
  const ref = createLakeRef(folder, 'data', 0);
  await recordFile(db, { ...place, kind: 'data', ref });
  return files.createAs(ref);
}

/** Removes files that no snapshot names any more. Returns how many. */
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
