import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replacePrivateFile } from './durable-file.ts';
import { hasCode } from './errors.ts';

/** Postgres' own lock on its data directory, `postmaster.pid`. */
export interface PostmasterFile {
  readonly pid: number;
  readonly port: number | undefined;
  readonly status: string;
}

/** One above the largest pid Linux can give out: a process that is certainly gone. */
const impossiblePid = 4_194_305;

export async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const lines = await readLines(data);
  const pid = Number(lines?.[0]);
  if (lines === undefined || !Number.isInteger(pid) || pid <= 0) return undefined;
  // Lines: pid, data directory, start time, port, socket directory, address, shared memory, status.
  return { pid, port: Number(lines[3]) || undefined, status: lines[7]?.trim() ?? '' };
}

/**
 * Whether that pid is a server on this directory, not a stranger who was given the number since
 * (after a container restarts, pids repeat almost certainly). A postmaster's working directory is its data.
 */
export async function isServerOf(pid: number, data: string): Promise<boolean> {
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

/** What everybody may see of a process. Root in a container may not see more (no CAP_SYS_PTRACE). */
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
export async function disownPostmasterFile(data: string, pid: number): Promise<void> {
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
  try {
    return (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
