import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { verifyExport } from '../../src/export/manifest.ts';
import type { Api, Site } from './site.ts';
import { patienceMs, waitFor } from './wait-for.ts';

/** An export as the API shows it. */
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

/** An export that was asked for over HTTP, and is looked at all the time from then on. */
export interface WatchedExport {
  readonly jobId: string;
  /** Waits for its end, which is to be this one; its files, if it has any, have been downloaded and verified then. */
  ended(status: 'completed' | 'failed' | 'cancelled', timeoutMs?: number): Promise<ShownExport>;
  /** Ends the looking. Throws what was wrong in any of the answers. */
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

/** Looks at an export from now on; what an answer showed before does not count. */
export function watch(api: Api, jobId: string): Pick<WatchedExport, 'ended' | 'stop'> {
  let stopped = false;
  let seen: ShownExport | null = null;
  let broken: unknown = null;
  const looking = (async () => {
    while (!stopped) {
      const now = await look(api, jobId);
      if (now !== null) {
        expectLinksOnlyOfCompleted(now);
        if (seen !== null) expectNoWayBack(seen.status, now.status);
        if (now.status === 'completed' && seen?.status !== 'completed') await download(api, now);
        seen = now;
      }
      await sleep(everyMs);
    }
  })().catch((error: unknown) => {
    broken = error;
  });
  return {
    async ended(status, timeoutMs = patienceMs) {
      const isEnd = ({ status: found }: ShownExport) => !['queued', 'processing'].includes(found);
      const end = await waitFor(
        `export ${jobId} to end`,
        () => (broken !== null ? 'broken' : seen !== null && isEnd(seen) && seen),
        { timeoutMs },
      );
      if (end === 'broken') throw broken;
      expect(end, JSON.stringify(end)).toMatchObject({ status });
      return end;
    },
    async stop() {
      stopped = true;
      await looking;
      if (broken !== null) throw broken;
    },
  };
}

/** Null while the database is away, which is said as 503. */
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

/** Every link leads to the bytes that were said, and all of them are what the manifest says; the rows of the data. */
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

/** Of the data, and of the manifest. */
export function linksOf({ presigned_urls: files, manifest }: ShownExport): ShownExport['presigned_urls'] {
  return manifest === null ? files : [...files, manifest];
}

/** What is stored for an export, begun or complete, and the folders that it is in: paths below `exports/<job id>`. */
export async function storedFor(site: Site, jobId: string): Promise<string[]> {
  const folder = join(site.dataDir, 'files', 'exports', jobId);
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.sort();
}

/** One folder, of the attempt that completed it, with the files that have links; nothing else. */
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
