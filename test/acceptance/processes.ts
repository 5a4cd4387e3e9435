import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { waitFor } from '../support/wait-for.ts';

const run = promisify(execFile);

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/**
 * Returns all processes except zombies, which remain forever in a container without an init
 * process.
 */
async function listProcesses(): Promise<Process[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=,stat=,args=']);
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, stat, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined || stat?.startsWith('Z') !== false) return [];
    return [{ pid: Number(pid), parent: Number(parent), command: command ?? '' }];
  });
}

/**
 * Returns all descendants of a process: its workers, the database server, and the server's child
 * processes.
 */
export async function descendants(pid: number): Promise<Process[]> {
  const all = await listProcesses();
  const below = (parent: number): Process[] =>
    all.filter((each) => each.parent === parent).flatMap((each) => [each, ...below(each.pid)]);
  return below(pid);
}

export async function workersOf(pid: number): Promise<Process[]> {
  return (await descendants(pid)).filter(({ parent, command }) => parent === pid && / work$/.test(command));
}

export async function serverOf(pid: number): Promise<Process | undefined> {
  return (await descendants(pid)).find(
    ({ parent, command }) => parent === pid && command.includes('postgres'),
  );
}

export async function awaitGone(processes: readonly Process[], timeoutMs = 10_000): Promise<void> {
  const pids = new Set(processes.map(({ pid }) => pid));
  await waitFor(
    `${pids.size} processes to end`,
    async () => {
      const remaining = (await listProcesses()).filter(({ pid }) => pids.has(pid));
      if (remaining.length > 0)
        throw new Error(remaining.map(({ pid, command }) => `${pid} ${command}`).join('\n'));
      return true;
    },
    { timeoutMs },
  );
}
