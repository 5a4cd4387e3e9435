import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import { EmbeddedPostgresError, exists, type Layout } from './data-directory.ts';

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

/** The environment of all that we start: no PG* variable or locale of the caller, and messages in English, to be recognised. */
export const cleanEnvironment = { LC_ALL: 'C', TZ: 'UTC' } as const;

/**
 * Names the data directory for the server's programs. With a borrowed account the path may run through
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
  try {
    return await runToEnd(program, args, options);
  } catch (error) {
    // Some failures to start are events, others (EPERM: root without the right to change user) are thrown.
    return { code: -1, output: messageOf(error) };
  }
}

function runToEnd(program: string, args: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...options.account,
      cwd: options.cwd,
      env: cleanEnvironment,
      detached: true,
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

/** Starts a shell that reads a pipe only we hold: when we die it closes, and the shell stops the server. Returns how to call it off. */
export function watchOverServer(serverPid: number, account: Account | undefined): () => void {
  const watchdog = spawn(
    '/bin/sh',
    ['-c', 'read -r _; kill -INT "$1"', 'sluice-watchdog', String(serverPid)],
    { ...account, env: {}, cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  watchdog.on('error', () => undefined);
  watchdog.unref();
  return () => watchdog.kill('SIGKILL');
}

/** The unprivileged account that runs the server when we are root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Preferred first: `postgres` exists for this purpose, `nobody` exists everywhere. */
const candidates = ['postgres', 'nobody'] as const;

/**
 * The account the server must run as, or undefined to stay who we are.
 * Postgres refuses to run as root; root therefore lends it an account. Whoever owns the data directory (or the
 * folder made for it, such as a container's volume) runs it, so what an ordinary user made also opens for root.
 */
export async function chooseAccount(layout: Layout): Promise<Account | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  if (process.platform !== 'linux') {
    throw new EmbeddedPostgresError(
      'The embedded Postgres does not run as root on this system. Start as an ordinary user, or set DATABASE_URL.',
    );
  }
  for (const path of [layout.data, layout.root]) {
    if (!(await exists(path))) continue;
    const { uid, gid } = await stat(path);
    if (uid !== 0) return { uid, gid };
  }
  const passwd = await readFile('/etc/passwd', 'utf8');
  for (const name of candidates) {
    // passwd(5): name:password:uid:gid:…
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(passwd) ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedPostgresError(
    `Postgres refuses to run as root, and this system has no account ${candidates.join(' or ')} to run it as. ` +
      'Start as an ordinary user, create one of these accounts, or set DATABASE_URL.',
  );
}
