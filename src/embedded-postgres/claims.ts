// A data directory is used by one at a time: the server that runs on it, or a restore that fills it.
import { chown, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { syncFolder } from '../files/disk.ts';
import {
  createPrivateFile,
  EmbeddedPostgresError,
  ensureRoot,
  exists,
  hasCode,
  type Layout,
  layoutOf,
  readIfThere,
  readMajor,
  readServerFile,
  removeTree,
  replacePrivateFile,
} from './data-directory.ts';

/** A shutdown writes at most the dirty part of shared_buffers; slow disks need a while for that. */
const shutdownDeadlineMs = 60_000;
const pollMs = 25;

/**
 * Returns when no server runs on the data directory any more. One whose owner died is on its way out
 * and is waited for; one that somebody uses is left alone, and the error says so (`isInUse`).
 */
export async function awaitPreviousServer(layout: Layout, log: Logger): Promise<void> {
  const deadline = Date.now() + shutdownDeadlineMs;
  let asked = false;
  for (;;) {
    const previous = await readPostmasterFile(layout.data);
    if (previous === undefined) return;
    const { pid } = previous;
    if (!(await isServerOf(pid, layout.data))) return disownPostmasterFile(layout.data, pid);
    const orphaned = await isOrphan(pid, layout);
    // "starting" may be the last breath of a server that was orphaned before it became ready.
    const leaving = orphaned || previous.status === 'stopping' || previous.status === 'starting';
    if (!leaving || Date.now() > deadline) throw await dataDirInUse(layout, pid);
    if (!asked) log.info({ pid }, 'waiting for the previous embedded Postgres to end');
    // Normally the kernel or the watchdog has asked already; asking twice does no harm.
    if (orphaned && !asked) askToStop(pid);
    asked = true;
    await delay(pollMs);
  }
}

export async function dataDirInUse(layout: Layout, pid: number): Promise<EmbeddedPostgresError> {
  const server = await readServerFile(layout);
  // The process that started the server, if that is known.
  const ownerPid = server?.pid === pid ? server.ownerPid : undefined;
  const owner =
    ownerPid === undefined
      ? `A PostgreSQL server (process ${pid}) runs on ${layout.root} already. Stop it`
      : `sluice runs on ${layout.root} already: process ${ownerPid}. Stop that one (kill ${ownerPid})`;
  const advice = 'or give this one a folder of its own: --data-dir <folder> (DATA_DIR).';
  return new EmbeddedPostgresError(`${owner}, ${advice}`, { isInUse: true });
}

/** True when the Node process that started this server is gone. False when that is not known. */
async function isOrphan(pid: number, layout: Layout): Promise<boolean> {
  const server = await readServerFile(layout);
  if (server?.pid !== pid) return false;
  if (process.platform !== 'linux') return !isAlive(server.ownerPid);
  // The server is its owner's child until the owner dies.
  return Number((await readStatus(pid))?.[1]) !== server.ownerPid;
}

/** proc(5): "pid (name) state ppid …", from the state on. Undefined where there is no such process, or no /proc. */
async function readStatus(pid: number): Promise<readonly string[] | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/stat`, 'utf8');
    return status.slice(status.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** A process, told from a later one that was given its number where the system says when it was started. */
interface ProcessMark {
  readonly pid: number;
  /** In the clock of the system; null where that is not known. */
  readonly startedAt: string | null;
}

async function markProcess(pid: number): Promise<ProcessMark> {
  return { pid, startedAt: (await readStatus(pid))?.[19] ?? null };
}

async function isRunning({ pid, startedAt }: ProcessMark): Promise<boolean> {
  return isAlive(pid) && (startedAt === null || (await markProcess(pid)).startedAt === startedAt);
}

function askToStop(pid: number): void {
  try {
    process.kill(pid, 'SIGINT');
  } catch {
    // It has just ended.
  }
}

/** Postgres' own lock on its data directory, `postmaster.pid`. */
interface PostmasterFile {
  readonly pid: number;
  readonly status: string;
}

/** The largest pid of Linux plus one: a process that is certainly gone. */
const impossiblePid = 4_194_305;

export async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const lines = await readLines(data);
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isInteger(pid) || pid <= 0) return undefined;
  // Lines: pid, data directory, start time, port, socket directory, address, shared memory, status.
  return { pid, status: lines[7]?.trim() ?? '' };
}

/**
 * Tells whether that pid is a server on this directory, not a stranger who was given the number since
 * (after a container restarts, pids repeat almost certainly). A postmaster's working directory is its data.
 */
async function isServerOf(pid: number, data: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    const [cwd, own] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(data)]);
    return cwd.ino === own.ino && cwd.dev === own.dev;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return false;
    if (hasCode(error, 'EACCES', 'EPERM')) return looksLikeServerOf(pid, data);
    throw error;
  }
}

/** Judges by what everybody may see of a process. Root in a container may not see more (no CAP_SYS_PTRACE). */
async function looksLikeServerOf(pid: number, data: string): Promise<boolean> {
  try {
    const [name, process, own] = await Promise.all([
      readFile(`/proc/${pid}/comm`, 'utf8'),
      stat(`/proc/${pid}`),
      stat(data),
    ]);
    return name.trim() === 'postgres' && process.uid === own.uid;
  } catch {
    return false;
  }
}

/**
 * Tells Postgres that this pid in its lock file is no server. The file is not removed: it also names the shared
 * memory, by which Postgres itself makes sure that no child of a killed server is still writing.
 * A pid that is gone needs no telling, and a lock that was taken since is left alone.
 */
async function disownPostmasterFile(data: string, pid: number): Promise<void> {
  if (!isAlive(pid)) return;
  const lines = await readLines(data);
  if (lines === undefined || Number(lines[0]) !== pid) return;
  const disowned = [String(impossiblePid), ...lines.slice(1)].join('\n');
  await replacePrivateFile(join(data, 'postmaster.pid'), disowned);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

async function readLines(data: string): Promise<readonly string[] | undefined> {
  return (await readIfThere(join(data, 'postmaster.pid'), ['ENOENT']))?.split('\n');
}

/*
 * A restore fills a data directory that the service cannot use before it is complete: a mark beside the directory names the
 * process that restores, and where existing data is set aside. If the restore fails, that data comes back.
 */

interface Mark extends ProcessMark {
  /** The folder into which existing data is moved; null if there is none. The mark is written before the data is moved. */
  readonly aside: string | null;
}

const markOf = ({ root }: Pick<Layout, 'root'>): string => `${root}.restoring.json`;

/** Returns the mark of the process that restores into the directory, or was killed while it did. */
async function readMark(layout: Layout): Promise<Mark | null> {
  const text = await readIfThere(markOf(layout), ['ENOENT', 'ENOTDIR', 'EACCES']);
  return text === undefined ? null : (JSON.parse(text) as Mark);
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
 * @throws EmbeddedPostgresError if another process restores there, or a server runs on the data.
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

function underWay({ root }: Layout, mark: Mark | null): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `Another restore is under way in ${dirname(root)}: process ${mark?.pid}. Run this one again when it has ended, or in another folder (--data-dir).`,
  );
}

function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
}
