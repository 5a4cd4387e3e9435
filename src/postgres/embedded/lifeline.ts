import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import type { Account } from './account.ts';

const run = promisify(execFile);

/** Absolute, because programs are started with an empty environment and so without a PATH. */
const setprivPaths = ['/usr/bin/setpriv', '/bin/setpriv', '/usr/local/bin/setpriv'] as const;

/**
 * The words to put before a command line so that the kernel sends it `signal` when we die, however we die.
 * Empty where setpriv is missing or too small to do it (macOS, busybox): then see `watchOverServer`.
 * The kernel watches the thread that spawned: call this launcher from the main thread.
 */
export async function deathSignalPrefix(signal: 'INT' | 'TERM'): Promise<readonly string[]> {
  if (process.platform !== 'linux') return [];
  for (const setpriv of setprivPaths) {
    try {
      const { stdout } = await run(setpriv, ['--help'], { env: {} });
      if (stdout.includes('--pdeathsig')) return [setpriv, '--pdeathsig', signal, '--'];
    } catch {
      // Not installed there: try the next place.
    }
  }
  return [];
}

/**
 * The portable substitute: a shell that reads a pipe only we hold. The kernel closes the pipe when we die,
 * the read ends, and the shell asks the server for a fast shutdown. Returns how to call the watch off.
 */
export function watchOverServer(serverPid: number, account: Account | undefined): () => void {
  const watchdog = spawn(
    '/bin/sh',
    ['-c', 'read -r _; kill -INT "$1"', 'sluice-watchdog', String(serverPid)],
    {
      ...account,
      env: {},
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  watchdog.on('error', () => undefined);
  watchdog.unref();
  return () => watchdog.kill('SIGKILL');
}
