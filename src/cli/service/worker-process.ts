/** Worker processes seen from within: the parent that one has, and the process that it starts for one task. */
import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import type { RunAlone } from '../../tasks/reconcile.ts';
import type { ProcessEnv } from '../settings.ts';
import type { StopRequest } from './stop-signals.ts';

/** The time of a worker whose parent has vanished; the embedded database has gone with it. */
const orphanMs = 3_000;

/** Returns true if another process of ours started this one, even if it is gone. */
export function isForked(): boolean {
  return process.connected !== undefined;
}

/**
 * Stops this process when the one that forked it is gone: the kernel closes the IPC channel then, even after
 * kill -9. What was under way is given back, or found by its lease.
 */
export function followParent(stop: StopRequest, log: Logger): void {
  if (!isForked()) return;
  const leave = (): void => {
    if (stop.signal.aborted) return;
    log.warn('the parent process is gone: stopping');
    stop.request();
    setTimeout(() => process.exit(1), orphanMs).unref();
  };
  process.once('disconnect', leave);
  // It may have gone while our modules were being loaded: the event has passed then.
  if (process.connected === false) leave();
}

/** Does a task in a process of its own: `sluice work --only`. */
export function runInProcess(entry: string, processEnv: ProcessEnv, log: Logger): RunAlone {
  return async (suspect, { stopping, deadline }) => {
    log.warn({ task: suspect }, 'a task that lost its worker before is done in a process of its own');
    const child = fork(entry, ['work', '--only', `${suspect.kind}:${suspect.taskId}`], {
      env: { ...processEnv },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const stop = (): void => void child.kill('SIGTERM');
    const kill = (): void => void child.kill('SIGKILL');
    stopping.addEventListener('abort', stop);
    deadline.addEventListener('abort', kill);
    const ending = await ended(child);
    stopping.removeEventListener('abort', stop);
    deadline.removeEventListener('abort', kill);
    if (ending !== null) log.warn({ task: suspect, ending }, 'the process of the task ended before it did');
  };
}

/** Returns null if the child ended by itself, and well. */
function ended(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(code === 0 ? null : (signal ?? `exit code ${code}`)));
    child.on('error', (error) => {
      // Also reported when a signal could not be sent: only a process that never was has ended by it.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}
