import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import type { ScheduleRun } from '../../../src/capabilities/schedules/api.ts';
import { endWaitingRuns } from '../../../src/capabilities/schedules/end-run.ts';
import { renderScheduleRun, renderScheduleRuns } from '../../../src/capabilities/schedules/render-run.ts';
import { readRuns } from '../../../src/capabilities/schedules/run-store.ts';
import type { ScheduleDefinition } from '../../../src/capabilities/schedules/schema.ts';
import { databaseOn } from '../../../src/postgres/database.ts';
import { checkRun } from '../../support/oracles/run-document.ts';
import { openServer } from '../../support/servers/http.ts';
import { startWebServer } from '../../support/servers/web-server.ts';
import { waitFor } from '../../support/wait-for.ts';
import { doNext, readSchedule, requestRun, scheduleContext } from './support/schedules.ts';

const { t, server } = await openServer();
const worker = t.startWorker();
const folder = await mkdtemp(join(tmpdir(), 'sluice-run-document-'));
const drop = join(folder, 'default');
await mkdir(drop);
const web = await startWebServer('http');
afterAll(async () => {
  await worker.stop();
  await web.stop();
  await rm(folder, { recursive: true, force: true });
});
const { environmentId } = t.environment;
const context = scheduleContext(t, {
  localRoots: [folder],
  exportRoots: [folder],
  allowPrivate: true,
});
const address = 'ops@example.com';
let minutes = 0;

