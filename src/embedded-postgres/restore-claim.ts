/*
 * A restore fills a data directory of its own, which the service cannot use before it is complete: a mark in it names the
 * process that restores. Existing data is set aside by a rename, and comes back if the restore fails.
 */
import { chown, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { syncFolder } from '../files/disk.ts';
import {
  createPrivateFile,
  EmbeddedPostgresError,
  ensureRoot,
  hasCode,
  type Layout,
  layoutOf,
  readMajor,
} from './data-directory.ts';
import { awaitPreviousServer, isRunning, markProcess, type ProcessMark } from './previous-server.ts';

const markOf = ({ root }: Pick<Layout, 'root'>): string => join(root, 'restoring.json');

/** Returns the process that restores into the directory, or was killed while it did. */
async function readMark(layout: Layout): Promise<ProcessMark | null> {
  try {
    return JSON.parse(await readFile(markOf(layout), 'utf8')) as ProcessMark;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return null;
    throw error;
  }
}

export async function isIncomplete(layout: Layout): Promise<boolean> {
  return (await readMark(layout)) !== null;
}

/** @throws EmbeddedPostgresError if a restore into the directory has not ended. */
export async function refuseIncomplete(layout: Layout): Promise<void> {
  if (!(await isIncomplete(layout))) return;
  throw new EmbeddedPostgresError(
    `A restore into ${dirname(layout.root)} is not complete. If it does not run any more, run it again: sluice restore FILE\n` +
      `Or, to give it up, remove ${layout.root}`,
  );
}

export interface RestoreClaim {
  /** The data that was there; null if there was none. */
  readonly aside: string | null;
  /** Opens the directory to the service. */
  complete(): Promise<void>;
  /** Removes it, and brings back what was set aside. */
  undo(): Promise<void>;
}

/**
 * Makes an empty data directory that this process alone may fill; what a killed restore left is removed.
 * @throws EmbeddedPostgresError if another process restores there; DataDirInUseError if a server runs on the data.
 */
export async function claimForRestore(dataDir: string, log: Logger): Promise<RestoreClaim> {
  const layout = layoutOf(dataDir);
  const isOurs = async (): Promise<boolean> => (await readMark(layout))?.pid === process.pid;
  const owner = await readMark(layout);
  if (owner !== null && (await isRunning(owner))) throw underWay(layout, owner);
  await awaitPreviousServer(layout, log);
  const aside =
    owner === null && (await readMajor(layout)) !== undefined ? `${dataDir}.before-restore-${stamp()}` : null;
  if (aside === null) await removeTree(layout.root);
  else await rename(layout.root, aside);
  await ensureRoot(layout);
  if (process.geteuid?.() === 0) {
    // Whoever owns the folder runs the server.
    const { uid, gid } = await stat(dirname(layout.root));
    await chown(layout.root, uid, gid);
  }
  await createPrivateFile(markOf(layout), JSON.stringify(await markProcess(process.pid)));
  const first = await readMark(layout);
  if (first !== null && first.pid !== process.pid) throw underWay(layout, first);
  return {
    aside,
    async complete() {
      await rm(markOf(layout));
      await syncFolder(layout.root);
      await syncFolder(dirname(layout.root));
    },
    async undo() {
      if (!(await isOurs())) return;
      await removeTree(layout.root);
      if (aside !== null) await rename(aside, layout.root);
    },
  };
}

function underWay({ root }: Layout, { pid }: ProcessMark): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `Another restore is under way in ${dirname(root)}: process ${pid}. Run this one again when it has ended, or in another folder (--data-dir).`,
  );
}

/** Waits, because the server of a killed process may be writing its last file. */
function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
