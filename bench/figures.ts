import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeProcesses, type Service } from './service.ts';

/** Returns the middle value. If there are two middle values, returns the lower one. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[(values.length - 1) >> 1] ?? Number.NaN;
}

export function least(values: readonly number[]): number {
  return Math.min(...values);
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

/** In seconds. */
export interface CpuSeconds {
  /** The process that receives files and sends responses. */
  readonly api: number;
  readonly workers: number;
  readonly postgres: number;
  /** Sends files. */
  readonly client: number;
}

const ticksPerSecond = 100;

/** Processor time of each part of the system so far. Linux only. */
export function readCpu(service: Service): CpuSeconds {
  const [api, ...workers] = nodeProcesses(service.pid).map(({ pid }) => secondsOf(pid));
  const { user, system } = process.cpuUsage();
  return {
    api: api ?? 0,
    workers: sum(workers),
    postgres: secondsOfTree(postmaster(service)),
    client: (user + system) / 1e6,
  };
}

export function cpuSince(service: Service, before: CpuSeconds): CpuSeconds {
  const now = readCpu(service);
  return {
    api: now.api - before.api,
    workers: now.workers - before.workers,
    postgres: now.postgres - before.postgres,
    client: now.client - before.client,
  };
}

function postmaster({ folder }: Service): number {
  return Number(readFileSync(join(folder, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
}

/** Processor seconds of a process and its children, including ended ones. */
function secondsOfTree(pid: number): number {
  try {
    return sum([secondsOf(pid, true), ...childrenOf(pid).map((child) => secondsOf(child))]);
  } catch (error) {
    // A child has ended meanwhile. Its time is now part of the time of ended children.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return secondsOfTree(pid);
    throw error;
  }
}

function secondsOf(pid: number, withEndedChildren = false): number {
  // The process name is in parentheses and may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return sum(fields.slice(11, withEndedChildren ? 15 : 13).map(Number)) / ticksPerSecond;
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && isChild(entry, pid))
    .map(Number);
}

function isChild(entry: string, parent: number): boolean {
  try {
    return readFileSync(`/proc/${entry}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(parent);
  } catch {
    // The process has ended since /proc was listed.
    return false;
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
