import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { DataDirInUseError } from './errors.ts';
import type { Layout } from './layout.ts';
import { disownPostmasterFile, isAlive, isServerOf, readPostmasterFile } from './postmaster-file.ts';
import { readServerFile } from './server-file.ts';

/** A shutdown writes at most the dirty part of shared_buffers; slow disks need a while for that. */
const shutdownDeadlineMs = 60_000;
const pollMs = 25;

/**
 * Returns when no server runs on the data directory any more. One whose owner died is on its way out
 * and is waited for; one that somebody uses is left alone: DataDirInUseError.
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

export async function dataDirInUse(layout: Layout, pid: number): Promise<DataDirInUseError> {
  const server = await readServerFile(layout);
  const ownerPid = server?.pid === pid ? server.ownerPid : undefined;
  return new DataDirInUseError(layout.root, { pid, ownerPid });
}

/** True when the Node process that started this server is gone. False when that is not known. */
async function isOrphan(pid: number, layout: Layout): Promise<boolean> {
  const server = await readServerFile(layout);
  if (server?.pid !== pid) return false;
  if (process.platform !== 'linux') return !isAlive(server.ownerPid);
  try {
    // proc(5): "pid (name) state ppid …". The server is its owner's child until the owner dies.
    const status = await readFile(`/proc/${pid}/stat`, 'utf8');
    return Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]) !== server.ownerPid;
  } catch {
    return true;
  }
}

function askToStop(pid: number): void {
  try {
    process.kill(pid, 'SIGINT');
  } catch {
    // It has just ended.
  }
}
