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
  readonly account: Account | undefined;
}

export const databaseName = 'sluice';
export const roleName = 'sluice';

const attemptPrefix = 'init-';
/**
 * A failed attempt leaves a folder whose name contains the pid of its process. If the folder is
 * older than this, a live process with that pid must be a different process, so the folder is
 * removed.
 */
const attemptMaxAgeMs = 10 * 60 * 1000;

/**
 * Creates the data directory, role and database in a temporary folder, and then renames that
 * folder. Therefore, a killed process leaves either a complete cluster or none.
 */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    // The superuser's password is not kept, because nothing logs in as the superuser.
    const password = join(attempt, 'password');
    await writeFile(password, newPassword(), { mode: 0o600 });
    if (account !== undefined)
      for (const path of [attempt, data, password]) await chown(path, account.uid, account.gid);
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Ignored, because another process has created an identical cluster in the meantime.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
}

/**
 * Runs initdb with the builtin locale C.UTF-8, which is fast and converts the case of all letters,
 * not only of ASCII letters. Upgrades of system libraries cannot corrupt indexes that use this
 * locale. By default, initdb enables checksums and syncs its files to disk.
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

/**
 * Creates the role and the database. The role may create databases, which tests need, but is not a
 * superuser.
 */
async function createRoleAndDatabase(context: ClusterContext, data: string): Promise<void> {
  const password = newPassword();
  await writePrivateFile(join(data, passwordName), password);
  await runSingleUser(context, data, [
    `create role ${roleName} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint to ${roleName}`,
    `create database ${databaseName} owner ${roleName}`,
  ]);
}

/** Returns 32 random bytes, encoded in characters that need no quoting in URLs or SQL. */
function newPassword(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Runs statements in single-user mode, which needs no login and reads one statement per line.
 * Passwords need no escaping, and other users cannot read them because they are not command-line
 * arguments.
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
 * Returns server settings for bulk loads on a machine that also runs Node. They are passed as
 * arguments of the server, so changing a setting does not require changing a file.
 */
export function serverSettings(machine: Machine): Record<string, string> {
  return { ...durability, ...memory(machine), ...writing, ...reading, ...housekeeping(machine), ...logging };
}

/**
 * These are PostgreSQL's defaults. They are set explicitly, because committed data must survive a
 * crash.
 */
const durability = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' } as const;

function memory({ memoryBytes, dynamicSharedMemory }: Machine): Record<string, string> {
  const mib = memoryBytes / MiB;
  return {
    // Must be large enough for the indexes that a merge uses most (75 MB per million users). The
    // operating system caches other data.
    shared_buffers: `${clamp(mib / 16, 128, 2048)}MB`,
    // With this value, the planner assumes that half of the machine's memory caches files.
    effective_cache_size: `${clamp(mib / 2, 256, 65_536)}MB`,
    // Enough to sort a batch in memory. The total remains small, because few statements run at a
    // time.
    work_mem: '32MB',
    // Enough for index builds and vacuum to finish in few passes.
    maintenance_work_mem: `${clamp(mib / 32, 64, 512)}MB`,
    dynamic_shared_memory_type: dynamicSharedMemory,
  };
}

const writing = {
  // Fewer checkpoints mean that fewer full-page images are written to the WAL.
  max_wal_size: '4GB',
  min_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // Room for the WAL that COPY writes in bursts.
  wal_buffers: '16MB',
  // There are no replicas. With `minimal`, the content of a new table or index is synced to disk
  // instead of being written to the WAL.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Compression would halve the WAL of a merge with many updates, but would make the merge 8 %
  // slower on two cores (measured). The package lacks lz4 and zstd.
  wal_compression: 'off',
} as const;

const reading = {
  // For short statements, compilation costs more than it saves.
  jit: 'off',
  // Assumes solid-state disks and a warm cache.
  random_page_cost: '1.1',
} as const;

function housekeeping({ platform }: Machine): Record<string, string> {
  return {
    max_connections: '100',
    timezone: 'UTC',
    // Loads come in bursts, so autovacuum checks often and works at full speed.
    autovacuum_naptime: '20s',
    autovacuum_vacuum_scale_factor: '0.1',
    autovacuum_analyze_scale_factor: '0.05',
    autovacuum_vacuum_cost_limit: '2000',
    // Ends a transaction that is stuck, because it may hold locks. No transaction of sluice is idle
    // for that long.
    idle_in_transaction_session_timeout: '5min',
    // Ends statements of killed workers. Available only on Linux.
    ...(platform === 'linux' ? { client_connection_check_interval: '5s' } : {}),
  };
}

const logging = {
  // The server logs only messages about itself. sluice itself logs the errors of its statements.
  // The server would also log the text of a failed statement, which may contain data of users.
  log_min_messages: 'log',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
} as const;

function clamp(value: number, min: number, max: number): number {
  return Math.floor(Math.min(Math.max(value, min), max));
}

type DynamicSharedMemory = 'posix' | 'sysv';

export interface Machine {
  /** Memory of the machine, or the container's limit if that is lower. */
  readonly memoryBytes: number;
  readonly dynamicSharedMemory: DynamicSharedMemory;
  readonly platform: string;
}

/**
 * Space for a parallel hash join, which needs work_mem × workers. In Docker, /dev/shm has only 64
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
 * Returns `posix` if /dev/shm is large enough. In a small one, a query could fail with "could not
 * resize shared memory segment". In that case, returns `sysv`, whose memory is not in /dev/shm.
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform !== 'linux') return 'posix';
  const free = await statfs('/dev/shm').then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= minSharedBytes ? 'posix' : 'sysv';
}
