import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { connectTo } from '../support/servers/connect.ts';
import { createEmptyDatabase } from '../support/servers/postgres.ts';
import { type Started, startService, temporaryFolder } from './cli.ts';
import { call, type Job, jobEnded, usersCsv } from './service.ts';

const folder = join(import.meta.dirname, '../baselines');
const versions = await readdir(folder);
const key = 'baseline-key-baseline-key-baseline-key';

/** Facts that `tools/make-baseline.ts` stored: job ids, and an export of all data. */
interface Facts {
  readonly changed: string;
  readonly plan: string;
  readonly held: string;
  readonly files: Readonly<Record<string, string>>;
}

interface ExportedFile {
  readonly filename: string;
  readonly url: string;
}

/** Starts the current program on the database and files of an earlier version. */
async function startOn(version: string): Promise<{ readonly service: Started; readonly facts: Facts }> {
  const { url, drop } = await createEmptyDatabase();
  cleanUpAfter('file', drop);
  const dump = await readFile(join(folder, version, 'database.sql'), 'utf8');
  await connectTo(url, (client) => client.query(dump));
  const dataDir = await temporaryFolder('file');
  await cp(join(folder, version, 'files'), join(dataDir, 'files'), { recursive: true });
  const retention = { FILE_RETENTION_DAYS: '10000', JOB_RETENTION_DAYS: '10000', CHANGES_DAYS: '10000' };
  const env = { ...retention, DATABASE_URL: url, API_KEY: key };
  const service = await startService(dataDir, env, { until: 'file' });
  const facts = JSON.parse(await readFile(join(folder, version, 'facts.json'), 'utf8')) as Facts;
  return { service, facts };
}

async function run({ url }: Started, path: string, body: string, type = 'application/json'): Promise<Job> {
  const headers = { 'content-type': type };
  const response = await call(url, key, path, { method: 'POST', body, headers });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return jobEnded(url, key, ((await response.json()) as Job).job_id);
}

/**
 * Returns the lines of each file. The lines are sorted, because an export does not guarantee an
 * order.
 */
async function exported(service: Started, body: object): Promise<Record<string, string[]>> {
  const settings = { format: 'ndjson', compression: 'none', ...body };
  const { job_id } = await run(service, '/api/v1/analytics/exports', JSON.stringify(settings));
  const job = await call(service.url, key, `/api/v1/analytics/exports/jobs/${job_id}`);
  const { presigned_urls } = (await job.json()) as { presigned_urls: readonly ExportedFile[] };
  const files: Record<string, string[]> = {};
  for (const { filename, url } of presigned_urls) files[filename] = linesOf(await (await fetch(url)).text());
  return files;
}

const linesOf = (text: string): string[] => text.trimEnd().split('\n').sort();

// proves: every-version
describe.each(versions)('the data of %s', (version) => {
  let service: Started;
  let facts: Facts;
  beforeAll(async () => {
    ({ service, facts } = await startOn(version));
  });

  test('the data of an earlier version is exported as that version exported it', async () => {
    const files = Object.entries(facts.files).map(([name, text]) => [name, linesOf(text)]);
    expect(await exported(service, { include_removed: true })).toEqual(Object.fromEntries(files));
  });

  test('loads, undos, plans and held files of an earlier version continue', async () => {
    const job = (id: string) => `/v1/background_jobs/${id}`;
    const undone = await run(service, `${job(facts.changed)}/undo`, '{}');
    expect(undone).toMatchObject({ status: 'completed', counts: { updated: 19 } });
    const applied = await run(service, `${job(facts.plan)}/apply`, '{"on_drift":"proceed"}');
    expect(applied).toMatchObject({ status: 'completed', counts: { updated: 5 } });
    const released = await run(service, `${job(facts.held)}/apply`, '{}');
    expect(released).toMatchObject({ status: 'completed', counts: { updated: 3 } });
    const loaded = await run(service, '/v1/imports?entity=users', usersCsv(100), 'text/csv');
    expect(loaded).toMatchObject({ status: 'completed', counts: { read: 100, rejected: 1 } });
    const user = await call(service.url, key, '/v1/users/u1');
    expect(await user.json()).toMatchObject({ metadata: { plan: 'held', version: 'one' } });
  });
});
