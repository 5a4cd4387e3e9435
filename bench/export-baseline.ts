import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { ExportOptions } from '../src/export/options.ts';
import { readRequest } from '../src/export/read-request.ts';
import { planFiles } from '../src/export/write/write-export.ts';
import { createFileSystemStore } from '../src/files/file-system.ts';
import { type CopySelect, setParameters } from '../src/postgres/copy-out.ts';
import type { Service } from './service.ts';

export type Body = Readonly<Record<string, unknown>>;

export interface Drained {
  readonly seconds: number;
  readonly bytes: number;
}

/** Exports by hand: runs the same queries in `COPY (…) TO STDOUT`, and discards the rows. */
export interface Baseline {
  drain(body: Body): Promise<Drained>;
  /** Returns PostgreSQL's plans. */
  explain(body: Body): Promise<string[]>;
  close(): Promise<void>;
}

export async function openBaseline(databaseUrl: string): Promise<Baseline> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  return {
    drain: (body) =>
      inTransaction(pool, async (client) => {
        const startedAt = performance.now();
        let bytes = 0;
        for (const select of await selectsOf(client, body)) bytes += await drain(client, select);
        return { seconds: (performance.now() - startedAt) / 1_000, bytes };
      }),
    explain: (body) =>
      inTransaction(pool, async (client) => {
        const plans: string[] = [];
        for (const select of await selectsOf(client, body)) {
          await setParameters(client, select);
          const { rows } = await client.query<{ 'QUERY PLAN': string }>(
            `explain (analyze, buffers, costs off, timing off) ${select.text}`,
          );
          plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        }
        return plans;
      }),
    close: () => pool.end(),
  };
}

/** Nothing is archived, so `planFiles` reads nothing from the store. */
const files = createFileSystemStore(tmpdir());

async function selectsOf(client: pg.PoolClient, body: Body): Promise<CopySelect[]> {
  const { request, problems } = readRequest(new ExportOptions([]), body);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const filter = { environmentId: 1, request, segment: null, excludedSegments: [] };
  const plans = await planFiles(client, files, filter);
  return plans.flatMap(({ selects }) => selects);
}

async function drain(client: pg.PoolClient, select: CopySelect): Promise<number> {
  await setParameters(client, select);
  let bytes = 0;
  const stream = client.query(
    copyTo(`copy (${select.text}) to stdout (format csv, quote E'\\x01', delimiter E'\\x02')`),
  );
  for await (const piece of stream as AsyncIterable<Buffer>) bytes += piece.length;
  return bytes;
}

/**
 * Runs `work` in a transaction with the settings of an export. JIT compilation is off, because for
 * a single query it costs more than it saves.
 */
async function inTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin isolation level repeatable read read only');
    await client.query(`set local timezone = 'UTC'; set local jit = off`);
    return await work(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

/** Seconds that `gzip -6` needs for a file. */
export async function gzipSeconds(path: string): Promise<number> {
  const startedAt = performance.now();
  const gzip = spawn('gzip', ['-6', '-c'], { stdio: ['pipe', 'ignore', 'inherit'] });
  const exit = new Promise<void>((resolve, reject) => {
    gzip.once('error', reject);
    gzip.once('exit', () => resolve());
  });
  await pipeline(createReadStream(path, { highWaterMark: 256 * 1024 }), gzip.stdin);
  await exit;
  return (performance.now() - startedAt) / 1_000;
}

interface ExportJob {
  readonly job_id: string;
  readonly status: string;
  readonly failure?: { readonly message: string } | null;
  readonly presigned_urls: readonly ExportedFile[];
}

export interface ExportedFile {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface Finished {
  /** Time from the request until the job is completed. */
  readonly seconds: number;
  /** Number of rows in all files of the export. */
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ExportedFile[];
}

export async function exportOnce(service: Service, body: Body): Promise<Finished> {
  const exports = '/api/v1/analytics/exports';
  const startedAt = performance.now();
  const response = await service.fetch(exports, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
  const { job_id } = (await response.json()) as ExportJob;
  for (;;) {
    const job = (await (await service.fetch(`${exports}/jobs/${job_id}`)).json()) as ExportJob;
    if (job.status === 'completed') {
      const files = job.presigned_urls;
      const rows = sum(files.map((file) => file.rows));
      const bytes = sum(files.map((file) => file.bytes));
      return { seconds: (performance.now() - startedAt) / 1_000, rows, bytes, files };
    }
    if (['failed', 'cancelled'].includes(job.status))
      throw new Error(`the export ${job.status}: ${job.failure?.message}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
