import { readFile, statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';

const MiB = 1024 * 1024;

/**
 * The server's settings: a bulk loader's, on a small machine that it shares with Node and the page cache.
 * Passed on the command line, so nothing in the data directory has to be edited or migrated.
 */
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

export type DynamicSharedMemory = 'posix' | 'sysv' | 'mmap' | 'windows';

/** The settings depend on the machine. */
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
 * then fails in the middle with "could not resize shared memory segment". sysv is not bound by that mount;
 * mmap (files in the data directory) always works but goes through the disk.
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform === 'win32') return 'windows';
  if (process.platform !== 'linux') return 'posix';
  try {
    const { bavail, bsize } = await statfs('/dev/shm');
    if (bavail * bsize >= minSharedBytes) return 'posix';
  } catch {
    // No /dev/shm at all.
  }
  try {
    const maxSegment = Number(await readFile('/proc/sys/kernel/shmmax', 'utf8'));
    return maxSegment >= minSharedBytes ? 'sysv' : 'mmap';
  } catch {
    return 'mmap';
  }
}
