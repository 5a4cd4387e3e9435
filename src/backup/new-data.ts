// What becomes the data of the embedded server is made beside the data that is there, and takes its place when it is whole:
// a backup that is restored, and data that another major version of PostgreSQL made.
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import { connectForCopy, readDatabase } from '../database-copy/read-database.ts';
import { copyIn, finishTables, prepareTables } from '../database-copy/write-database.ts';
import { Fault } from '../domain/errors.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import type { FileStore } from '../files/file-store.ts';
import { migrate } from '../postgres/migrate.ts';
import { type Restored, RestoreRefused, restoreBackup } from './restore.ts';

type Show = (share: number | null, doing: string) => void;

interface NewData {
  /** DATA_DIR */
  readonly dataDir: string;
  readonly log: Logger;
}

/** For a server that has one thing to do: rows come in once, and indexes are built. */
const bulkSettings = { autovacuum: 'off', maintenance_work_mem: '256MB', checkpoint_timeout: '1h' };

/** Fills a new data directory; nothing is left of it if that fails. The server has ended when it returns. */
async function fillStaging<T>({ dataDir, log }: NewData, fill: (url: string) => Promise<T>): Promise<T> {
  const data = join(dataDir, 'postgres');
  const staging = await embeddedPostgres.makeStaging(data, log);
  try {
    const server = await embeddedPostgres.start({ dataDir: staging, log, settings: bulkSettings });
    try {
      return await fill(server.url);
    } finally {
      await server.stop();
    }
  } catch (error) {
    await embeddedPostgres.removeStaging(data, log).catch(() => undefined);
    throw error;
  }
}

/** Where data goes that something else takes the place of. */
export type SetAside = { readonly aside: string | null };

/**
 * A backup becomes the embedded database. Data that is there is refused, unless it is to be set aside.
 * @throws RestoreRefused, DamagedArchive
 */
export async function restoreData(
  target: NewData & { readonly files: FileStore; readonly replace: boolean },
  path: string,
  show: Show,
): Promise<Restored & SetAside> {
  const data = join(target.dataDir, 'postgres');
  if (!target.replace && (await embeddedPostgres.hasData(data))) {
    throw new RestoreRefused(
      `There is a database in ${target.dataDir} already, and nothing is restored over it. Restore into another folder\n(--data-dir <folder>), or with --replace: then the one that is there is set aside, and kept.`,
    );
  }
  const restored = await fillStaging(target, (url) =>
    restoreBackup(path, { databaseUrl: url, files: target.files }, show),
  );
  return {
    ...restored,
    aside: await embeddedPostgres.installStaging(data, target.log, `before-restore-${stamp()}`),
  };
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
  const old = await embeddedPostgres.start({ dataDir: data, log, native });
  let rows: number;
  try {
    rows = await fillStaging(target, (url) => copyDatabase(old.url, url, show));
  } finally {
    await old.stop();
  }
  const aside = await embeddedPostgres.installStaging(data, log, `${majors.data}-before-${stamp()}`);
  return { rows, aside };
}

/** All rows of one database into another that is empty, in one transaction; how many. */
async function copyDatabase(from: string, to: string, show: Show): Promise<number> {
  const source = await readDatabase(from);
  const client = await connectForCopy(to);
  let rows = 0;
  try {
    await client.query('begin');
    await prepareTables(client, source.shape);
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
    await finishTables(client, source.shape);
    await client.query('commit');
    await migrate(client);
    await client.query('analyze');
    return rows;
  } finally {
    await client.end();
    await source.close();
  }
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
