import type pg from 'pg';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import { awaitReaders, findReplaced, forgetArchive } from '../postgres/retention/archives.ts';
import { isLockTimeout } from '../postgres/sqlstate.ts';

/** Removes archives that were replaced, if no export reads them any more; else the next sweep does. Returns how many. */
export async function removeReplaced({
  pool,
  db,
  files,
}: {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
}): Promise<number> {
  const replaced = await findReplaced(db);
  if (replaced.length === 0) return 0;
  try {
    await awaitReaders(pool);
  } catch (error) {
    if (isLockTimeout(error)) return 0;
    throw error;
  }
  for (const folder of replaced) {
    await files.removeFolder(folder);
    await forgetArchive(db, folder);
  }
  return replaced.length;
}
