import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { program } from '../support/servers/program.ts';
import { waitFor } from '../support/wait-for.ts';

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
  readonly keepInputOpen?: boolean;
  /** Whether standard output is closed, like a pipe whose reader has exited. */
  readonly deaf?: boolean;
  /** Whether standard output is a terminal. The program `script` provides this terminal. */
  readonly terminal?: boolean;
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

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-acceptance-'));
  cleanUpAfter('test', () => rm(folder, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 }));
  return folder;
}

/** Creates a data directory with an up-to-date but empty database. */
export async function preparedDataDir(): Promise<string> {
  const folder = await temporaryFolder();
  // `-a` preserves the owners of the files.
  await promisify(execFile)('cp', ['-a', `${inject('preparedDataDir')}/.`, folder]);
  return folder;
}

/**
 * Starts `sluice …`, and stops it after the test. The process gets PATH, the defaults of the tests,
 * and the variables in `env`.
 */
export function startCli(
  args: readonly string[],
  { env = {}, cwd, input, keepInputOpen, deaf, terminal }: RunOptions = {},
): Running {
  const words = [process.execPath, program, ...args];
  const [file = '', ...rest] = terminal ? ['script', '-qec', words.join(' '), '/dev/null'] : words;
  const child = spawn(file, rest, {
    cwd,
    env: {
      PATH: process.env['PATH'] ?? '',
      TMPDIR: tmpdir(),
      PORT: '0',
      WORKERS: '1',
      ...env,
    },
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
  cleanUpAfter('test', () => endNow(child, finished));
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

export function runCli(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return startCli(args, options).finished;
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

/** Runs `sluice start` in `cwd`. Waits until the service is ready. */
export async function startService(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<Started> {
  // Turns off the limit on the event loop's delay. Otherwise, a slow machine would cause 503
  // responses.
  const settings = { MAX_EVENT_LOOP_DELAY_MS: '0', ...env };
  const running = startCli(['start', '--data-dir', dataDir], { env: settings, ...(cwd && { cwd }) });
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
