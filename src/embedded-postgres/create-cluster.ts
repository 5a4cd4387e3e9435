import { chown, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { syncFolder } from '../files/disk.ts';
import type { Binaries } from './binaries.ts';
import {
  diskFull,
  EmbeddedPostgresError,
  ensurePassword,
  hasCode,
  type Layout,
  saysDiskFull,
} from './data-directory.ts';
import { isAlive } from './previous-server.ts';
import { type Account, dataArgument, runProgram } from './run-program.ts';

/** Every step on a data directory needs this: where it lies, who runs what on it. */
export interface ClusterContext {
  readonly layout: Layout;
  readonly binaries: Binaries;
  /** The account that runs the server when we are root; undefined when it runs as ourselves. */
  readonly account: Account | undefined;
}

export const databaseName = 'sluice';
export const roleName = 'sluice';

const attemptPrefix = 'init-';
/** A live pid in an attempt's name may be a stranger's by now; no initdb takes that long. */
const attemptMaxAgeMs = 10 * 60 * 1000;

/**
 * Creates the data directory with role and database. All of it happens in a folder of its own that becomes
 * the data directory by one rename: killed at any moment, the next start finds nothing or everything.
 */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    await writeFile(join(attempt, 'password'), await ensurePassword(layout.superuserPassword), {
      mode: 0o600,
    });
    if (account !== undefined) await lend(account, attempt, data, join(attempt, 'password'));
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Another process created it at the same time, with the same passwords: theirs is as good.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
}

async function lend(account: Account, ...paths: readonly string[]): Promise<void> {
  for (const path of paths) await chown(path, account.uid, account.gid);
}

/**
 * The builtin C.UTF-8 orders text by code point: as fast as bytes, and the same whatever the system's library
 * says, so no upgrade of it corrupts an index. It still knows upper and lower case beyond ASCII. Checksums are on by default; syncing to disk stays on.
 */
async function initialise({ layout, binaries, account }: ClusterContext, data: string): Promise<void> {
  const args = [
    ['-D', dataArgument(account, data)],
    ['--username=postgres', '--auth=scram-sha-256', '--pwfile=../password'],
    ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
  ].flat();
  const { code, output } = await runProgram(binaries.initdb, args, { account, cwd: data });
  if (saysDiskFull(output)) throw diskFull(layout.root);
  if (code !== 0) throw new EmbeddedPostgresError(`initdb failed: ${output.trim()}`);
}

async function removeAbandonedAttempts(layout: Layout): Promise<void> {
  for (const name of await readdir(layout.root)) {
    if (!name.startsWith(attemptPrefix)) continue;
    const path = join(layout.root, name);
    const makerPid = Number(basename(name).slice(attemptPrefix.length).split('-')[0]);
    const age = Date.now() - (await stat(path)).mtimeMs;
    if (!isAlive(makerPid) || age > attemptMaxAgeMs) await removeTree(path);
  }
}

/** Waits, because the initdb of a killed process may be writing its last file. */
function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 });
}

/**
 * Role and database in a fresh data directory. The role is no superuser; it may create databases,
 * because tests give each file one of its own.
 */
async function createRoleAndDatabase(context: ClusterContext, data: string): Promise<void> {
  const password = await ensurePassword(context.layout.password);
  await runSingleUser(context, data, [
    `create role ${roleName} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint to ${roleName}`,
    `create database ${databaseName} owner ${roleName}`,
  ]);
}

/** A new password for data whose password file was lost, for example when only PGDATA came back from a backup. */
export async function resetPassword(context: ClusterContext): Promise<void> {
  const password = await ensurePassword(context.layout.password);
  await runSingleUser(context, context.layout.data, [`alter role ${roleName} password '${password}'`]);
}

/**
 * In single-user mode: nothing listens yet and no login is needed. It takes one statement a line.
 * Our passwords have only letters, digits, "-" and "_", so they need no escaping; they are no arguments,
 * which every user of the machine could read.
 */
async function runSingleUser(
  { binaries, account }: ClusterContext,
  data: string,
  statements: readonly string[],
): Promise<void> {
  const args = ['--single', '-D', dataArgument(account, data), '-c', 'exit_on_error=on', 'postgres'];
  const input = `${statements.join('\n')}\n`;
  const { code, output } = await runProgram(binaries.postgres, args, { account, cwd: data, input });
  if (code !== 0) throw new EmbeddedPostgresError(`Preparing the database failed: ${output.trim()}`);
}
