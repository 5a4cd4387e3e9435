// Ensures that only one server uses a data directory.
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { pollUntil } from '../../base/retry.ts';
import {
  EmbeddedPostgresError,
  hasCode,
  type Layout,
  readIfThere,
  writePrivateFile,
} from './data-directory.ts';

const run = promisify(execFile);

/**
 * Maximum time of a clean ("fast") shutdown. Its checkpoint writes all changed shared_buffers,
 * which takes a while on a slow disk.
 */
export const SHUTDOWN_DEADLINE_MS = 60_000;
const pollMs = 25;

/**
 * Waits for the end of an orphaned server on this directory.
 * @throws EmbeddedPostgresError (`isInUse`) for a server that is not an orphan
 */
export async function awaitPreviousServer(layout: Layout, log: Logger): Promise<void> {
  let hasAsked = false;
  let pid = impossiblePid;
  const hasEnded = await pollUntil({ everyMs: pollMs, forMs: SHUTDOWN_DEADLINE_MS }, async () => {
    const previous = await readPostmasterFile(layout.data);
    if (previous === undefined) return true;
    pid = previous.pid;
    if (!(await isServerOf(pid, layout.data))) {
      await disownPostmasterFile(layout.data, pid);
      return true;
    }
    const isOrphaned = await isOrphan(pid);
    // A "starting" server may be an orphan that never became ready.
    const isLeaving = isOrphaned || previous.status === 'stopping' || previous.status === 'starting';
    if (!isLeaving) throw await dataDirInUse(layout, pid);
    if (!hasAsked) log.info({ pid }, 'waiting for the previous embedded Postgres to end');
    // The kernel or the watchdog usually stops an orphan. A second signal is harmless.
    if (isOrphaned && !hasAsked) askToStop(pid);
    hasAsked = true;
    return false;
  });
  if (!hasEnded) throw await dataDirInUse(layout, pid);
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

/** Setting with the pid of the process that started the server. */
export const ownerSetting = 'sluice.owner';

/** Reads the pid of the owner from the server's command line. `undefined` if not known. */
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

/** False if unknown. */
async function isOrphan(pid: number): Promise<boolean> {
  const ownerPid = await readOwner(pid);
  if (ownerPid === undefined) return false;
  if (process.platform !== 'linux') return !isAlive(ownerPid);
  // A living owner is its server's parent process. An orphan has a new parent.
  return Number((await readStatus(pid))?.[1]) !== ownerPid;
}

/** Fields of /proc/PID/stat, starting with the state. `undefined` if it cannot be read. */
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
    // The process has ended.
  }
}

/** PostgreSQL's lock file. */
interface PostmasterFile {
  readonly pid: number;
  readonly port: number;
  readonly status: string;
}

/** A number above the highest pid of Linux, so that no process has it. */
const impossiblePid = 4_194_305;

export async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const lines = await readLines(data);
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isInteger(pid) || pid <= 0) return undefined;
  // Lines of the file: pid, data directory, start time, port, socket directory, address, shared
  // memory, status.
  return { pid, port: Number(lines[3]), status: lines[7]?.trim() ?? '' };
}

/**
 * After a container's restart, another program may have the pid. A server's working directory is
 * its data directory. Root without CAP_SYS_PTRACE cannot read it, so name and user are compared.
 */
async function isServerOf(pid: number, data: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return true;
  const dataStats = await stat(data);
  try {
    const cwd = await stat(`/proc/${pid}/cwd`);
    return cwd.ino === dataStats.ino && cwd.dev === dataStats.dev;
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) return false;
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    const { uid } = await stat(`/proc/${pid}`).catch(() => ({ uid: -1 }));
    return name.trim() === 'postgres' && uid === dataStats.uid;
  }
}

/**
 * Replaces the pid of another program by a pid that no process has. The file must stay, because
 * PostgreSQL needs it to find the shared memory of a killed server. Child processes may still use
 * that memory. Does nothing if no process has the pid, or if the file now has another pid.
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
