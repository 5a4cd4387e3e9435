// That the data of a directory was moved to another server is written down there, so that nobody goes on with what has
// become a copy.
import { readFile, rm } from 'node:fs/promises';
import { syncFolder } from '../files/disk.ts';
import { EmbeddedPostgresError, hasCode, layoutOf, replacePrivateFile } from './data-directory.ts';

export interface MovedMark {
  readonly movedAt: string;
  /** The database that has the data now; without a password. */
  readonly to: string;
  /** To start with from then on: by the name of each setting, without passwords. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Durable when it returns. */
export async function markMoved(dataDir: string, mark: MovedMark): Promise<void> {
  await replacePrivateFile(layoutOf(dataDir).movedMark, `${JSON.stringify(mark, null, 2)}\n`);
  await syncFolder(dataDir);
}

/** Null: it was not moved. */
export async function readMovedMark(dataDir: string): Promise<MovedMark | null> {
  try {
    return JSON.parse(await readFile(layoutOf(dataDir).movedMark, 'utf8')) as MovedMark;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
}

/** The way back. */
export async function removeMovedMark(dataDir: string): Promise<void> {
  await rm(layoutOf(dataDir).movedMark, { force: true });
}

/** @throws EmbeddedPostgresError if the data was moved. */
export async function refuseMoved(dataDir: string): Promise<void> {
  const mark = await readMovedMark(dataDir);
  if (mark === null) return;
  throw new EmbeddedPostgresError(
    `The data of ${dataDir} was moved to ${mark.to} (${mark.movedAt}): set DATABASE_URL to that database.\n` +
      'What is here is as it was then. To go back to it, without what came since: sluice move --undo',
  );
}
