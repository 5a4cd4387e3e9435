import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findEnvironment } from '../../src/access/environment-store.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { formatBytes, formatCount } from '../../src/base/wording.ts';
import { CommandFailed } from '../../src/cli/errors.ts';
import { createProgress } from '../../src/cli/follow.ts';
import { explainProblems } from '../../src/cli/input-files.ts';
import { type Columns, printable, renderTable } from '../../src/cli/terminal.ts';
import { defaultEnvironmentName } from '../../src/domain/caller.ts';
import { type Definitions, kinds } from '../../src/domain/definitions.ts';
import { applyDefinitions } from '../../src/lookups/apply-definitions.ts';
import { readDefinitionsFile } from '../../src/lookups/definitions.ts';
import type { DefinitionList } from '../../src/lookups/seam.ts';
import { readSegment } from '../../src/lookups/segments/read-segment.ts';
import { previewSegment } from '../../src/profiles/segments-http.ts';
import { type Client, type ExportJob, postPipelined } from './client.ts';
import { eventBody } from './made-up-data.ts';
import type { DemoStage } from './stage.ts';

/** Sends events of three months, one per request. Each request is answered after its commit. */
export async function showEvents({ cli, service, key, flags, signal, isWatched }: DemoStage): Promise<void> {
  const { events: count, users } = flags;
  const now = Date.now();
  const body = (n: number): string => eventBody(n, count, users, now);
  const progress = createProgress(cli.terminal, '   events', !isWatched);
  const startedAt = performance.now();
  const perSecond = (done: number): string =>
    `${formatCount(Math.round((done * 1_000) / (performance.now() - startedAt)))} events/s`;
  const onAnswered = (done: number): void => progress.show(done / count, () => perSecond(done));
  try {
    await postPipelined({ url: service.url, path: '/v1/track', key, count, body, onAnswered, signal });
  } finally {
    progress.end();
  }
  cli.terminal.print(
    `   POST /v1/track, one request each: ${formatCount(count)} answered 202, each after its commit; ${perSecond(count)}`,
  );
  cli.terminal.print(`     ${body(0)}`);
}

const sample = join('docs', 'samples', 'definitions.yaml');

/** Applies the sample's definitions, lists them, and shows the number of users of each segment. */
export async function showDefinitions(stage: DemoStage, client: Client): Promise<void> {
  const { cli, service, heading } = stage;
  const { db } = service.system;
  cli.terminal.print(heading('6  Define segments, and see who is in them'));
  const environment = await findEnvironment(db, defaultEnvironmentName);
  if (environment === null) throw new CommandFailed('The first start made no environment.');
  const { environmentId } = environment;
  const lists = await cli.definitionLists();
  const items = await readSample(lists);
  await applyDefinitions(db, environmentId, items, { dryRun: false, force: false, lists });
  const counts = kinds.map((kind) => `${items[kind].length} ${kind.replaceAll('_', ' ')}`);
  cli.terminal.print(`   $ sluice definitions apply ${sample}: ${counts.join(', ')}`);
  const segments = await client.segments();
  const rows = await Promise.all(
    segments.map(async ({ id, title }, index) => {
      const { segment } = readSegment(items.segments[index]?.definition);
      if (segment === null) throw new CommandFailed(`The definition of ${title} cannot be read.`);
      const { users } = await previewSegment(service.system, environmentId, segment, {
        sample: 0,
        timeoutMs: 10_000,
        signal: stage.signal,
      });
      return { id, title, users };
    }),
  );
  const columns: Columns<(typeof rows)[number]> = {
    '>id': ({ id }) => String(id),
    title: ({ title }) => title,
    '>users': ({ users }) => users,
  };
  for (const line of renderTable(columns, rows)) cli.terminal.print(`   ${line}`);
}

async function readSample(lists: readonly DefinitionList[]): Promise<Definitions> {
  const reading = readDefinitionsFile(await readFile(join(packageRoot, sample)), lists);
  if (reading.value === null) throw new CommandFailed(explainProblems(sample, reading));
  return reading.value;
}

const pollMs = 50;
const dayMs = 24 * 60 * 60 * 1000;
const segmentTitle = 'Power users';

/** Exports the users of a segment and their events of the last month, and shows the files. */
export async function showExport({ cli, signal, heading, folder }: DemoStage, client: Client): Promise<void> {
  const { terminal } = cli;
  terminal.print(heading(`7  Export the segment "${segmentTitle}" and its events of the last 30 days`));
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
  terminal.print(
    `   completed after ${seconds} s, from one snapshot; kept below ${join(folder, 'files')}, and each has a signed link`,
  );
  for (const line of renderTable(columns, job.presigned_urls)) terminal.print(`   ${line}`);
  const { presigned_urls: files, manifest } = job;
  for (const { filename, url } of files) {
    if (url === files[0]?.url) terminal.print(`   $ curl '${url}'`);
    const [line = ''] = (await client.text(url)).split('\n', 1);
    terminal.print(`   ${filename.padEnd(nameWidth)}  ${printable(line, longest)}`);
  }
  if (manifest === null) return;
  const content: unknown = JSON.parse(await client.text(manifest.url));
  terminal.print(`   ${manifest.filename.padEnd(nameWidth)}  ${printable(JSON.stringify(content), longest)}`);
}

const nameWidth = 'companies.ndjson'.length;
/** Maximum number of characters in a shown line. */
const longest = 140;

const columns: Columns<ExportJob['presigned_urls'][number]> = {
  file: ({ filename }) => filename,
  '>rows': ({ rows }) => rows,
  '>size': ({ bytes }) => formatBytes(bytes),
  sha256: ({ sha256 }) => `${sha256.slice(0, 16)}…`,
};

async function follow(client: Client, jobId: string, signal: AbortSignal): Promise<ExportJob> {
  for (;;) {
    const job = await client.showExport(jobId);
    if (job.status === 'completed') return job;
    if (job.status === 'failed') throw new CommandFailed(`The export failed: ${job.failure?.message ?? ''}`);
    await delay(pollMs, undefined, { signal });
  }
}
