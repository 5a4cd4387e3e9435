import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import { EmbeddedPostgresError, exists, type Layout } from './data-directory.ts';

interface ProgramResult {
  /** Exit status. -1 if the program did not start or was ended by a signal. */
  readonly code: number;
  readonly output: string;
}

interface ProgramOptions {
  readonly account: Account | undefined;
  /**
   * Working directory. The process enters the directory before it drops privileges, so the account
   * does not need access to the directory.
   */
  readonly cwd: string;
  readonly input?: string;
}

/**
 * Environment of child processes. It contains no PG* variables. The locale makes programs print
 * English messages, which this code can recognise.
 */
export const cleanEnvironment = { LC_ALL: 'C', TZ: 'UTC' } as const;

/**
 * Returns the argument that specifies the data directory. If root runs PostgreSQL under another
 * account, that account may not have access to the path. Therefore, root enters the directory
 * first, and the argument is the working directory. PostgreSQL determines the absolute path itself.
 */
export function dataArgument(account: Account | undefined, data: string): string {
  return account === undefined ? data : '/proc/self/cwd';
}

/**
 * Maximum time for a program. Creating a cluster takes a second, or a minute on a very slow disk.
 */
const timeoutMs = 10 * 60_000;

/** Runs a program until it ends. Never rejects. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramResult> {
  try {
    return await runToEnd(program, args, options);
  } catch (error) {
    // Node throws EPERM instead of emitting it. EPERM means that root is not allowed to change its
    // user.
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
    // A program that ends without reading its input causes an error here, but its exit status
    // reports the failure.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

/**
 * Starts a shell that waits for the end of a pipe from this process, and then stops the server. The
 * pipe also ends if this process is killed. Returns a function that ends the shell.
 */
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

/** Unprivileged account that runs the server if this process is root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Accounts in order of preference. Every system has `nobody`. */
const candidates = ['postgres', 'nobody'] as const;

/**
 * Returns the account that runs the server, or `undefined` if this process can run it. PostgreSQL
 * refuses to run as root. If this process is root, the account is the owner of the data directory
 * or of its parent folder, such as a container's volume. Therefore, root can also open a data
 * directory that belongs to another user. If root owns both folders, the account is one of
 * `candidates`.
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
    // A line of passwd(5) begins with name:password:uid:gid.
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(passwd) ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedPostgresError(
    `Postgres refuses to run as root, and this system has no account ${candidates.join(' or ')} to run it as. ` +
      'Start as an ordinary user, create one of these accounts, or set DATABASE_URL.',
  );
}
