/**
 * The way back from a backup (`backup.ts`): stored files under the names they had, and the database in one transaction. A restore
 * that is killed leaves no database; run again, it writes the same files once more.
 */

import { join } from 'node:path';
import type pg from 'pg';
import type { Logger } from 'pino';
import { DamagedFile, Fault, FinalFailure, TransientError } from '../domain/errors.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { isFull, readDisk } from '../files/disk.ts';
import { checkRef, type FileRef, type FileStore, writeWhole } from '../files/file-store.ts';
import { refreshLake } from '../lake/commit.ts';
import { compareFiles } from '../lake/lost-files.ts';
import { readPackage } from '../package-root.ts';
import { createDatabase } from '../postgres/database.ts';
import { type CopiedTable, connectForCopy } from '../postgres/database-copy/read-database.ts';
import { forgetMissing } from '../postgres/database-copy/stored-files.ts';
import { DatabaseWriter, findSchemaProblem, hasSchema } from '../postgres/database-copy/write-database.ts';
import { createPool } from '../postgres/pool.ts';
import { isDiskFull, isTransient } from '../postgres/sqlstate.ts';
import { type About, type Manifest, readArchive } from './archive.ts';

type Show = (share: number, doing: string) => void;

export interface VerifiedBackup {
  readonly about: About;
  readonly manifest: Manifest;
}

/** Reads a backup to its end. @throws DamagedFile, FinalFailure */
export async function verifyBackup(path: string, show: Show = () => undefined): Promise<VerifiedBackup> {
  return readArchive(path, { about: assertKnown, progress: (bytes, of) => show(bytes / of, 'checking') });
}

/** Refuses a backup of a later version, whose tables this one does not know. */
async function assertKnown({ sluice, database }: About): Promise<void> {
  const problem = await findSchemaProblem(database);
  if (problem === null) return;
  throw new FinalFailure(
    'restore_refused',
    `The backup was made by sluice ${sluice}, and this is ${readPackage().version}: ${problem}.\nRestore it with sluice ${sluice}, or with a later version that knows its migrations, and upgrade then.`,
  );
}

export interface Restored {
  readonly rows: number;
  readonly files: number;
  /** Ended jobs whose files were not in the backup; they look as if the files had expired. */
  readonly forgotten: number;
  /** Files of the lake that are missing, and those that the database does not know; `null`: they could not be listed. */
  readonly lake: { readonly missing: number; readonly unknown: number } | null;
}

export async function restoreBackup(
  path: string,
  { databaseUrl, files }: { readonly databaseUrl: string; readonly files: FileStore },
  show: Show = () => undefined,
): Promise<Restored> {
  const client = await connectForCopy(databaseUrl);
  const pool = createPool({ url: databaseUrl, max: 2, applicationName: 'sluice restore' });
  const db = createDatabase(pool);
  try {
    await assertEmpty(client);
    const { about, manifest } = await restoreRows(client, path, files, show);
    const isMissing = async (ref: FileRef): Promise<boolean> => (await files.size(ref)) === null;
    const forgotten = about.files === 'included' ? await forgetMissing(client, db, isMissing) : 0;
    if (about.files === 'included') await refreshLake({ pool, db, files });
    const lake = await compareFiles(pool, files).then(
      ({ missing, unknown }) => ({ missing: missing.length, unknown: unknown.length }),
      () => null,
    );
    const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
    return { rows, files: manifest.files.count, forgotten, lake };
  } finally {
    await client.end();
    await pool.end();
  }
}

