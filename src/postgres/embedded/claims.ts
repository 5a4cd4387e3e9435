// A data directory is used by one server at a time.
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import {
  EmbeddedPostgresError,
  hasCode,
  type Layout,
  readIfThere,
  writePrivateFile,
} from './data-directory.ts';

const run = promisify(execFile);

/** A shutdown writes at most the dirty part of shared_buffers; slow disks need a while for that. */
const shutdownDeadlineMs = 60_000;
const pollMs = 25;

/** Returns when no server runs on the data directory. Waits for one whose owner died; throws (`isInUse`) for one that is in use. */
export async function awaitPreviousServer(layout: Layout, log: Logger): Promise<void> {
  const deadline = Date.now() + shutdownDeadlineMs;
  let asked = false;
  for (;;) {
    const previous = await readPostmasterFile(layout.data);
    if (previous === undefined) return;
    const { pid } = previous;
    if (!(await isServerOf(pid, layout.data))) return disownPostmasterFile(layout.data, pid);
    const orphaned = await isOrphan(pid);
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
  const ownerPid = await readOwner(pid);
  const owner =
    ownerPid === undefined
      ? `A PostgreSQL server (process ${pid}) runs on ${layout.root} already. Stop it`
      : `sluice runs on ${layout.root} already: process ${ownerPid}. Stop that one (kill ${ownerPid})`;
  const advice = 'or give this one a folder of its own: --data-dir <folder> (DATA_DIR).';
  return new EmbeddedPostgresError(`${owner}, ${advice}`, { isInUse: true });
}

/** A setting that PostgreSQL keeps without knowing it: the process that started the server. */
export const ownerSetting = 'sluice.owner';

/** Reads from its command line which Node process started a server; undefined if none of ours did. */
async function readOwner(pid: number): Promise<number | undefined> {
  const line =
    process.platform === 'linux'
      ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      : await run('/bin/ps', ['-ww', '-o', 'command=', '-p', String(pid)]).then(
          ({ stdout }) => stdout,
          () => '',
        );
  const owner = /sluice\.owner=(\d+)/.exec(line)?.[1];
  return owner === undefined ? undefined : Number(owner);
}

/** True when the Node process that started this server is gone. False when that is not known. */
async function isOrphan(pid: number): Promise<boolean> {
  const ownerPid = await readOwner(pid);
  if (ownerPid === undefined) return false;
  if (process.platform !== 'linux') return !isAlive(ownerPid);
  // The server is its owner's child until the owner dies.
  return Number((await readStatus(pid))?.[1]) !== ownerPid;
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
  readonly port: number;
  readonly status: string;
}

/** The largest pid of Linux plus one: a process that is certainly gone. */
const impossiblePid = 4_194_305;

export async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const lines = await readLines(data);
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isInteger(pid) || pid <= 0) return undefined;
  // Lines: pid, data directory, start time, port, socket directory, address, shared memory, status.
  return { pid, port: Number(lines[3]), status: lines[7]?.trim() ?? '' };
}

/**
 * Tells whether that pid is a server on this directory, not a stranger who was given the number since
 * (after a container restarts, pids repeat almost certainly). A postmaster's working directory is its data. Root in a
 * container may be unable to see that (no CAP_SYS_PTRACE): then the name and the user of the process decide.
 */
async function isServerOf(pid: number, data: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  const own = await stat(data);
  try {
    const cwd = await stat(`/proc/${pid}/cwd`);
    return cwd.ino === own.ino && cwd.dev === own.dev;
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) return false;
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    const { uid } = await stat(`/proc/${pid}`).catch(() => ({ uid: -1 }));
    return name.trim() === 'postgres' && uid === own.uid;
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
  await writePrivateFile(join(data, 'postmaster.pid'), disowned);
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
  return (await readIfThere(join(data, 'postmaster.pid')))?.split('\n');
}
