import { readdir, readFile } from 'node:fs/promises';
import { connectTo } from './connect.ts';

/**
 * Freezes all processes of a server, as if its machine hung: connections stay open, but nothing
 * responds. Returns a function that resumes the server. Linux only.
 */
export async function freezePostgres(url: string): Promise<() => void> {
  const pids = await processesOf(url);
  signalAll(pids, 'SIGSTOP');
  return () => signalAll(pids, 'SIGCONT');
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // A listed process, such as the session that made the list, may have ended in the meantime.
    }
  }
}

async function processesOf(url: string): Promise<number[]> {
  return connectTo(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const postmaster = await parentOf(rows[0]?.pid ?? 0);
    if (postmaster === null) throw new Error('the server cannot be found in /proc');
    return [postmaster, ...(await childrenOf(postmaster))];
  });
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(pids.map(parentOf));
  return pids.filter((_pid, at) => parents[at] === parent);
}

async function parentOf(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  if (status === null) return null;
  // The program name in parentheses may contain any character, so the last `)` ends it.
  return Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]);
}
