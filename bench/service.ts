import { type ChildProcess, spawn } from 'node:child_process';
import { createReadStream, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../src/base/package-root.ts';
import { embeddedPostgres } from '../src/postgres/embedded/embedded-postgres.ts';
import { makeFolder } from './folder.ts';

/** Milliseconds between checks of whether a job has ended. */
const pollMs = 50;

export const apiKey = 'sluice-bench-key-sluice-bench-key';

/** A service that is started as users start it, with an embedded PostgreSQL in its own folder. */
export interface Service {
  readonly address: string;
  readonly databaseUrl: string;
  readonly folder: string;
  readonly pid: number;
  /**
   * Returns the ended job, and the seconds since the start of the upload. `options` is the query
   * string of the upload.
   */
  load(
    path: string,
    contentType: string,
    options?: string,
  ): Promise<{ readonly job: JobDetail; readonly seconds: number }>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

export interface JobDetail {
  readonly job_id: string;
  readonly status: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly mirror: { readonly done: number } | null;
  readonly failure: { readonly message: string } | null;
}

export async function startService(
  settings: Readonly<Record<string, string>> = {},
  entry = join(packageRoot, 'dist/bundle/main.js'),
): Promise<Service> {
  const folder = await makeFolder('sluice-bench-');
  const child = spawn(process.execPath, [entry, 'start'], {
    env: { ...process.env, DATA_DIR: folder, PORT: '0', API_KEY: apiKey, LOG_LEVEL: 'warn', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const address = await readAddress(child);
  const databaseUrl = await embeddedPostgres.findRunning(join(folder, 'postgres'));
  if (databaseUrl === undefined || child.pid === undefined)
    throw new Error('the service runs without a database');
  const service: Omit<Service, 'load'> = {
    address,
    databaseUrl,
    folder,
    pid: child.pid,
    fetch: (path, init) =>
      fetch(new URL(path, address), {
        ...init,
        headers: {
          authorization: `Token ${apiKey}`,
          ...(init?.headers as Record<string, string> | undefined),
        },
      }),
    async stop() {
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
  return { ...service, load: (path, contentType, options = '') => load(service, path, contentType, options) };
}

async function readAddress(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('no output to read the address from');
  for await (const line of createInterface({ input: child.stdout })) {
    const address = /listens on (http:\S+)/.exec(line)?.[1];
    if (address !== undefined) {
      child.stdout.resume();
      return address;
    }
  }
  throw new Error('the service ended before it listened');
}

async function load(
  service: Omit<Service, 'load'>,
  path: string,
  contentType: string,
  options: string,
): Promise<{ job: JobDetail; seconds: number }> {
  const startedAt = performance.now();
  const { job_id } = await upload(service, path, contentType, options);
  for (;;) {
    const job = (await (await service.fetch(`/v1/background_jobs/${job_id}`)).json()) as JobDetail;
    if (['completed', 'failed', 'cancelled'].includes(job.status)) {
      if (job.status !== 'completed') throw new Error(`the load ${job.status}: ${job.failure?.message}`);
      return { job, seconds: (performance.now() - startedAt) / 1_000 };
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

async function upload(
  service: Omit<Service, 'load'>,
  path: string,
  contentType: string,
  options: string,
): Promise<{ job_id: string }> {
  const { size } = await stat(path);
  return new Promise((resolve, reject) => {
    const sending = request(
      new URL(`/v1/imports?${options}`, service.address),
      {
        method: 'POST',
        headers: { authorization: `Token ${apiKey}`, 'content-type': contentType, 'content-length': size },
      },
      async (response) => {
        let body = '';
        for await (const part of response) body += String(part);
        if (response.statusCode === 200) resolve(JSON.parse(body) as { job_id: string });
        else reject(new Error(`${response.statusCode}: ${body}`));
      },
    );
    sending.on('error', reject);
    createReadStream(path, { highWaterMark: 256 * 1024 }).pipe(sending);
  });
}

export function nodeProcesses(pid: number): { readonly pid: number; readonly name: string }[] {
  const processes = [{ pid, name: 'api' }];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const status = readFileSync(`/proc/${entry}/status`, 'utf8');
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8');
      if (status.includes(`PPid:\t${pid}\n`) && command.includes('main.js')) {
        processes.push({ pid: Number(entry), name: `worker ${processes.length}` });
      }
    } catch {
      // The process has ended since /proc was listed.
    }
  }
  return processes;
}

/** Peak memory of each process since `resetPeaks`, in MiB. Linux only. */
export function peaks(pid: number): Readonly<Record<string, number>> {
  if (process.platform !== 'linux') return {};
  return Object.fromEntries(
    nodeProcesses(pid).map((node) => {
      const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${node.pid}/status`, 'utf8'))?.[1];
      return [node.name, Math.round(Number(kib) / 1_024)];
    }),
  );
}

export function resetPeaks(pid: number): void {
  if (process.platform !== 'linux') return;
  for (const node of nodeProcesses(pid)) writeFileSync(`/proc/${node.pid}/clear_refs`, '5');
}
