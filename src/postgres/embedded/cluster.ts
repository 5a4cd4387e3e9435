// Creates the cluster and configures its server.
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

export interface ClusterContext {
  readonly layout: Layout;
  readonly binaries: Binaries;
  /** Account of the server if this process is root, else `undefined`. */
  readonly account: Account | undefined;
}

export const databaseName = 'sluice';
export const roleName = 'sluice';

const attemptPrefix = 'init-';
/** Age after which a live pid in an attempt's name belongs to another process. */
const attemptMaxAgeMs = 10 * 60 * 1000;

/**
 * Creates data directory, role and database, then renames the result, so a kill leaves all or
 * nothing.
 */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    // The password is not stored, because nothing logs in as superuser.
    const password = join(attempt, 'password');
    await writeFile(password, newPassword(), { mode: 0o600 });
    if (account !== undefined)
      for (const path of [attempt, data, password]) await chown(path, account.uid, account.gid);
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Another process created an equal one.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
}

/**
 * Uses the builtin C.UTF-8, which is fast and knows letter case beyond ASCII. No upgrade of a
 * system library can corrupt its indexes. Checksums are on by default, and syncing remains on.
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

/** Creates role and database. The role may create databases, for tests, but is not a superuser. */
async function createRoleAndDatabase(context: ClusterContext, data: string): Promise<void> {
  const password = newPassword();
  await writePrivateFile(join(data, passwordName), password);
  await runSingleUser(context, data, [
    `create role ${roleName} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint to ${roleName}`,
    `create database ${databaseName} owner ${roleName}`,
  ]);
}

/** 32 random bytes in characters that need no quoting in URLs or SQL. */
function newPassword(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Uses single-user mode, which needs no login and takes one statement per line. Passwords need no
 * escaping and are not arguments, which other users could read.
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

/**
 * Returns settings for a bulk loader beside Node, as arguments, so that no file needs migration.
 */
export function serverSettings(machine: Machine): Record<string, string> {
  return { ...durability, ...memory(machine), ...writing, ...reading, ...housekeeping(machine), ...logging };
}

/** Durability, explicit although these are the defaults. */
const durability = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' } as const;

function memory({ memoryBytes, dynamicSharedMemory }: Machine): Record<string, string> {
  const mib = memoryBytes / MiB;
  return {
    // Hot indexes of a merge (75 MB per million users) must fit. The page cache serves the rest.
    shared_buffers: `${clamp(mib / 16, 128, 2048)}MB`,
    // Planner hint: half the machine is page cache.
    effective_cache_size: `${clamp(mib / 2, 256, 65_536)}MB`,
    // A batch sorts in memory, and few statements run at a time.
    work_mem: '32MB',
    // Few passes for index builds and vacuum.
    maintenance_work_mem: `${clamp(mib / 32, 64, 512)}MB`,
    dynamic_shared_memory_type: dynamicSharedMemory,
  };
}

const writing = {
  // Fewer checkpoints mean fewer whole-page images in the log.
  max_wal_size: '4GB',
  min_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // Holds a burst of COPY.
  wal_buffers: '16MB',
  // Without replicas, new tables and indexes are synced instead of logged.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Would halve the log of an update-heavy merge but cost 8 % of its time on two cores (measured).
  // The package lacks lz4 and zstd.
  wal_compression: 'off',
} as const;

const reading = {
  // Compiling short statements costs more than it saves.
  jit: 'off',
  // Solid-state disks and a warm cache.
  random_page_cost: '1.1',
} as const;

function housekeeping({ platform }: Machine): Record<string, string> {
  return {
    max_connections: '100',
    timezone: 'UTC',
    // Loads come in bursts: look often and work at full speed.
    autovacuum_naptime: '20s',
    autovacuum_vacuum_scale_factor: '0.1',
    autovacuum_analyze_scale_factor: '0.05',
    autovacuum_vacuum_cost_limit: '2000',
    // Ends clients stuck in a transaction with locks. None of our steps idles that long.
    idle_in_transaction_session_timeout: '5min',
    // Ends statements of killed workers. Linux only.
    ...(platform === 'linux' ? { client_connection_check_interval: '5s' } : {}),
  };
}

const logging = {
  // Only the server's own messages. Our code logs statement errors, which would copy people's data
  // here.
  log_min_messages: 'log',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
} as const;

function clamp(value: number, min: number, max: number): number {
  return Math.floor(Math.min(Math.max(value, min), max));
}

type DynamicSharedMemory = 'posix' | 'sysv';

export interface Machine {
  /** Memory of the machine or the container's limit. */
  readonly memoryBytes: number;
  readonly dynamicSharedMemory: DynamicSharedMemory;
  readonly platform: string;
}

/** Room for a parallel hash join, work_mem × workers. Docker's /dev/shm has 64 MiB. */
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
 * Chooses posix shared memory if /dev/shm is large enough, else sysv, which that mount does not
 * limit. A query would otherwise fail with "could not resize shared memory segment".
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform !== 'linux') return 'posix';
  const free = await statfs('/dev/shm').then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= minSharedBytes ? 'posix' : 'sysv';
}
