/*
 * A restore fills a data directory that the service cannot use before it is complete: a mark beside the directory names the
 * process that restores, and where existing data is set aside. If the restore fails, that data comes back.
 */
import { chown, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
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

interface Mark extends ProcessMark {
  /** The folder into which existing data is moved; null if there is none. The mark is written before the data is moved. */
  readonly aside: string | null;
}

const markOf = ({ root }: Pick<Layout, 'root'>): string => `${root}.restoring.json`;

/** Returns the mark of the process that restores into the directory, or was killed while it did. */
async function readMark(layout: Layout): Promise<Mark | null> {
  try {
    return JSON.parse(await readFile(markOf(layout), 'utf8')) as Mark;
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
  const mark = await readMark(layout);
  if (mark === null) return;
  const isAside = mark.aside !== null && (await exists(mark.aside));
  const wayBack = isAside ? `, rename ${mark.aside} to ${layout.root}` : '';
  const unused = mark.aside !== null && !isAside ? '' : `remove ${layout.root}${wayBack}, then `;
  throw new EmbeddedPostgresError(
    `A restore into ${dirname(layout.root)} is not complete. If it does not run any more, run it again: sluice restore FILE\n` +
      `Or, to give it up, ${unused}remove ${markOf(layout)}`,
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
 * Makes an empty data directory that this process alone may fill; what a killed restore left is removed, and what it set aside
 * is kept.
 * @throws EmbeddedPostgresError if another process restores there; DataDirInUseError if a server runs on the data.
 */
export async function claimForRestore(dataDir: string, log: Logger): Promise<RestoreClaim> {
  const layout = layoutOf(dataDir);
  const earlier = await readMark(layout);
  if (earlier !== null && (await isRunning(earlier))) throw underWay(layout, earlier);
  await awaitPreviousServer(layout, log);
  const aside = earlier === null ? await placeAside(layout) : earlier.aside;
  await ensureRoot(layout);
  // Only the mark of a killed restore: another restore may have claimed the directory since it was read.
  if (earlier !== null) await rm(markOf(layout), { force: true });
  await createPrivateFile(markOf(layout), JSON.stringify({ ...(await markProcess(process.pid)), aside }));
  const first = await readMark(layout);
  if (first?.pid !== process.pid) throw underWay(layout, first);
  await syncFolder(dirname(layout.root));
  if (aside !== null && !(await exists(aside))) await rename(layout.root, aside);
  else await removeTree(layout.root);
  await ensureRoot(layout);
  if (process.geteuid?.() === 0) {
    // Whoever owns the folder runs the server.
    const { uid, gid } = await stat(dirname(layout.root));
    await chown(layout.root, uid, gid);
  }
  const end = async (): Promise<void> => {
    await syncFolder(dirname(layout.root));
    await rm(markOf(layout));
    await syncFolder(dirname(layout.root));
  };
  return {
    aside,
    async complete() {
      await syncFolder(layout.root);
      await end();
    },
    async undo() {
      if ((await readMark(layout))?.pid !== process.pid) return;
      await removeTree(layout.root);
      if (aside !== null) await rename(aside, layout.root);
      await end();
    },
  };
}

async function placeAside(layout: Layout): Promise<string | null> {
  return (await readMajor(layout)) === undefined ? null : `${layout.root}.before-restore-${stamp()}`;
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function underWay({ root }: Layout, mark: Mark | null): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `Another restore is under way in ${dirname(root)}: process ${mark?.pid}. Run this one again when it has ended, or in another folder (--data-dir).`,
  );
}

/** Waits, because the server of a killed process may be writing its last file. */
function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
