import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { verifyExport } from '../../../src/export/manifest.ts';
import { pause } from '../waiting.ts';
import type { Actor, Stage } from './actor.ts';
import type { Tracking } from './track.ts';

/** An export as the API shows it. */
interface ShownExport {
  readonly status: string;
  readonly presigned_urls: readonly {
    readonly filename: string;
    readonly url: string;
    readonly sha256: string;
  }[];
  readonly manifest: ShownExport['presigned_urls'][number] | null;
  readonly failure: { readonly error_code: string; readonly message: string } | null;
}

const address = '/api/v1/analytics/exports';
const giveUpMs = 180_000;
const formats = ['ndjson', 'ndjson', 'csv', 'parquet'] as const;

/**
 * Asks for exports of everything, downloads each that is completed by its links, and compares it with its manifest. One
 * in NDJSON must hold every event that was accepted before it was asked for, and none that was not sent, each once.
 */
export function createExports(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number; readonly tracking: Tracking },
): Actor {
  const { name, tracking } = options;
  const client = stage.client(stage.tenant(options.tenant));
  const random = stage.random(name);
  const problems: string[] = [];
  let [asked, completed, cancelled, lost, rows] = [0, 0, 0, 0, 0];

  async function ask(): Promise<void> {
    const format = random.pick(formats);
    const least = tracking.bounds().accepted;
    const answer = await client.insist({
      method: 'POST',
      path: address,
      body: { format },
      headers: { accept: 'application/json', 'idempotency-key': `${name}-${asked++}` },
      expected: [201],
    });
    if (answer?.status !== 201) return;
    const { job_id } = JSON.parse(answer.text) as { job_id: string };
    const isCancelled = random.chance(0.1);
    if (isCancelled) await cancel(job_id);
    const shown = await awaitEnd(job_id);
    if (shown?.status === 'completed') await examine(job_id, shown, format, least);
    else if (shown?.status === 'cancelled' && isCancelled) cancelled++;
    // After five lost workers an export is given up, and says so.
    else if (shown?.failure?.error_code === 'worker_lost') lost++;
    else problem(`export ${job_id} is ${shown?.status ?? 'not ended'}: ${shown?.failure?.message}`);
  }

  async function cancel(jobId: string): Promise<void> {
    await pause(random.integer(0, 500));
    await client.insist({
      method: 'POST',
      path: `${address}/jobs/${jobId}/cancel`,
      headers: { 'idempotency-key': `cancel-${jobId}` },
      expected: [202, 409],
    });
  }

  async function awaitEnd(jobId: string): Promise<ShownExport | null> {
    const deadline = performance.now() + giveUpMs;
    while (performance.now() < deadline) {
      const answer = await client.once({ method: 'GET', path: `${address}/jobs/${jobId}`, expected: [200] });
      if (answer?.status === 200) {
        const shown = JSON.parse(answer.text) as ShownExport;
        if (shown.status !== 'completed' && shown.presigned_urls.length > 0) {
          problem(`export ${jobId} is ${shown.status} and has links`);
        }
        if (!['queued', 'processing'].includes(shown.status)) return shown;
      }
      await pause(200);
    }
    return null;
  }

  async function examine(jobId: string, shown: ShownExport, format: string, least: number): Promise<void> {
    completed++;
    const most = tracking.bounds().sent;
    const directory = await mkdtemp(join(stage.site.folder, 'export-'));
    try {
      const { presigned_urls: data, manifest } = shown;
      for (const file of manifest === null ? data : [...data, manifest]) {
        const bytes = await download(file.url);
        if (bytes === null)
          return problem(`file ${file.filename} of export ${jobId} could not be downloaded`);
        if (createHash('sha256').update(bytes).digest('hex') !== file.sha256) {
          problem(`file ${file.filename} of export ${jobId} is not the one that was promised`);
        }
        await writeFile(join(directory, file.filename), bytes);
      }
      const checked = await verifyExport(directory);
      rows += checked.rows;
      for (const { filename, problem: what } of checked.differences)
        problem(`export ${jobId}: ${filename} ${what}`);
      if (format === 'ndjson') await compareEvents(jobId, directory, shown, least, most);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  async function compareEvents(
    jobId: string,
    directory: string,
    shown: ShownExport,
    least: number,
    most: number,
  ) {
    const ids: string[] = [];
    for (const { filename } of shown.presigned_urls.filter((file) => file.filename.startsWith('events'))) {
      const text = gunzipSync(await readFile(join(directory, filename))).toString('utf8');
      for (const line of text.split('\n')) {
        const id = line === '' ? '' : (JSON.parse(line) as { event_id: string }).event_id;
        if (id.startsWith(tracking.prefix)) ids.push(id);
      }
    }
    const different = new Set(ids).size;
    if (different !== ids.length) problem(`export ${jobId} has ${ids.length - different} events twice`);
    if (different < least || different > most) {
      problem(
        `export ${jobId} has ${different} events, of ${least} accepted before and ${most} sent by then`,
      );
    }
  }

  /** Links lead to one server, which may be away. */
  async function download(url: string): Promise<Buffer | null> {
    for (let attempt = 0; attempt < 60; attempt++) {
      const response = await fetch(url, { signal: AbortSignal.timeout(30_000) }).catch(() => null);
      if (response?.status === 200) {
        const bytes = await response.arrayBuffer().catch(() => null);
        if (bytes !== null) return Buffer.from(bytes);
      } else if (response !== null && response.status !== 503) {
        problem(`a link was answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
        return null;
      }
      await pause(500);
    }
    return null;
  }

  function problem(sentence: string): void {
    stage.journal.trouble(sentence);
    problems.push(sentence);
  }

  return {
    name,
    async run() {
      while (!stage.closing.aborted) {
        await ask();
        await pause(random.integer(500, 4_000), stage.closing);
      }
    },
    figures: () => ({ asked, completed, cancelled, lost, rows, unanswered: client.unanswered }),
    check: async () => problems,
  };
}
