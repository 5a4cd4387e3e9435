import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cpuSince, readCpu } from './figures.ts';
import { apiKey, peaks, resetPeaks, type Service } from './service.ts';

export interface Target {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** `stop` does nothing, because the baselines use the service's database. */
export function targetOf({ address, pid }: Service): Target {
  return { url: address, pid, stop: async () => undefined };
}

/**
 * `bare`: nothing is stored. `insert`: one INSERT per record. `batched`: one INSERT for all waiting
 * records.
 */
export type Baseline = 'bare' | 'insert' | 'batched';

export async function startBaseline(name: Baseline, service: Service): Promise<Target> {
  const child = fork(fileURLToPath(new URL('./ingest-bare.js', import.meta.url)), [name], {
    env: { ...process.env, DATABASE_URL: service.databaseUrl, API_KEY: apiKey },
  });
  const [url] = (await once(child, 'message')) as [string];
  const { pid } = child;
  if (pid === undefined) throw new Error('the baseline has no process');
  return {
    url,
    pid,
    async stop() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/**
 * Memory and processor time of a server, and processor time of PostgreSQL in the same run. `NaN`
 * except on Linux.
 */
interface Costs {
  readonly peakMib: number;
  readonly cpuMs: number;
  readonly postgresMs: number;
}

/** Measures from this call on. The returned function returns the costs so far. */
export function observe({ pid }: Target, service: Service): () => Costs {
  if (process.platform !== 'linux') {
    return () => ({ peakMib: Number.NaN, cpuMs: Number.NaN, postgresMs: Number.NaN });
  }
  resetPeaks(pid);
  const startMs = cpuMs(pid);
  const before = readCpu(service);
  return () => ({
    peakMib: peaks(pid)['api'] ?? Number.NaN,
    cpuMs: cpuMs(pid) - startMs,
    postgresMs: cpuSince(service, before).postgres * 1_000,
  });
}

/** User and system time in milliseconds. The kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
