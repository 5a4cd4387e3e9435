import { spawn } from 'node:child_process';
import type { Account } from './account.ts';
import { deathSignalPrefix } from './lifeline.ts';

export interface ProgramResult {
  /** Exit status; -1 when it could not be started or was ended by a signal. */
  readonly code: number;
  readonly output: string;
}

export interface ProgramOptions {
  readonly account: Account | undefined;
  /** Entered before privileges are dropped, so it may lie where the account cannot walk to. */
  readonly cwd: string;
  readonly input?: string;
}

/**
 * The environment of everything we start: nothing of ours. No PG* variable or locale of the caller
 * changes what the server does, and its messages are English, so that we can recognise them.
 */
export const cleanEnvironment = { LC_ALL: 'C', TZ: 'UTC' } as const;

/**
 * How the server's programs name their data directory. With a borrowed account the path may run through
 * a directory closed to that account (a checkout in root's home): the process enters it while still root, and
 * its own working directory needs no walk. Postgres takes it as absolute and works relative to it anyway.
 */
export function dataArgument(account: Account | undefined, data: string): string {
  return account === undefined ? data : '/proc/self/cwd';
}

/** Creating a cluster takes a second, on a very slow disk a minute. */
const timeoutMs = 10 * 60_000;

/** Runs one of the package's programs to its end. Never rejects: a failure to start is a result too. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramResult> {
  const prefix = await deathSignalPrefix('TERM');
  try {
    return await runToEnd([...prefix, program, ...args], options);
  } catch (error) {
    // Some failures to start are events, others (EPERM: root without the right to change user) are thrown.
    return { code: -1, output: error instanceof Error ? error.message : String(error) };
  }
}

function runToEnd(commandLine: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  const [file = '', ...args] = commandLine;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...options.account,
      cwd: options.cwd,
      env: cleanEnvironment,
      detached: process.platform !== 'win32',
      windowsHide: true,
      timeout: timeoutMs,
    });
    let output = '';
    const collect = (text: Buffer) => {
      output = (output + text).slice(-8_192);
    };
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? -1, output }));
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    // A program that ends without reading its input is reported by its exit status, not by EPIPE.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}
