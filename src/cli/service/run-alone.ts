import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import type { RunAlone } from '../../background-jobs/suspects.ts';
import type { Suspect } from '../../postgres/ledger/next-tasks.ts';
import type { Environment } from '../environment.ts';

/** Does a task in a process of its own: `sluice work --only`. */
export function runInProcess(entry: string, environment: Environment, log: Logger): RunAlone {
  return async (suspect, { stopping, hurry }) => {
    log.warn({ task: suspect }, 'a task that lost its worker before is done in a process of its own');
    const child = fork(entry, ['work', '--only', JSON.stringify(suspect)], {
      env: { ...environment },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const stop = (): void => void child.kill('SIGTERM');
    const kill = (): void => void child.kill('SIGKILL');
    stopping.addEventListener('abort', stop);
    hurry.addEventListener('abort', kill);
    const ending = await ended(child);
    stopping.removeEventListener('abort', stop);
    hurry.removeEventListener('abort', kill);
    if (ending !== null) log.warn({ task: suspect, ending }, 'the process of the task ended before it did');
  };
}

/** Null: of itself, and well. */
function ended(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(code === 0 ? null : (signal ?? `exit code ${code}`)));
    child.on('error', (error) => {
      // Also reported when a signal could not be sent: only a process that never was has ended by it.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

/** @throws Error if it is none. */
export function readSuspect(text: string): Suspect {
  const { kind, id, chunkNo } = JSON.parse(text) as Suspect;
  if (kind === 'chunk' && Number.isInteger(chunkNo)) return { kind, id, chunkNo };
  if (kind === 'finish' || kind === 'deletion' || kind === 'export') return { kind, id, chunkNo: null };
  throw new Error(`no task: ${text}`);
}
