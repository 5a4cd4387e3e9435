import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedPostgresError, hasCode } from './errors.ts';
import { type Layout, layoutOf } from './layout.ts';

/** Whether a data directory exists. Throws when it was made by another major version, or is not Postgres'. */
export async function hasUsableData(layout: Layout, major: string): Promise<boolean> {
  const found = await readMajor(layout);
  if (found === major) return true;
  if (found === undefined) return false;
  throw new EmbeddedPostgresError(
    `The data in ${layout.data} was made by PostgreSQL ${found}; this version of sluice brings PostgreSQL ${major}, ` +
      'which cannot read it. Dump it with the version of sluice that made it and load the dump into a fresh DATA_DIR, ' +
      `or set DATABASE_URL to a PostgreSQL ${found} server on that data.`,
  );
}

/** Whether a server was ever started on it, by whatever version. */
export async function hasData(dataDir: string): Promise<boolean> {
  return (await readMajor(layoutOf(dataDir))) !== undefined;
}

async function readMajor(layout: Pick<Layout, 'data'>): Promise<string | undefined> {
  try {
    return (await readFile(join(layout.data, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error;
  }
  const names = await readdir(layout.data).catch(() => []);
  if (names.length === 0) return undefined;
  throw new EmbeddedPostgresError(
    `${layout.data} is no Postgres data directory, but not empty either. Move it away or choose another DATA_DIR.`,
  );
}
