import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import { EmbeddedPostgresError, exists, type Layout } from './data-directory.ts';

interface ProgramResult {
  /** Exit code. -1 if the program did not start or was ended by a signal. */
  readonly code: number;
  readonly output: string;
}

interface ProgramOptions {
  readonly account: Account | undefined;
  /**
   * Working directory. It is entered before privileges are dropped, so the account needs no access
   * to the path.
   */
  readonly cwd: string;
  readonly input?: string;
}

/** Environment without PG* variables. In it, messages are in English, so they can be recognised. */
export const cleanEnvironment = { LC_ALL: 'C', TZ: 'UTC' } as const;

/**
 * Returns the path of the data directory for PostgreSQL's arguments. An account other than root may
 * be unable to reach the path. Therefore, root enters the directory first, and PostgreSQL finds the
 * absolute path of its working directory.
 */
export function dataArgument(account: Account | undefined, data: string): string {
  return account === undefined ? data : '/proc/self/cwd';
}

/**
 * Maximum time of a program. Creating a cluster takes a second, or a minute on a very slow disk.
 */
const timeoutMs = 10 * 60_000;

/** Never rejects. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<ProgramResult> {
  try {
    return await runToEnd(program, args, options);
  } catch (error) {
    // If root may not change its user, Node throws EPERM instead of emitting it.
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
    // The exit status reports a program that ends without reading its input.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

/**
 * Starts a shell that waits for the end of a pipe from this process and then stops the server. The
 * pipe ends even if this process is killed. Returns a function that ends the shell.
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

/** User account that runs the server if this process runs as root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Names of accounts that may run the server, in order of preference. Every system has `nobody`. */
const candidates = ['postgres', 'nobody'] as const;

/**
 * Returns the account that must run the server, or `undefined` if this process can run the server
 * itself. PostgreSQL refuses to run as root. If this process runs as root, returns the owner of the
 * data directory or of its parent (such as a container's volume), so that root can also open
 * another user's directory. If root owns both folders, returns one of `candidates`.
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
    // passwd(5): name:password:uid:gid.
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(passwd) ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedPostgresError(
    `Postgres refuses to run as root, and this system has no account ${candidates.join(' or ')} to run it as. ` +
      'Start as an ordinary user, create one of these accounts, or set DATABASE_URL.',
  );
}
