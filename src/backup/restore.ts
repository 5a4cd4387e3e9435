/**
 * The way back from a backup (`backup.ts`): stored files under the names they had, and the database in one transaction. Until
 * that is committed nothing of it is there; killed, a restore is begun again, and writes the same files once more.
 */
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { type CopiedTable, connectForCopy } from '../database-copy/read-database.ts';
import {
  checkMigrations,
  copyIn,
  dropIndexes,
  finishTables,
  makeIndexes,
  prepareTables,
  UnknownSchema,
} from '../database-copy/write-database.ts';
import { STORED_FILES_AT_A_TIME } from '../domain/limits.ts';
import { checkRef, type FileRef, type FileStore } from '../files/file-store.ts';
import { readPackage } from '../package-root.ts';
import { createDatabase } from '../postgres/database.ts';
import { migrate, readMigrations } from '../postgres/migrate.ts';
import { createPool } from '../postgres/pool.ts';
import { markFilesExpired } from '../postgres/stores/exports.ts';
import { forgetFiles } from '../postgres/stores/stored-files.ts';
import type { About, Manifest } from './archive.ts';
import { readArchive } from './read-archive.ts';
import { DamagedArchive } from './tar.ts';

/** What can be restored from it is clear, but not here; the message says what to do. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
}

type Show = (share: number, doing: string) => void;

export interface VerifiedBackup {
  readonly about: About;
  readonly manifest: Manifest;
}

/** Reads all of it. @throws DamagedArchive, RestoreRefused */
export async function verifyBackup(path: string, show: Show = () => undefined): Promise<VerifiedBackup> {
  return readArchive(path, {
    about: assertKnown,
    progress: (bytes, of) => show(bytes / of, 'checking'),
  });
}

/** Whether this version can restore it: a later one made tables that this one knows nothing of. */
async function assertKnown({ sluice, database }: About): Promise<void> {
  try {
    checkMigrations(database, await readMigrations());
  } catch (error) {
    if (!(error instanceof UnknownSchema)) throw error;
    const version = readPackage().version;
    throw new RestoreRefused(
      `The backup was made by sluice ${sluice}, and this is ${version}: ${error.message}.\nRestore it with sluice ${sluice}, or with a later version that knows its migrations, and upgrade then.`,
    );
  }
}

export interface Restored {
  readonly rows: number;
  readonly files: number;
  /** Jobs that ended whose files were not in the backup: as if they had expired. */
  readonly forgotten: number;
}

/** Into an empty database. `files` is where stored files go. */
export async function restoreBackup(
  path: string,
  target: { readonly databaseUrl: string; readonly files: FileStore },
  show: Show = () => undefined,
): Promise<Restored> {
  const client = await connectForCopy(target.databaseUrl);
  try {
    const { about, manifest } = await restoreRows(client, path, target.files, show);
    // What suits this server, and not the one that the backup comes from.
    await migrate(client);
    await client.query('analyze');
    const forgotten = about.files === 'included' ? await forgetMissing(client, target) : 0;
    const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
    return { rows, files: manifest.files.count, forgotten };
  } finally {
    await client.end();
  }
}

async function restoreRows(
  client: pg.Client,
  path: string,
  files: FileStore,
  show: Show,
): Promise<VerifiedBackup> {
  let tables = new Map<string, CopiedTable>();
  let doing = 'reading';
  let indexes: string[] = [];
  await client.query('begin');
  await assertEmpty(client);
  const found = await readArchive(path, {
    async about(about) {
      await assertKnown(about);
      tables = new Map(about.database.tables.map((table) => [table.name, table]));
      await prepareTables(client, about.database);
      indexes = await dropIndexes(client, about.database);
    },
    async item({ kind, name }, bytes) {
      doing = kind === 'files' ? 'files' : name;
      if (kind === 'files') return storeFile(files, checkRef(name), bytes);
      const table = tables.get(name);
      if (table === undefined) throw new DamagedArchive(`it has a table ${name} that it does not describe`);
      await pipeline(bytes, copyIn(client, table, { frozen: true }));
    },
    progress: (read, of) => show(read / of, doing),
  });
  show(1, 'indexes');
  await makeIndexes(client, indexes);
  await finishTables(client, found.about.database);
  await client.query('commit');
  return found;
}

/** @throws RestoreRefused if a backup may not go there. */
export async function assertEmptyDatabase(url: string): Promise<void> {
  const client = await connectForCopy(url);
  await assertEmpty(client).finally(() => client.end());
}

/** Nothing is ever restored over data, nor beside it. */
async function assertEmpty(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string | null }>(
    `select coalesce(to_regnamespace('sluice'), to_regnamespace('sluice_move'))::text as name`,
  );
  const name = rows[0]?.name ?? null;
  if (name === null) return;
  throw new RestoreRefused(
    `The database has a schema ${name} already, and nothing is restored over it. Make an empty database (createdb) and name that:\n--database-url postgres://…/restored. To give the old one up, rename or drop its schema first.`,
  );
}

async function storeFile(files: FileStore, ref: FileRef, bytes: AsyncIterable<Buffer>): Promise<void> {
  const writer = await files.createAs(ref);
  try {
    for await (const chunk of bytes) await writer.write(chunk);
    await writer.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

/** A job that has ended, and a file of it. */
interface NamedFile {
  readonly kind: 'load' | 'export' | 'upload';
  readonly id: string;
  readonly ref: FileRef;
}

/** Files that expired while the backup was made: what the ledger says of them becomes true. How many jobs that were. */
async function forgetMissing(
  client: pg.Client,
  { databaseUrl, files }: { readonly databaseUrl: string; readonly files: FileStore },
): Promise<number> {
  const pool = createPool({ url: databaseUrl, max: 1, applicationName: 'sluice restore' });
  const db = createDatabase(pool);
  const forgotten = new Set<string>();
  try {
    for await (const { kind, id, ref } of namedFiles(client)) {
      if (forgotten.has(`${kind} ${id}`) || (await files.size(ref)) !== null) continue;
      forgotten.add(`${kind} ${id}`);
      if (kind === 'load') await forgetFiles(db, [Number(id)]);
      else if (kind === 'export') await markFilesExpired(db, Number(id));
      else await db.deleteFrom('uploads').where('upload_id', '=', id).execute();
    }
    return forgotten.size;
  } finally {
    await pool.end();
  }
}

/** Work that is under way, and archives of events, cannot do without theirs, and say so themselves. */
async function* namedFiles(client: pg.Client): AsyncGenerator<NamedFile> {
  await client.query('begin read only');
  await client.query(`
    declare named_files no scroll cursor for
    select 'load' as kind, load_id::text as id, file_ref as ref from sluice.loads where file_ref is not null and ended_at is not null
    union all
    select 'export', export_id::text, file_ref from sluice.export_files join sluice.exports using (export_id) where files_expired_at is null
    union all
    select 'upload', upload_id::text, file_ref from sluice.upload_parts`);
  for (;;) {
    const { rows } = await client.query<NamedFile>(`fetch ${STORED_FILES_AT_A_TIME} from named_files`);
    for (const { kind, id, ref } of rows) yield { kind, id, ref: checkRef(ref) };
    if (rows.length < STORED_FILES_AT_A_TIME) break;
  }
  await client.query('commit');
}
