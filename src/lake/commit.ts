/**
 * Commits to the lake. What a table holds is decided in the database, by the rows of `lake_files`; a commit writes the metadata that
 * says so to other engines, in the transaction that changes those rows. So nothing is in two snapshots or in none, whatever is killed.
 */
import type pg from 'pg';
import type { LakeField } from '../domain/definitions.ts';
import {
  createLakeRef,
  type FileRef,
  type FileStore,
  type LakeFileKind,
  MissingFileError,
  writeWhole,
} from '../files/file-store.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { definitionsOf } from '../postgres/stores/definitions.ts';
import {
  AbandonedFile,
  listData,
  listManifests,
  listMonths,
  recordFile,
  replaceMetadata,
  storeMetadata,
} from '../postgres/stores/lake-files.ts';
import {
  findMovedTables,
  lockTable,
  openTable,
  setFields,
  setSnapshot,
  type TableKey,
} from '../postgres/stores/lake-tables.ts';
import { evolveFields, layouts, tableMetadata, writeManifest, writeManifestList } from './iceberg.ts';

export interface LakeContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
}

/**
 * Makes what the transaction has stored and replaced the snapshot of the table; `months` (YYYY-MM-DD; null: of profiles) are
 * those that it changed. Whoever commits next waits for the end of the transaction.
 */
export async function commitLake(
  { db: outside, files }: Pick<LakeContext, 'db' | 'files'>,
  db: Database,
  key: TableKey,
  months: Iterable<string | null>,
): Promise<void> {
  const table = await lockTable(db, key);
  const version = table.version + 1;
  const layout = layouts[key.name];
  const address = (ref: FileRef): string => `${files.location}/${ref}`;
  const write = async (kind: Exclude<LakeFileKind, 'data'>, bytes: Buffer, month: string | null = null) => {
    const ref = createLakeRef(table.folder, kind, version);
    await recordFile(outside, { ...key, kind, ref, month, retirementId: null });
    await writeWhole(await files.createAs(ref), [bytes]);
    return { ref, bytes: bytes.length };
  };
  const changed = table.location === files.location ? months : await listMonths(db, key);
  for (const month of new Set(changed)) {
    const data = await listData(db, key, month);
    await replaceMetadata(db, key, ['manifest'], month);
    if (data.length === 0) continue;
    const entries = data.map(({ ref, ...file }) => ({ ...file, path: address(ref) }));
    const manifest = await write(
      'manifest',
      writeManifest({ ...layout, fields: table.fields }, version, month, entries),
      month,
    );
    const rows = data.reduce((sum, file) => sum + file.rows, 0);
    await storeMetadata(db, { ...manifest, version, files: data.length, rows });
  }
  const manifests = (await listManifests(db, key)).map(({ ref, ...manifest }) => ({
    ...manifest,
    path: address(ref),
  }));
  await replaceMetadata(db, key, ['list', 'metadata'], null);
  const list = await write('list', writeManifestList(version, manifests));
  const state = {
    ...{ uuid: table.folder, location: `${files.location}/lake/${table.folder}`, version },
    ...{ at: new Date(), manifestList: address(list.ref), manifests },
  };
  const metadata = await write(
    'metadata',
    Buffer.from(JSON.stringify(tableMetadata({ ...layout, fields: table.fields }, state))),
  );
  for (const file of [list, metadata]) await storeMetadata(db, { ...file, version, files: null, rows: null });
  await setSnapshot(db, { ...table, location: files.location, version, metadataRef: metadata.ref });
}

/** Tells whether somebody, such as a deletion, has given up or removed a file before it was taken. */
export function isAbandoned(error: unknown): boolean {
  return error instanceof AbandonedFile || error instanceof MissingFileError;
}

/** Writes metadata anew where the file store has moved, since it names files by their whole address. */
export async function refreshLake(context: LakeContext): Promise<void> {
  for (const key of await findMovedTables(context.db, context.files.location))
    await inTransaction(context.pool, ({ db }) => commitLake(context, db, key, []));
}

/** Makes the columns of properties what the definitions want, and returns them: what is written from now on has them. */
export async function openFields(db: Database, key: TableKey): Promise<readonly LakeField[]> {
  const table = await openTable(db, key);
  const wanted = await definitionsOf.lake_columns.read(db, key.environmentId);
  const fields = evolveFields(table.fields, wanted, layouts[key.name].columns.length);
  if (fields === table.fields || (await setFields(db, table, fields))) return fields.properties;
  return openFields(db, key);
}

/** Records a data file before anything is written to it, and returns it. */
export async function createDataFile(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  place: TableKey & { readonly month: string | null; readonly retirementId: number | null },
) {
  const { folder } = await openTable(db, place);
  const ref = createLakeRef(folder, 'data', 0);
  await recordFile(db, { ...place, kind: 'data', ref });
  return files.createAs(ref);
}
