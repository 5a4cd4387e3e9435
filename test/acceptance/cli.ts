import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { program } from '../support/servers/program.ts';
import { waitFor } from '../support/wait-for.ts';
import { runInHost } from './command-host.ts';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  readonly keepInputOpen?: boolean;
  /** Whether standard output is closed, like a pipe whose reader has exited. */
  readonly deaf?: boolean;
  /** Whether standard output is a terminal. The program `script` provides this terminal. */
  readonly terminal?: boolean;
  /** Default: `test`. */
  readonly until?: 'test' | 'file';
}

export interface Finished {
  /** Exit code, or the signal that ended the process. */
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly finished: Promise<Finished>;
  signal(name: NodeJS.Signals): void;
}

/** Creates a folder. It is removed after the current test, or after the last test of the file. */
export async function temporaryFolder(until: 'test' | 'file' = 'test'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-acceptance-'));
  cleanUpAfter(until, () => rm(folder, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 }));
  return folder;
}

/** Creates a data directory with an up-to-date but empty database. */
export async function preparedDataDir(until: 'test' | 'file' = 'test'): Promise<string> {
  const folder = await temporaryFolder(until);
  // `-a` preserves the owners of the files.
  await promisify(execFile)('cp', ['-a', `${inject('preparedDataDir')}/.`, folder]);
  return folder;
}

/**
 * Creates a database on the server of the tests. This is cheaper than starting the embedded server
 * of a data directory.
 */
export async function databaseUrl(until: 'test' | 'file' = 'test'): Promise<string> {
  const { url, drop } = await createTestDatabase();
  cleanUpAfter(until, drop);
  return url;
}

/**
 * Starts `sluice …`, and stops it after the test or the file. The process gets PATH, the defaults
 * of the tests, and the variables in `env`.
 */
export function startCli(
  args: readonly string[],
  { env = {}, cwd, input, keepInputOpen, deaf, terminal, until = 'test' }: RunOptions = {},
): Running {
  const words = [process.execPath, program, ...args];
  const [file = '', ...rest] = terminal ? ['script', '-qec', words.join(' '), '/dev/null'] : words;
  const child = spawn(file, rest, {
    cwd,
    env: { ...usualEnv(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  if (keepInputOpen !== true) child.stdin.end(input ?? '');
  if (deaf === true) child.stdout.destroy();
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const finished = once(child, 'close').then(() => ({
    code: child.exitCode ?? child.signalCode ?? '',
    ...output,
  }));
  cleanUpAfter(until, () => endNow(child, finished));
  return {
    pid: child.pid ?? 0,
    finished,
    signal: (name) => void child.kill(name),
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
  };
}

const usualEnv = () => ({ PATH: process.env['PATH'] ?? '', TMPDIR: tmpdir(), PORT: '0', WORKERS: '1' });

/** Commands that use the streams and the signals of their process. */
const ownProcess: ReadonlySet<string> = new Set(['start', 'serve', 'work', 'psql']);

/**
 * Runs a command until it ends by itself. Uses the command host, unless the command needs its own
 * process.
 */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { env = {}, cwd = process.cwd(), input = '' } = options;
  if (ownProcess.has(args[0] ?? '')) return startCli(args, options).finished;
  const folder = await temporaryFolder();
  const [stdin = '', stdout = '', stderr = ''] = ['in', 'out', 'err'].map((name) => join(folder, name));
  await writeFile(stdin, input);
  const code = await runInHost({ words: args, cwd, env: { ...usualEnv(), ...env }, stdin, stdout, stderr });
  return { code, stdout: await readFile(stdout, 'utf8'), stderr: await readFile(stderr, 'utf8') };
}

async function endNow(child: ChildProcess, finished: Promise<Finished>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  await finished;
}

export interface Started extends Running {
  /** URL of the form http://127.0.0.1:port. */
  readonly url: string;
  /** The first API key. `null` if the start did not create a key. */
  readonly key: string | null;
}

/** Runs `sluice start`. Waits until the service is ready. */
export async function startService(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  options: Pick<RunOptions, 'cwd' | 'until'> = {},
): Promise<Started> {
  // Turns off the limit on the event loop's delay. Otherwise, a slow machine would cause 503
  // responses.
  const settings = { MAX_EVENT_LOOP_DELAY_MS: '0', ...env };
  const running = startCli(['start', '--data-dir', dataDir], { ...options, env: settings });
  const url = await waitFor('sluice start to be ready', () => {
    const address = /listens on (http:\S+)/.exec(running.stdout)?.[1];
    if (address === undefined && !isRunning(running.pid)) throw new Error(`it ended: ${running.stderr}`);
    return address;
  });
  const path = /It is in (.*first-key)"/.exec(running.stdout)?.[1];
  return Object.assign(running, { url, key: path ? (await readFile(path, 'utf8')).trim() : null });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
