import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cpuSince, readCpu } from './figures.ts';
import { apiKey, peaks, resetPeaks, type Service } from './service.ts';

/** A serving process that records can be posted to. */
export interface Target {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The service that is measured. It stays: the baselines work on its database. */
export function targetOf({ address, pid }: Service): Target {
  return { url: address, pid, stop: async () => undefined };
}

/** Bare Fastify that answers at once, after one INSERT for each record, or after one for all that came meanwhile. */
export type Baseline = 'bare' | 'insert' | 'batched';

/** On the database of the service. */
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

/** What a serving process, and PostgreSQL for it, took. Linux only; elsewhere nothing is known. */
interface Taken {
  readonly peakMib: number;
  readonly cpuMs: number;
  readonly postgresMs: number;
}

/** From now on. */
export function observe({ pid }: Target, service: Service): () => Taken {
  if (process.platform !== 'linux') {
    return () => ({ peakMib: Number.NaN, cpuMs: Number.NaN, postgresMs: Number.NaN });
  }
  resetPeaks(pid);
  const [own, all] = [cpuMs(pid), readCpu(service)];
  return () => ({
    peakMib: peaks(pid)['api'] ?? Number.NaN,
    cpuMs: cpuMs(pid) - own,
    postgresMs: cpuSince(service, all).postgres * 1_000,
  });
}

/** User and system time. The kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
