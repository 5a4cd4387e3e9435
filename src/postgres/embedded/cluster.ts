// The cluster is created here, and here are the settings that its server runs with.
import { randomBytes } from 'node:crypto';
import { chown, mkdir, mkdtemp, readdir, rename, stat, statfs, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { syncFolder } from '../../files/disk.ts';
import type { Binaries } from './binaries.ts';
import { isAlive } from './claims.ts';
import {
  diskFull,
  EmbeddedPostgresError,
  hasCode,
  type Layout,
  passwordName,
  removeTree,
  saysDiskFull,
  writePrivateFile,
} from './data-directory.ts';
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

/** Creates the data directory, role and database in a folder that one rename puts in place: nothing or all of it, whenever killed. */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    // The superuser's password is kept nowhere: nothing logs in as it.
    const password = join(attempt, 'password');
    await writeFile(password, newPassword(), { mode: 0o600 });
    if (account !== undefined)
      for (const path of [attempt, data, password]) await chown(path, account.uid, account.gid);
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Another process created it at the same time: theirs is as good.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
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

/** Creates role and database. The role is no superuser, but may create databases: tests give each file one of its own. */
async function createRoleAndDatabase(context: ClusterContext, data: string): Promise<void> {
  const password = newPassword();
  await writePrivateFile(join(data, passwordName), password);
  await runSingleUser(context, data, [
    `create role ${roleName} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint to ${roleName}`,
    `create database ${databaseName} owner ${roleName}`,
  ]);
}

/** 32 random bytes, in letters that need no quoting in a URL or in SQL. */
function newPassword(): string {
  return randomBytes(32).toString('base64url');
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

const MiB = 1024 * 1024;

/** The server's settings: a bulk loader's, on a machine shared with Node. On its command line, so that no file has to be migrated. */
export function serverSettings(machine: Machine): Record<string, string> {
  return { ...durability, ...memory(machine), ...writing, ...reading, ...housekeeping(machine), ...logging };
}

/** These make "committed" a promise. They are stated although they are the defaults: they are the contract. */
const durability = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' } as const;

function memory({ memoryBytes, dynamicSharedMemory }: Machine): Record<string, string> {
  const mib = memoryBytes / MiB;
  return {
    // The hot indexes of a merge must stay in: 75 MB for a million users. The rest is better off in the page cache. 24 GB → 1.5 GB.
    shared_buffers: `${clamp(mib / 16, 128, 2048)}MB`,
    // A planner hint, no allocation: half the machine is page cache on a quiet day.
    effective_cache_size: `${clamp(mib / 2, 256, 65_536)}MB`,
    // Sorting one batch in key order stays in memory; a few statements are in flight, not hundreds.
    work_mem: '32MB',
    // Index builds and vacuum of millions of rows in few passes; a small machine gets less.
    maintenance_work_mem: `${clamp(mib / 32, 64, 512)}MB`,
    dynamic_shared_memory_type: dynamicSharedMemory,
  };
}

const writing = {
  // Each checkpoint makes every page it meets again be logged whole; a load of gigabytes should meet few.
  max_wal_size: '4GB',
  min_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // A burst of COPY fits without waiting for the disk.
  wal_buffers: '16MB',
  // No replicas read this log: index builds and fresh tables are synced instead of logged.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Halves the log of an update-heavy merge but costs it 8 % of its time on two cores (measured); with few
  // checkpoints there are few whole-page images to compress. lz4 and zstd are not in the package.
  wal_compression: 'off',
} as const;

const reading = {
  // Statements are short; compiling them costs more than it saves.
  jit: 'off',
  // Solid-state disks and a warm cache: an index is nearly as cheap as a scan.
  random_page_cost: '1.1',
} as const;

function housekeeping({ platform }: Machine): Record<string, string> {
  return {
    max_connections: '100',
    timezone: 'UTC',
    // A loader writes in bursts: look often, and when there is work, do it at full speed.
    autovacuum_naptime: '20s',
    autovacuum_vacuum_scale_factor: '0.1',
    autovacuum_analyze_scale_factor: '0.05',
    autovacuum_vacuum_cost_limit: '2000',
    // A client stuck in a transaction keeps locks and dead rows; no step of ours is idle that long.
    idle_in_transaction_session_timeout: '5min',
    // The statement of a worker that was killed ends soon, and its locks with it. Not offered elsewhere.
    ...(platform === 'linux' ? { client_connection_check_interval: '5s' } : {}),
  };
}

const logging = {
  // The server's own life. Errors of statements reach our code, which logs them once;
  // here they would only copy people's data into a file.
  log_min_messages: 'log',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
} as const;

function clamp(value: number, min: number, max: number): number {
  return Math.floor(Math.min(Math.max(value, min), max));
}

type DynamicSharedMemory = 'posix' | 'sysv';

export interface Machine {
  /** Bytes this process may use: the machine's memory, or the container's limit. */
  readonly memoryBytes: number;
  readonly dynamicSharedMemory: DynamicSharedMemory;
  readonly platform: string;
}

/** A parallel hash join over work_mem × workers must fit; Docker's default /dev/shm of 64 MiB does not. */
const minSharedBytes = 512 * 1024 * 1024;

export async function inspectMachine(): Promise<Machine> {
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    memoryBytes: limit > 0 && limit < total ? limit : total,
    dynamicSharedMemory: await chooseSharedMemory(),
    platform: process.platform,
  };
}

/**
 * Chooses where parallel queries keep what they share. posix lives in /dev/shm, which containers often keep tiny: a query
 * then fails in the middle with "could not resize shared memory segment". sysv is not bound by that mount.
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform !== 'linux') return 'posix';
  const free = await statfs('/dev/shm').then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= minSharedBytes ? 'posix' : 'sysv';
}
