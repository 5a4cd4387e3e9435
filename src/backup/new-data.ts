// New data of the embedded server is made beside the data that is there, and takes its place when it is complete: for a restore,
// and for data of another major version of PostgreSQL.
import { join } from 'node:path';
import type { Logger } from 'pino';
import { Fault, FinalFailure, TransientError } from '../domain/errors.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { isFull, readDisk } from '../files/disk.ts';
import type { FileStore } from '../files/file-store.ts';
import { connectForCopy, readDatabase } from '../postgres/database-copy/read-database.ts';
import { copyDatabase } from '../postgres/database-copy/write-database.ts';
import { isDiskFull, isTransient } from '../postgres/sqlstate.ts';
import { type Restored, restoreBackup } from './restore.ts';

type Show = (share: number | null, doing: string) => void;

interface NewData {
  /** DATA_DIR */
  readonly dataDir: string;
  readonly log: Logger;
}

/** Rows come in once, and indexes are built; nothing else runs. */
const bulkSettings = { autovacuum: 'off', maintenance_work_mem: '256MB', checkpoint_timeout: '1h' };

/** `aside` is where the data went whose place was taken. */
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
    // A server that has no room for its log ends, and the error says no more than that it is gone.
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
  /** Sets existing data aside, and keeps it. */
  readonly replace: boolean;
}

/** @throws FinalFailure, or DataDirInUseError, if a backup may not become the embedded database. */
export async function assertRestorable({ dataDir, log, replace }: RestoreTarget): Promise<void> {
  const data = join(dataDir, 'postgres');
  if (!(await embeddedPostgres.hasData(data))) return;
  if (!replace)
    throw new FinalFailure(
      'restore_refused',
      `There is a database in ${dataDir} already, and nothing is restored over it. Restore into another folder\n(--data-dir <folder>), or with --replace: then the one that is there is set aside, and kept.`,
    );
  await embeddedPostgres.awaitUnused(data, log);
}

/**
 * Makes a backup the embedded database.
 * @throws FinalFailure, DamagedFile
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

/** Major versions of PostgreSQL: the one that made the data, and the one that is installed. */
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

/** Returns the folder into which `npm install --prefix` puts the PostgreSQL that made the data. */
export function previousFolder(dataDir: string, major: string): string {
  return join(dataDir, `postgresql-${major}`);
}

/** Copies data of another major version into a new data directory, with the programs of the old one. */
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
    return copyBetween(old.url, url, show).finally(() => old.stop());
  });
}

/** Copies one database into another that is empty, and returns the number of rows. */
async function copyBetween(from: string, to: string, show: Show): Promise<{ readonly rows: number }> {
  const source = await readDatabase(from);
  const target = await connectForCopy(to);
  try {
    const tables = await copyDatabase(source, target, { show: ({ name }) => show(null, name) });
    return { rows: tables.reduce((sum, { rows }) => sum + rows, 0) };
  } finally {
    await target.end();
    await source.close();
  }
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
