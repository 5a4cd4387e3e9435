import { spawn } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import type { Account } from './account.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { deathSignalPrefix, watchOverServer } from './lifeline.ts';
import { cleanEnvironment, dataArgument } from './run-program.ts';

/** The postmaster as a child of ours. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves with how it ended ("exit code 1", "signal SIGKILL"); never rejects. */
  readonly exited: Promise<string>;
  hasExited(): boolean;
  kill(signal: NodeJS.Signals): void;
}

export interface SpawnOptions {
  readonly postgres: string;
  readonly data: string;
  readonly account: Account | undefined;
  readonly settings: Readonly<Record<string, string>>;
  readonly logFile: FileHandle;
}

/**
 * Starts the postmaster, tied to our life but not to our terminal: a session of its own (detached), because
 * Ctrl-C reaches every process of the terminal's group, and the database must outlast the work that stops first.
 * On Windows a detached child would survive us; there a hidden console keeps Ctrl-C away instead.
 */
export async function spawnServer(options: SpawnOptions): Promise<ServerProcess> {
  const prefix = await deathSignalPrefix('INT');
  const settings = Object.entries(options.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const args = ['-D', dataArgument(options.account, options.data), ...settings];
  const [file = options.postgres, ...rest] = [...prefix, options.postgres, ...args];
  const child = spawn(file, rest, {
    ...options.account,
    cwd: options.data,
    env: cleanEnvironment,
    detached: process.platform !== 'win32',
    windowsHide: true,
    stdio: ['ignore', options.logFile.fd, options.logFile.fd],
  });
  const exited = new Promise<string>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
    child.on('error', (error) => resolve(error.message));
  });
  if (child.pid === undefined)
    throw new EmbeddedPostgresError(`Postgres could not be started: ${await exited}`);
  if (prefix.length === 0 && process.platform !== 'win32') {
    void exited.then(watchOverServer(child.pid, options.account));
  }
  return {
    pid: child.pid,
    exited,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal) => void child.kill(signal),
  };
}
