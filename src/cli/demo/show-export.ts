import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailed } from '../exit-codes.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import { printable, renderTable } from '../table.ts';
import type { Client, ExportJob } from './client.ts';
import type { DemoStage } from './show-loads.ts';

const pollMs = 50;
const dayMs = 24 * 60 * 60 * 1000;
const segmentTitle = 'Power users';

/** The users of a segment and what they did in the last month, as files that say what they hold. */
export async function showExport({ cli, signal, heading }: DemoStage, client: Client): Promise<void> {
  const { terminal } = cli;
  terminal.print(heading(`10  Export the segment "${segmentTitle}" and its events of the last 30 days`));
  const segment = (await client.segments()).find(({ title }) => title === segmentTitle);
  if (segment === undefined) throw new CommandFailed(`There is no segment ${segmentTitle}.`);
  const request = {
    from: new Date(Date.now() - 30 * dayMs).toISOString(),
    segment_id: segment.id,
    exclusions: 'event:dashboard_viewed,property:email',
    compression: 'none',
  };
  terminal.print(`   POST /api/v1/analytics/exports  ${JSON.stringify(request)}`);
  const startedAt = performance.now();
  const job = await follow(client, await client.exportJob(request), signal);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(2);
  terminal.print(`   completed after ${seconds} s, from one snapshot\n`);
  for (const line of renderTable(columns, job.presigned_urls.map(cells))) terminal.print(`   ${line}`);
  for (const { filename, url } of job.presigned_urls) {
    const text = await client.text(url);
    const shown = filename === 'manifest.json' ? manifestLines(text) : text.split('\n', 2);
    terminal.print(`\n   ${filename}`);
    for (const line of shown) terminal.print(`     ${printable(line, 150)}`);
  }
}

const columns = [
  { title: 'file' },
  { title: 'rows', align: 'right' },
  { title: 'size', align: 'right' },
  { title: 'sha256' },
] as const;

function cells({ filename, rows, bytes, sha256 }: ExportJob['presigned_urls'][number]): string[] {
  return [filename, formatCount(rows), formatBytes(bytes), `${sha256.slice(0, 16)}…`];
}

/** A line for each member: the whole of it would fill the screen. */
function manifestLines(text: string): string[] {
  const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return Object.entries(manifest).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
}

async function follow(client: Client, jobId: string, signal: AbortSignal): Promise<ExportJob> {
  for (;;) {
    const job = await client.showExport(jobId);
    if (job.status === 'completed') return job;
    if (job.status === 'failed') throw new CommandFailed(`The export failed: ${job.failure?.message ?? ''}`);
    await delay(pollMs, undefined, { signal });
  }
}
