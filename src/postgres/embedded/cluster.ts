// Creates the cluster and configures its server.
import { randomBytes } from 'node:crypto';
import { chown, mkdir, mkdtemp, readdir, rename, stat, statfs, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { MiB } from '../../base/limits.ts';
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
  readonly account: Account | undefined;
}

export const databaseName = 'sluice';
export const roleName = 'sluice';

const attemptPrefix = 'init-';
/**
 * A failed attempt leaves a folder whose name contains the pid of the process. The folder is
 * removed when no process has this pid. After this time, the folder is removed anyway, because a
 * later process may have the pid.
 */
const attemptMaxAgeMs = 10 * 60 * 1000;

/**
 * Creates data directory, role and database in a temporary folder that is then renamed, so a killed
 * process leaves a complete cluster or none.
 */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    // This password is not kept, because nothing logs in as the superuser.
    const password = join(attempt, 'password');
    await writeFile(password, newPassword(), { mode: 0o600 });
    if (account !== undefined)
      for (const path of [attempt, data, password]) await chown(path, account.uid, account.gid);
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Another process has created an identical cluster.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
}

/**
 * The builtin locale C.UTF-8 is fast and converts the case of all letters. Upgrades of system
 * libraries cannot corrupt its indexes. By default, initdb enables checksums and syncs to disk.
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

/** The role may create databases, which tests need, but is not a superuser. */
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
 * Single-user mode needs no login and reads one statement per line. Passwords need no escaping. The
 * passwords are not in the arguments, which other users can see.
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

/**
 * Settings for bulk loads on a machine that also runs Node. They are passed as arguments of the
 * server, so no file changes.
 */
export function serverSettings(machine: Machine): Record<string, string> {
  return { ...durability, ...memory(machine), ...writing, ...reading, ...housekeeping(machine), ...logging };
}

/** PostgreSQL's defaults, set explicitly, because committed data must survive a crash. */
const durability = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' } as const;

function memory({ memoryBytes, dynamicSharedMemory }: Machine): Record<string, string> {
  const mib = memoryBytes / MiB;
  return {
    // The buffers hold the indexes that a merge uses most (75 MB per million users). The operating
    // system caches other data.
    shared_buffers: `${clamp(mib / 16, 128, 2048)}MB`,
    // Half of the machine's memory is assumed to cache files.
    effective_cache_size: `${clamp(mib / 2, 256, 65_536)}MB`,
    // Enough to sort a batch in memory. Few statements run at a time, so the total stays small.
    work_mem: '32MB',
    // Lets index builds and vacuum finish in few passes.
    maintenance_work_mem: `${clamp(mib / 32, 64, 512)}MB`,
    dynamic_shared_memory_type: dynamicSharedMemory,
  };
}

const writing = {
  // Fewer checkpoints write fewer full-page images.
  max_wal_size: '4GB',
  min_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // Large enough for bursts of COPY.
  wal_buffers: '16MB',
  // There are no replicas. With `minimal`, a new table or index is synced to disk instead of
  // written to the WAL.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Compression would halve the WAL of a merge with many updates, but slow it by 8 % on two cores
  // (measured). The package lacks lz4 and zstd.
  wal_compression: 'off',
} as const;

const reading = {
  // Compilation of short statements costs more than it saves.
  jit: 'off',
  // Assumes solid-state disks and a warm cache.
  random_page_cost: '1.1',
} as const;

function housekeeping({ platform }: Machine): Record<string, string> {
  return {
    max_connections: '100',
    timezone: 'UTC',
    // Loads come in bursts, so autovacuum checks often and at full speed.
    autovacuum_naptime: '20s',
    autovacuum_vacuum_scale_factor: '0.1',
    autovacuum_analyze_scale_factor: '0.05',
    autovacuum_vacuum_cost_limit: '2000',
    // A stuck transaction may hold locks. No transaction of sluice is idle for that long.
    idle_in_transaction_session_timeout: '5min',
    // Ends statements of killed workers. The setting is used only on Linux.
    ...(platform === 'linux' ? { client_connection_check_interval: '5s' } : {}),
  };
}

const logging = {
  // Logs messages about the server itself, but no statements, whose text may contain data of users.
  // sluice logs its failed statements itself.
  log_min_messages: 'log',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
} as const;

function clamp(value: number, min: number, max: number): number {
  return Math.floor(Math.min(Math.max(value, min), max));
}

type DynamicSharedMemory = 'posix' | 'sysv';

export interface Machine {
  /** Memory of the machine, or the limit of the container if it is lower. */
  readonly memoryBytes: number;
  readonly dynamicSharedMemory: DynamicSharedMemory;
  readonly platform: string;
}

/**
 * A parallel hash join needs this much shared memory (work_mem × workers). Docker's /dev/shm has 64
 * MiB.
 */
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
 * In a small /dev/shm, a query could fail with "could not resize shared memory segment". The method
 * `sysv` does not use /dev/shm.
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform !== 'linux') return 'posix';
  const free = await statfs('/dev/shm').then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= minSharedBytes ? 'posix' : 'sysv';
}
