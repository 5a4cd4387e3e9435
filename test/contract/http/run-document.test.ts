import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ExportJob } from '../../../src/export/api.ts';
import type { JobRecord } from '../../../src/http/job.ts';
import type { Run } from '../../../src/http/run.ts';
import { checkRun } from '../../support/oracles/run-document.ts';
import { form, openServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer();
const worker = t.startWorker();

const json = { 'content-type': 'application/json' };
const final = ['completed', 'failed'];

/**
 * Starts a job, and requests its document repeatedly until the job has ended. Checks all these
 * documents, and returns the last one.
 */
async function run(path: string, request: Parameters<typeof server.json>[1]) {
  const { body: job } = await server.json<JobRecord>(path, request);
  const documents: unknown[] = [];
  await waitFor('the job to end', async () => {
    const { body } = await server.json<JobRecord>(`/v1/background_jobs/${job.job_id}`);
    documents.push(body);
    return final.includes(body.status);
  });
  return documents.map(checkRun).at(-1);
}

const exports = '/api/v1/analytics/exports';

async function manifestOf(job: Run | undefined): Promise<Run> {
  const { body } = await server.json<ExportJob>(`${exports}/jobs/${job?.job_id}`);
  const manifest = await fetch(body.manifest?.url ?? '');
  return checkRun(await manifest.json());
}

// proves: provenance
test('a job of every type is a document with its caller, files, options, balanced counts, rejects and phases', async () => {
  const file = 'user_id,plan\nu1,free\nu2,pro\n,pro\n';
  const headers = { 'x-request-id': 'asked-for' };
  const post = { method: 'POST', headers } as const;
  const load = await run('/v1/imports?null=NULL', { ...post, body: form(file) });
  expect(load).toMatchObject({
    schema: 1,
    type: 'import',
    status: 'completed',
    origin: { kind: 'api_key' },
    request_id: 'asked-for',
    sources: [{ filename: 'users.csv', bytes: file.length, rows: 3, sha256: expect.any(String) }],
    files: [],
    options: { entity: 'users', null: ['NULL'], dry_run: false },
    counts: { read: 3, inserted: 2, rejected: 1 },
    rejects: { by_code: { missing_id: 1 }, links: expect.stringMatching(/\/rejects$/) },
    failure: null,
    cursor: null,
  });
  expect(load?.phases.map(({ phase }) => phase)).toEqual(
    expect.arrayContaining(['accepted', 'started', 'merged', 'completed']),
  );

  const failed = await run('/v1/imports?max_errors=0', { ...post, body: form(file) });
  expect(failed).toMatchObject({
    status: 'failed',
    options: { max_errors: 0 },
    failure: { error_code: 'too_many_rejects' },
  });

  const asked = { method: 'POST', headers: json };
  const all = await run(exports, { ...asked, body: '{"format":"csv","emails":["ada@example.com"]}' });
  expect(all).toMatchObject({
    type: 'export',
    sources: [],
    options: { format: 'csv' },
    counts: { written: 2, users: 2, companies: 0, events: 0, stream: 0 },
    cursor: expect.any(String),
  });
  expect(all?.files.map(({ filename, dataset }) => [filename, dataset])).toContainEqual([
    'users.csv.gz',
    'users',
  ]);
  expect(JSON.stringify(all)).not.toContain('ada@example.com');
  const { options, ...inManifest } = await manifestOf(all);
  const { options: _, ...inJob } = all ?? {};
  expect(inManifest).toEqual(inJob);
  expect(options).toMatchObject({ format: 'csv' });
  const stream = await run(exports, { ...asked, body: '{"layout":"stream"}' });
  expect(stream?.counts).toEqual({ written: 2, users: 0, companies: 0, events: 0, stream: 2 });

  const ids = Array.from({ length: 101 }, (_, at) => `u${at}`);
  const some = await run(exports, { ...asked, body: JSON.stringify({ user_id: ids }) });
  expect(some).toMatchObject({ options_cut: true, options: { user_id: ids.slice(0, 100) } });
  expect(await manifestOf(some)).toMatchObject({ options_cut: false, options: { user_id: ids } });
  const manyIds = Array.from({ length: 5_000 }, () => randomUUID());
  const many = await run(exports, { ...asked, body: JSON.stringify({ user_id: manyIds }) });
  expect(many?.options_cut).toBe(true);
  expect(many?.options).not.toHaveProperty('user_id');
  expect((await manifestOf(many)).options).toHaveProperty('user_id', manyIds);

  const deletion = await run('/v1/users', {
    method: 'DELETE',
    headers: json,
    body: '{"users":["u1","unknown"]}',
  });
  expect(deletion).toMatchObject({
    type: 'delete_users',
    options: { ids: 2, purge_exports: false },
    counts: { requested: 2, deleted: 1, not_found: 1, pending: 0 },
  });
  await worker.stop();
});
