import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { verifyExport } from '../../../src/export/manifest.ts';
import type { Api, Site } from '../servers/site.ts';
import { patienceMs, waitFor } from '../wait-for.ts';

export interface ShownExport {
  readonly status: string;
  readonly rows: number;
  readonly cursor: string | null;
  readonly presigned_urls: readonly {
    readonly filename: string;
    readonly url: string;
    readonly bytes: number;
    readonly sha256: string;
  }[];
  readonly manifest: ShownExport['presigned_urls'][number] | null;
  readonly failure: { readonly error_code: string; readonly message: string } | null;
}

/** An export that was requested over HTTP and is polled until it ends. */
export interface WatchedExport {
  readonly jobId: string;
  /**
   * Waits until the export has ended with the given status, and its files have been downloaded and
   * verified.
   */
  ended(status: 'completed' | 'failed' | 'cancelled', timeoutMs?: number): Promise<ShownExport>;
  /** Stops polling. Throws the first fault found in any response. */
  stop(): Promise<void>;
}

const everyMs = 40;
const inOrder = ['queued', 'processing', 'completed'];

export async function askForExport(api: Api, body: object): Promise<WatchedExport> {
  const response = await api.fetch('/api/v1/analytics/exports', {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', accept: 'application/json' },
  });
  const created = (await response.json()) as { job_id: string };
  expect(response.status, JSON.stringify(created)).toBe(201);
  return { ...watch(api, created.job_id), jobId: created.job_id };
}

/** Polls the export from now on, and checks each response. */
export function watch(api: Api, jobId: string): Pick<WatchedExport, 'ended' | 'stop'> {
  let isStopped = false;
  let last: ShownExport | null = null;
  let fault: unknown = null;
  const looking = (async () => {
    while (!isStopped) {
      const now = await look(api, jobId);
      if (now !== null) {
        expectLinksOnlyOfCompleted(now);
        if (last !== null) expectNoWayBack(last.status, now.status);
        if (now.status === 'completed' && last?.status !== 'completed') await download(api, now);
        last = now;
      }
      await sleep(everyMs);
    }
  })().catch((error: unknown) => {
    fault = error;
  });
  return {
    async ended(status, timeoutMs = patienceMs) {
      const isEnd = ({ status: current }: ShownExport) => !['queued', 'processing'].includes(current);
      const end = await waitFor(
        `export ${jobId} to end`,
        () => (fault !== null ? 'broken' : last !== null && isEnd(last) && last),
        { timeoutMs },
      );
      if (end === 'broken') throw fault;
      expect(end, JSON.stringify(end)).toMatchObject({ status });
      return end;
    },
    async stop() {
      isStopped = true;
      await looking;
      if (fault !== null) throw fault;
    },
  };
}

/**
 * Requests the export. Returns `null` if the response is 503 because the database is unavailable.
 */
async function look(api: Api, jobId: string): Promise<ShownExport | null> {
  const response = await api.fetch(`/api/v1/analytics/exports/jobs/${jobId}`);
  const text = await response.text();
  if (response.status === 503) return null;
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as ShownExport;
}

function expectLinksOnlyOfCompleted(shown: ShownExport): void {
  const names = linksOf(shown).map(({ filename }) => filename);
  expect(names.includes('manifest.json'), JSON.stringify(shown)).toBe(shown.status === 'completed');
  if (shown.status !== 'completed') expect(names).toEqual([]);
  expect(shown.failure !== null).toBe(shown.status === 'failed');
}

function expectNoWayBack(before: string, now: string): void {
  if (!inOrder.includes(before) || before === 'completed') expect(now).toBe(before);
  else if (inOrder.includes(now))
    expect(inOrder.indexOf(now)).toBeGreaterThanOrEqual(inOrder.indexOf(before));
}

/** Expects that the bytes of every linked file match the manifest. Returns the number of rows. */
export async function download(api: Api, shown: ShownExport): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-download-'));
  try {
    for (const { filename, url, bytes, sha256 } of linksOf(shown)) {
      const { pathname, search, searchParams } = new URL(url);
      const fromS3 = searchParams.has('X-Amz-Signature');
      const response = await fetch(fromS3 ? url : new URL(`${pathname}${search}`, api.url));
      expect(response.status, filename).toBe(200);
      const body = Buffer.from(await response.arrayBuffer());
      expect([filename, body.length, createHash('sha256').update(body).digest('hex')]).toEqual([
        ...[filename, bytes, sha256],
      ]);
      await writeFile(join(directory, filename), body);
    }
    const { differences, rows } = await verifyExport(directory);
    expect(differences).toEqual([]);
    return rows;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function linksOf({ presigned_urls: files, manifest }: ShownExport): ShownExport['presigned_urls'] {
  return manifest === null ? files : [...files, manifest];
}

/** Returns all files (including unfinished ones) and folders below `exports/<job id>`. */
export async function storedFor(site: Site, jobId: string): Promise<string[]> {
  const folder = join(site.dataDir, 'files', 'exports', jobId);
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.sort();
}

/**
 * Expects that only the folder of the attempt that completed the export remains, and that it
 * contains exactly the linked files.
 */
export async function expectNoOrphans(site: Site, jobId: string, shown: ShownExport): Promise<void> {
  const rows = await site.sql<{ ref: string }>(
    'select file_ref as ref from sluice.export_files join sluice.exports using (export_id) where job_id = $1',
    [jobId],
  );
  expect(rows).toHaveLength(linksOf(shown).length);
  const files = rows.map(({ ref }) => ref.slice(`exports/${jobId}/`.length));
  const folders = new Set(files.map((file) => file.slice(0, file.indexOf('/'))));
  expect(await storedFor(site, jobId)).toEqual([...folders, ...files].sort());
}