async function restoreRows(
  client: pg.Client,
  path: string,
  files: FileStore,
  show: Show,
): Promise<VerifiedBackup> {
  let tables = new Map<string, CopiedTable>();
  const written = new Map<string, number>();
  let doing = 'reading';
  let writer: DatabaseWriter | null = null;
  const found = await readArchive(path, {
    async about(about) {
      await assertKnown(about);
      tables = new Map(about.database.tables.map((table) => [table.name, table]));
      writer = await DatabaseWriter.begin(client, about.database);
    },
    async item({ kind, name }, bytes) {
      doing = kind === 'files' ? 'files' : name;
      if (kind === 'files') return void (await writeWhole(await files.createAs(checkRef(name)), bytes));
      const table = tables.get(name);
      if (table === undefined) throw new DamagedFile(`it has a table ${name} that it does not describe`);
      written.set(name, (await writer?.write(table, bytes)) ?? 0);
    },
    progress: (read, of) => show(read / of, doing),
  });
  assertCounts(found.manifest, written);
  show(1, 'indexes');
  await (writer as DatabaseWriter | null)?.finish();
  return found;
}

/** Every row of the archive must have become one of the database. @throws Fault */
function assertCounts({ tables }: Manifest, written: ReadonlyMap<string, number>): void {
  for (const { name, rows } of tables)
    if (written.get(name) !== rows)
      throw new Fault(
        `${name} has ${written.get(name) ?? 0} rows in the database, and ${rows} in the backup`,
      );
}

export interface EmbeddedTarget {
  /** DATA_DIR */
  readonly dataDir: string;
  readonly log: Logger;
  /** Sets existing data aside, and keeps it. */
  readonly replace: boolean;
}

/** @throws FinalFailure, or EmbeddedPostgresError, if a backup may not become the embedded database. */
export async function assertRestorable({ dataDir, log, replace }: EmbeddedTarget): Promise<void> {
  const data = join(dataDir, 'postgres');
  if (!(await embeddedPostgres.hasDataToKeep(data))) return;
  if (!replace)
    throw new FinalFailure(
      'restore_refused',
      `There is a database in ${dataDir} already, and nothing is restored over it. Restore into another folder\n(--data-dir <folder>), or with --replace: then the one that is there is set aside, and kept.`,
    );
  await embeddedPostgres.awaitUnused(data, log);
}

/** Rows come in once, and indexes are built; nothing else runs. */
const bulkSettings = { autovacuum: 'off', maintenance_work_mem: '256MB', checkpoint_timeout: '1h' };

/**
 * Makes a backup the embedded database; `aside` is where the data is that was there before.
 * @throws FinalFailure, DamagedFile; TransientError if the disk is full.
 */
export async function restoreEmbedded(
  target: EmbeddedTarget & { readonly files: FileStore },
  path: string,
  show: Show,
): Promise<Restored & { readonly aside: string | null }> {
  await assertRestorable(target);
  const { log } = target;
  const dataDir = join(target.dataDir, 'postgres');
  const claim = await embeddedPostgres.claimForRestore(dataDir, log);
  try {
    const server = await embeddedPostgres.start({ dataDir, log, settings: bulkSettings, isRestore: true });
    const restored = await restoreBackup(
      path,
      { databaseUrl: server.url, files: target.files },
      show,
    ).finally(() => server.stop());
    await claim.complete();
    return { ...restored, aside: claim.aside };
  } catch (error) {
    // A server that has no room for its log ends, and the error says no more than that it is gone.
    const isFullDisk = isDiskFull(error) || (await readDisk(target.dataDir).then(isFull, () => false));
    await claim.undo().catch(() => undefined);
    if (!isFullDisk || !(isTransient(error) || embeddedPostgres.isRefusal(error))) throw error;
    throw new TransientError(
      `The disk of ${target.dataDir} is full; the database that is not complete was removed. Make room and run it again, or choose another folder (--data-dir).`,
      { cause: error },
    );
  }
}

/** @throws FinalFailure if a backup may not be restored there. */
export async function assertEmptyDatabase(url: string): Promise<void> {
  const client = await connectForCopy(url);
  await assertEmpty(client).finally(() => client.end());
}

/** Nothing is ever restored over data, nor beside it. */
async function assertEmpty(client: pg.Client): Promise<void> {
  if (!(await hasSchema(client))) return;
  throw new FinalFailure(
    'restore_refused',
    'The database has a schema sluice already, and nothing is restored over it. Make an empty database (createdb) and name that:\n--database-url postgres://…/restored. To give the old one up, rename or drop its schema first.',
  );
}
