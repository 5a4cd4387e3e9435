// What becomes the data of the embedded server is made beside the data that is there, and takes its place when it is whole:
// a backup that is restored, and data that another major version of PostgreSQL made.
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import { connectForCopy, readDatabase } from '../database-copy/read-database.ts';
import {
  copyIn,
  dropIndexes,
  finishTables,
  makeIndexes,
  prepareTables,
} from '../database-copy/write-database.ts';
import { Fault, TransientError } from '../domain/errors.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { isFull, readDisk } from '../files/disk.ts';
import type { FileStore } from '../files/file-store.ts';
import { migrate } from '../postgres/migrate.ts';
import { isDiskFull, isTransient } from '../postgres/sqlstate.ts';
import { type Restored, RestoreRefused, restoreBackup } from './restore.ts';

type Show = (share: number | null, doing: string) => void;

interface NewData {
  /** DATA_DIR */
  readonly dataDir: string;
  readonly log: Logger;
}

/** For a server that has one thing to do: rows come in once, and indexes are built. */
const bulkSettings = { autovacuum: 'off', maintenance_work_mem: '256MB', checkpoint_timeout: '1h' };

/** Where data goes that something else takes the place of. */
export type SetAside = { readonly aside: string | null };

/**
 * Fills a new data directory, which becomes the one of the service; nothing is left of it if that fails.
 * @throws TransientError if the disk is full.
 */
async function replaceData<T>(
  { dataDir, log }: NewData,
  suffix: string,
  fill: (url: string) => Promise<T>,
): Promise<T & SetAside> {
  const data = join(dataDir, 'postgres');
  const staging = await embeddedPostgres.makeStaging(data, log);
  let filled: T;
  try {
    const server = await embeddedPostgres.start({ dataDir: staging, log, settings: bulkSettings });
    try {
      filled = await fill(server.url);
    } finally {
      await server.stop();
    }
  } catch (error) {
    // A server that has no room for its log ends; then all that can be told of the error is that the server is gone.
    const isFullDisk = isDiskFull(error) || (await readDisk(dataDir).then(isFull, () => false));
    await embeddedPostgres.removeStaging(data, log).catch(() => undefined);
    if (!isFullDisk || !(isTransient(error) || embeddedPostgres.isRefusal(error))) throw error;
    throw new TransientError(
      `The disk of ${dataDir} is full; the database that is not complete was removed. Make room and run it again, or choose another folder (--data-dir).`,
      { cause: error },
    );
  }
  return { ...filled, aside: await embeddedPostgres.installStaging(data, log, `${suffix}-${stamp()}`) };
}

interface RestoreTarget extends NewData {
  /** Data that is there is set aside, and kept. */
  readonly replace: boolean;
}

/** @throws RestoreRefused, or DataDirInUseError, if a backup may not become the embedded database. */
export async function assertRestorable({ dataDir, log, replace }: RestoreTarget): Promise<void> {
  const data = join(dataDir, 'postgres');
  if (!(await embeddedPostgres.hasData(data))) return;
  if (!replace)
    throw new RestoreRefused(
      `There is a database in ${dataDir} already, and nothing is restored over it. Restore into another folder\n(--data-dir <folder>), or with --replace: then the one that is there is set aside, and kept.`,
    );
  await embeddedPostgres.awaitUnused(data, log);
}

/**
 * A backup becomes the embedded database.
 * @throws RestoreRefused, DamagedArchive
 */
export async function restoreData(
  target: RestoreTarget & { readonly files: FileStore },
  path: string,
  show: Show,
): Promise<Restored & SetAside> {
  await assertRestorable(target);
  return replaceData(target, 'before-restore', (url) =>
    restoreBackup(path, { databaseUrl: url, files: target.files }, show),
  );
}

/** The major version of PostgreSQL that made the data, and the one that is installed. */
export interface Majors {
  /** Undefined: there is no data. */
  readonly data: string | undefined;
  readonly installed: string;
}

export async function readMajors(dataDir: string): Promise<Majors> {
  const data = join(dataDir, 'postgres');
  return {
    data: await embeddedPostgres.readMajor(data),
    installed: await embeddedPostgres.installedMajor(),
  };
}

/** Where `npm install --prefix` puts the PostgreSQL that made the data. */
export function previousFolder(dataDir: string, major: string): string {
  return join(dataDir, `postgresql-${major}`);
}

/** Data of another major version becomes data of the one that is installed, with the programs of the old one. */
export async function upgradeData(
  target: NewData & { readonly programs: string; readonly majors: Majors },
  show: Show,
): Promise<{ readonly rows: number } & SetAside> {
  const { dataDir, log, programs, majors } = target;
  const data = join(dataDir, 'postgres');
  const native = await embeddedPostgres.findPackage(programs);
  if (native === undefined) throw new Fault(`there is no package in ${programs}`);
  return replaceData(target, `${majors.data}-before`, async (url) => {
    const old = await embeddedPostgres.start({ dataDir: data, log, native });
    return copyDatabase(old.url, url, show).finally(() => old.stop());
  });
}

/** All rows of one database into another that is empty, in one transaction; how many. */
async function copyDatabase(from: string, to: string, show: Show): Promise<{ rows: number }> {
  const source = await readDatabase(from);
  const client = await connectForCopy(to);
  let rows = 0;
  try {
    await client.query('begin');
    await prepareTables(client, source.shape);
    const indexes = await dropIndexes(client, source.shape);
    for (const table of source.shape.tables) {
      show(null, table.name);
      const into = copyIn(client, table, { frozen: true });
      await pipeline(source.copyOut(table), into);
      rows += into.rowCount;
      const { rows: counted } = await source.client.query<{ there: number }>(
        `select count(*)::float8 as there from sluice.${source.client.escapeIdentifier(table.name)}`,
      );
      if (counted[0]?.there !== into.rowCount) throw new Fault(`not all rows of ${table.name} were copied`);
    }
    show(null, 'indexes');
    await makeIndexes(client, indexes);
    await finishTables(client, source.shape);
    await client.query('commit');
    await migrate(client);
    await client.query('analyze');
    return { rows };
  } finally {
    await client.end();
    await source.close();
  }
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
