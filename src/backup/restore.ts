/**
 * The way back from a backup (`backup.ts`): stored files under the names they had, and the database in one transaction. A restore
 * that is killed leaves no database; run again, it writes the same files once more.
 */

import type pg from 'pg';
import { DamagedFile, FinalFailure } from '../domain/errors.ts';
import { checkRef, type FileRef, type FileStore } from '../files/file-store.ts';
import { readPackage } from '../package-root.ts';
import { createDatabase } from '../postgres/database.ts';
import { type CopiedTable, connectForCopy } from '../postgres/database-copy/read-database.ts';
import { forgetMissing } from '../postgres/database-copy/stored-files.ts';
import { DatabaseWriter, findSchemaProblem, hasSchema } from '../postgres/database-copy/write-database.ts';
import { createPool } from '../postgres/pool.ts';
import type { About, Manifest } from './archive.ts';
import { readArchive } from './read-archive.ts';

type Show = (share: number, doing: string) => void;

export interface VerifiedBackup {
  readonly about: About;
  readonly manifest: Manifest;
}

/** Reads a backup to its end. @throws DamagedFile, FinalFailure */
export async function verifyBackup(path: string, show: Show = () => undefined): Promise<VerifiedBackup> {
  return readArchive(path, {
    about: assertKnown,
    progress: (bytes, of) => show(bytes / of, 'checking'),
  });
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
}

/** Restores a backup into an empty database, and its stored files into `files`. */
export async function restoreBackup(
  path: string,
  { databaseUrl, files }: { readonly databaseUrl: string; readonly files: FileStore },
  show: Show = () => undefined,
): Promise<Restored> {
  const client = await connectForCopy(databaseUrl);
  const pool = createPool({ url: databaseUrl, max: 1, applicationName: 'sluice restore' });
  try {
    await assertEmpty(client);
    const { about, manifest } = await restoreRows(client, path, files, show);
    const isMissing = async (ref: FileRef): Promise<boolean> => (await files.size(ref)) === null;
    const forgotten =
      about.files === 'included' ? await forgetMissing(client, createDatabase(pool), isMissing) : 0;
    const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
    return { rows, files: manifest.files.count, forgotten };
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
      if (kind === 'files') return storeFile(files, checkRef(name), bytes);
      const table = tables.get(name);
      if (table === undefined) throw new DamagedFile(`it has a table ${name} that it does not describe`);
      await writer?.write(table, bytes);
    },
    progress: (read, of) => show(read / of, doing),
  });
  show(1, 'indexes');
  await (writer as DatabaseWriter | null)?.finish();
  return found;
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

/** Stores a file under its name: whole, or not at all. */
export async function storeFile(files: FileStore, ref: FileRef, bytes: AsyncIterable<Buffer>): Promise<void> {
  const writer = await files.createAs(ref);
  try {
    for await (const chunk of bytes) await writer.write(chunk);
    await writer.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}