/** Links begin with the address that the caller used. Links in events begin with PUBLIC_URL. */
const withoutHosts = (document: object): unknown =>
  JSON.parse(JSON.stringify(document).replaceAll(/https?:\/\/[^/"]+/g, ''));

/**
 * Runs a schedule to its end. Checks the run's document after every step, and checks that the event
 * about the end contains the same document. Returns the document.
 */
async function run(fields: Readonly<Record<string, unknown>>): Promise<ScheduleRun> {
  const schedule: ScheduleDefinition = readSchedule({ notify: { emails: [address] }, ...fields });
  const dueAt = new Date(Date.UTC(2026, 0, 1, 0, ++minutes));
  await requestRun(context, environmentId, schedule, dueAt);
  const look = async () => {
    const { body } = await server.json<ScheduleRun[]>(`/v1/schedules/${schedule.name}/runs`);
    expect(body).toHaveLength(1);
    checkRun(body[0]);
    return body[0] as ScheduleRun;
  };
  expect(await look()).toMatchObject({ status: 'queued', phases: [{ phase: 'accepted' }] });
  const document = await waitFor('the run to end', async () => {
    await doNext(context);
    await look();
    await endWaitingRuns(context);
    const shown = await look();
    return shown.phases.at(-1)?.phase === shown.status ? shown : null;
  });
  const { rows } = await t.system.pool.query<{ body: string }>(
    `select body from notification_events where type like 'schedule.%' and body::jsonb -> 'data' ->> 'schedule' = $1`,
    [schedule.name],
  );
  expect(rows).toHaveLength(1);
  const inEvent = JSON.stringify(JSON.parse(rows[0]?.body ?? '').data);
  expect(withoutHosts(JSON.parse(rows[0]?.body ?? '').data)).toEqual(withoutHosts(document));
  expect(inEvent).not.toContain(address);
  expect(document).toMatchObject({
    schema: 1,
    job_id: null,
    type: 'schedule',
    origin: { kind: 'schedule', name: schedule.name },
    request_id: null,
    schedule: schedule.name,
    due_at: dueAt.toISOString(),
  });
  return document;
}

// proves: provenance
test('the run of a schedule is one document: the sum of the loads that it created', async () => {
  await writeFile(join(drop, 'a.csv'), 'user_id,plan\nu1,free\n,pro\n,pro\n');
  await writeFile(join(drop, 'b.csv'), 'user_id,plan\nu2,free\nu3,pro\n');
  const load = { files: { pattern: '[ab].csv' }, max_errors: 5 };
  const first = await run({ load });
  expect(first).toMatchObject({
    status: 'completed_with_rejects',
    sources: [
      { filename: 'a.csv', bytes: 31, rows: 3, sha256: expect.any(String) },
      { filename: 'b.csv', rows: 2 },
    ],
    files: [],
    options: { entity: 'auto', max_errors: 5 },
    counts: { read: 5, inserted: 3, rejected: 2 },
    rejects: { count: 2, by_code: { missing_id: 2 } },
    failure: null,
    cursor: null,
    items: [{ status: 'completed' }, { status: 'completed' }],
  });
  expect(first.options).not.toHaveProperty('files');
  const [refused, accepted] = first.items;
  expect(first.rejects.jobs).toEqual([
    { job_id: refused?.job_id, count: 2, links: `${refused?.links}/rejects` },
  ]);
  expect(first.rejects.links).toBe(`${refused?.links}/rejects`);
  expect((await server.fetch(new URL(first.rejects.links ?? '').pathname)).status).toBe(200);

  await writeFile(join(drop, 'c.csv'), 'user_id,plan\n"a"b,free\nu4,free\n');
  await writeFile(join(drop, 'd.csv'), 'user_id,plan\n,free\n');
  const second = await run({ load: { files: { pattern: '[b-d].csv' } } });
  expect(second.items).toMatchObject([{ job_id: accepted?.job_id, is_new: false }, {}, {}]);
  expect(second.sources.map(({ filename }) => filename)).toEqual(['c.csv', 'd.csv']);
  expect(second).toMatchObject({ counts: { read: 3, inserted: 1, rejected: 2 }, rejects: { links: null } });
  expect(second.rejects.by_code).toEqual({ missing_id: 1, invalid_quote: 1 });
  expect(second.rejects.jobs.map(({ count }) => count)).toEqual([1, 1]);
});

// proves: provenance
test('the run of a schedule that exports has files, counts and cursor, and no addresses', async () => {
  const { body: job } = await server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    headers: { 'content-type': 'text/csv' },
    body: 'company_id\nc1\nc2\n',
  });
  await server.ended(job.job_id);
  const exported = { event_type: 'companies', format: 'csv', to_dir: 'copies', emails: [address] };
  const document = await run({ export: exported });
  expect(document).toMatchObject({
    status: 'completed',
    sources: [],
    files: [{ filename: 'companies.csv.gz', dataset: 'companies', rows: 2 }],
    options: { event_type: 'companies', format: 'csv', to_dir: 'copies' },
    counts: { written: 2, users: 0, companies: 2, events: 0, stream: 0 },
    rejects: { count: 0, by_code: {}, links: null, jobs: [] },
    cursor: expect.any(String),
    delivered_to: expect.stringContaining('copies'),
    items: [{ item: 'export', status: 'completed', links: expect.stringContaining('/exports/jobs/') }],
  });
});

// proves: provenance
test('the document of a failed run has its reason, and no secret of its source', async () => {
  const source = {
    url: `${web.url}/none`,
    headers: { Authorization: 'secret-in-header' },
    allow_http: true,
    allow_private: true,
  };
  const document = await run({ load: { http: source, entity: 'users' } });
  expect(document).toMatchObject({
    status: 'failed',
    sources: [],
    options: { entity: 'users' },
    counts: { read: 0 },
    failure: { error_code: 'unexpected_status', message: expect.stringContaining('404') },
  });
  expect(web.requests.at(-1)?.headers.authorization).toBe('secret-in-header');
  expect(JSON.stringify(document)).not.toContain('secret-in-header');
});

test('runs that are listed together have the documents of single runs, with the queries of one', async () => {
  await writeFile(join(drop, 'e.csv'), 'user_id,plan\n,free\n');
  await writeFile(join(drop, 'f.csv'), 'user_id,plan\nu5,free,x\n,free\n');
  await run({ load: { files: { pattern: 'e.csv' } } });
  await run({ load: { files: { pattern: '[ef].csv' } } });
  await run({ export: { event_type: 'users' } });
  const { db, pool } = t.system;
  const runs = await readRuns(db, { environmentId }, 10);
  const documents: object[] = [];
  for (const each of runs) documents.push(await renderScheduleRun(db, each, server.address));
  const client = await pool.connect();
  try {
    let queries = 0;
    const query = (...statement: Parameters<typeof client.query>) => {
      queries++;
      return client.query(...statement);
    };
    const counted = databaseOn({ query } as unknown as pg.PoolClient);
    expect(await renderScheduleRuns(counted, runs, server.address)).toEqual(documents);
    // Rendering all documents needs at most five queries: for items, loads, exports, files of
    // exports, and rejects.
    expect(queries).toBeLessThanOrEqual(5);
  } finally {
    client.release();
  }
});
