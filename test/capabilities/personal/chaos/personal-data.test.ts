import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { textRow, workbookFile } from '../../../support/files/workbook-file.ts';
import { ended, progressed } from '../../../support/oracles/exactness.ts';
import { startSluice } from '../../../support/servers/processes.ts';
import type { TestRedis } from '../../../support/servers/redis.ts';
import { startS3 } from '../../../support/servers/s3.ts';
import { type Api, onSite, queues, type Site } from '../../../support/servers/site.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { drop } from '../../inbox/support/inbox.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../notifications/support/webhook-receiver.ts';
import {
  clearBelow,
  clearCompany,
  clearEvent,
  clearIn,
  clearUser,
  personalKey,
  personalRules,
} from '../support/clear-values.ts';

const columns = ['user_id', 'level', ...Object.keys(clearUser(0))];
const csvRow = (id: string, level: string, n: number | string): string =>
  [id, level, ...Object.values(clearUser(n))].join(',');
const csvOf = (...rows: readonly string[]): string => `${[columns.join(','), ...rows].join('\n')}\n`;

/**
 * One good record and four bad ones: one breaks a rule, one lacks an id, one has a surplus cell,
 * and one has a stray quote.
 */
const mixedRows = (name: string): string[] => [
  csvRow(`${name}-1`, '1', `${name}.1`),
  csvRow(`${name}-2`, 'none', `${name}.2`),
  csvRow('', '3', `${name}.3`),
  `${csvRow(`${name}-4`, '4', `${name}.4`)},more`,
  csvRow(`${name}-5`, '"5" ', `${name}.5`),
];
const ndjson = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');
const largeRows = 3_000;
const json = { 'content-type': 'application/json' };

interface House {
  readonly site: Site;
  readonly folder: string;
  readonly writtenFolders: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly hooks: WebhookReceiver;
  readonly answers: Map<string, string>;
}

/** A large run also tests a queue on Redis and files on S3. That takes one more minute. */
const isLarge = process.env['SLUICE_LARGE'] === '1';

// proves: no-clear-value
describe.each(isLarge ? queues : (['postgres'] as const))('a service with the queue on %s', (queue) => {
  test('no personal value is in clear after its load, on any way in or after a crash', async () => {
    await inHouse(queue, async (house) => {
      const { site } = house;
      let api = await serve(house);
      await work(house);
      const rules = { method: 'PUT', headers: json, body: JSON.stringify({ file: personalRules }) };
      await request(house, api, '/v1/rules', rules);
      await command(house, 'notifications', 'add', '--url', house.hooks.url);

      await sendRecords(house, api);
      await sendFiles(house, api);
      await loadFromFolders(house, api);
      api = await killInTheMiddle(house, api);
      await lookAround(house, api);
      await runCommands(house);

      await waitFor('the files of ended loads to be removed', async () => {
        const rows = await site.sql('select from sluice.loads where file_ref is not null and type <> $1', [
          'undo',
        ]);
        return rows.length === 0;
      });
      await expectNothingClear(house);
    });
  });
});

async function inHouse(queue: (typeof queues)[number], run: (house: House) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-personal-'));
  const s3 = queue === 'redis' ? await startS3() : null;
  const hooks = await startWebhookReceiver();
  const temporary = join(folder, 'tmp');
  await mkdir(temporary);
  for (const name of ['drop', 'logs', 'data']) await mkdir(join(folder, name));
  const settings = {
    ...s3?.variables,
    DATA_DIR: join(folder, 'data'),
    TMPDIR: temporary,
    LOG_LEVEL: 'trace',
    INBOX_DIR: join(folder, 'inbox'),
    INBOX_STABLE_MS: '100',
    SCHEDULES_LOCAL_ROOTS: join(folder, 'drop'),
    PERSONAL_KEY: personalKey,
    NOTIFY_ALLOW_PRIVATE: 'true',
  };
  try {
    await onSite({ queue, settings, privatePostgres: true }, async (site) => {
      const redis: Record<string, string> = site.redis === null ? {} : { REDIS_URL: site.redis.url };
      const variables = { ...settings, ...redis, DATABASE_URL: site.databaseUrl };
      const ownFolders = ['data', 'tmp', 'logs'].map((name) => join(folder, name));
      const writtenFolders = [
        ...ownFolders,
        site.postgres?.dataDir ?? '',
        ...(s3 === null ? [] : [s3.folder]),
      ];
      await run({ site, folder, writtenFolders, variables, hooks, answers: new Map() });
    });
  } finally {
    await hooks.stop();
    await s3?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Opens the log file `name`, and passes its descriptor to `start`. */
async function withLog<T>({ folder }: House, name: string, start: (log: number) => Promise<T>): Promise<T> {
  const log = openSync(join(folder, 'logs', name), 'a');
  try {
    return await start(log);
  } finally {
    closeSync(log);
  }
}

const serve = (house: House) => withLog(house, 'serve', (stderr) => house.site.serve({}, { stderr }));
const work = (house: House) => withLog(house, 'work', (stderr) => house.site.work({}, { stderr }));

async function request({ answers }: House, api: Api, path: string, init: RequestInit = {}): Promise<string> {
  const response = await api.fetch(path, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${text}`);
  answers.set(`${init.method ?? 'GET'} ${path}`, text);
  return text;
}

const post = (house: House, api: Api, path: string, body: object) =>
  request(house, api, path, { method: 'POST', headers: json, body: JSON.stringify(body) });

async function sendRecords(house: House, api: Api): Promise<void> {
  const user = (n: string) => ({ user_id: n, metadata: clearUser(n) });
  const event = (n: string) => ({ user_id: n, event_name: 'Paid', metadata: clearEvent(n) });
  const company = (n: string) => ({ company_id: n, metadata: clearCompany(n) });
  await post(house, api, '/v1/identify', { ...user('single'), company: company('single') });
  await post(house, api, '/v1/track', event('single'));
  await post(house, api, '/v1/companies/identify', company('single'));
  const bad = { ...user('bad'), metadata: { ...clearUser('bad'), level: clearUser('bad').email } };
  await post(house, api, '/v1/batch', {
    batch: [
      { type: 'identify', ...user('batch') },
      { type: 'track', ...event('batch') },
      { type: 'company', ...company('batch') },
      { type: 'identify', ...bad },
      { type: clearUser('type').email },
    ],
  });
  const users = { users: [user('bulk'), bad, { metadata: clearUser('no id') }] };
  await completed(house, await post(house, api, '/v1/users/bulk_identify', users));
  const companies = { companies: [company('bulk')] };
  await completed(house, await post(house, api, '/v1/companies/bulk_identify', companies));
  // This request is refused because its body, which contains a personal value, is invalid JSON.
  const broken = `{"user_id":"broken","metadata":{"email":"${clearUser('broken').email}"`;
  const refusal = await api.fetch('/v1/identify', { method: 'POST', headers: json, body: broken });
  house.answers.set('broken JSON', await refusal.text());
  const called = { type: 'identify', userId: 'sdk', traits: clearUser('sdk') };
  await post(house, api, '/v1/i', { ...called, messageId: 'sdk' });
}

async function completed({ site }: House, answer: string): Promise<string> {
  const { job_id: jobId } = JSON.parse(answer) as { job_id: string };
  expect(await ended(site.sql, jobId)).toMatchObject({ status: 'completed' });
  return jobId;
}

const csv = { 'content-type': 'text/csv' };

async function sendFiles(house: House, api: Api): Promise<void> {
  const imports = (body: string | Buffer<ArrayBuffer>, headers: Record<string, string>, options = '') =>
    request(house, api, `/v1/imports${options}`, { method: 'POST', headers, body });
  const firstJob = await completed(house, await imports(csvOf(...mixedRows('csv')), csv));
  await mend(house, api, firstJob);
  const lines = ndjson(
    { user_id: 'nd', metadata: clearUser('nd'), company: { company_id: 'nd', ...clearCompany('nd') } },
    { user_id: 'nd-bad', metadata: { ...clearUser('nd-bad'), level: 'x' } },
    { metadata: clearUser('nd no id') },
  );
  const damaged = `${lines}{"user_id":"nd-cut","metadata":{"email":"${clearUser('cut').email}\n`;
  await completed(house, await imports(damaged, { 'content-type': 'application/x-ndjson' }));
  const events = ndjson(
    {
      event_type: 'track',
      user_id: 'ev',
      event_name: 'Paid',
      timestamp: '2026-11-01T00:00:00Z',
      metadata: clearEvent('ev'),
    },
    { event_type: 'track', event_name: 'Paid', metadata: clearEvent('no user') },
  );
  await completed(house, await imports(events, { 'content-type': 'application/x-ndjson' }, '?entity=auto'));
  const rows = [
    columns,
    ['xlsx', '1', ...Object.values(clearUser('xlsx'))],
    ['', '2', ...Object.values(clearUser('x'))],
  ];
  const sheet = { name: 'Users', rows: rows.map((cells, row) => textRow(row + 1, ...cells)).join('') };
  const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
  await completed(house, await imports(workbookFile({ sheets: [sheet] }), { 'content-type': type }));
  await planAndApply(house, await imports(csvOf(...mixedRows('plan')), csv, '?plan=true'), api);
  const { upload_id: uploadId } = JSON.parse(
    await request(house, api, '/v1/imports/inspect', {
      method: 'POST',
      headers: csv,
      body: csvOf(...mixedRows('inspected')),
    }),
  ) as { upload_id: string };
  await completed(house, await post(house, api, '/v1/imports', { upload_id: uploadId }));
}

async function mend(house: House, api: Api, jobId: string): Promise<void> {
  const job = `/v1/background_jobs/${jobId}`;
  for (const query of ['', '?group_by=cause']) await request(house, api, `${job}/rejects${query}`);
  const body = `${columns.join(',')},sluice_job,sluice_row\n${csvRow('csv-3', '3', 'mended')},${jobId},3\n`;
  await completed(house, await request(house, api, '/v1/imports', { method: 'POST', headers: csv, body }));
}

async function planAndApply(house: House, answer: string, api: Api): Promise<void> {
  const job = `/v1/background_jobs/${await completed(house, answer)}`;
  await request(house, api, `${job}/plan?format=ndjson`);
  await request(house, api, `${job}/apply`, { method: 'POST' });
  const appliedJob = await completed(house, answer);
  await completed(house, await post(house, api, `/v1/background_jobs/${appliedJob}/undo`, {}));
}

async function loadFromFolders(house: House, api: Api): Promise<void> {
  const { site, folder } = house;
  await drop(join(folder, 'inbox/default/users.csv'), csvOf(...mixedRows('inbox')));
  await waitFor('the inbox to be empty', async () => {
    const rows = await site.sql("select from sluice.inbox_files where state = 'concluded'");
    return rows.length === 1;
  });
  await mkdir(join(folder, 'drop/default'), { recursive: true });
  await writeFile(join(folder, 'drop/default/users.csv'), csvOf(...mixedRows('scheduled')));
  const schedule = { cron: '0 0 1 1 *', load: { files: { pattern: '*.csv' } } };
  const body = JSON.stringify(schedule);
  await request(house, api, '/v1/schedules/nightly', { method: 'PUT', headers: json, body });
  const path = '/v1/schedules/nightly/runs';
  await post(house, api, path, {});
  const run = await waitFor('the run to end', async () => {
    const [latest] = JSON.parse(await request(house, api, path)) as { status: string }[];
    return ['queued', 'running', 'waiting'].includes(latest?.status ?? 'queued') ? null : latest;
  });
  expect(run).toMatchObject({ status: 'completed_with_rejects' });
}

async function killInTheMiddle(house: House, apiBefore: Api): Promise<Api> {
  const { site } = house;
  const rows = Array.from({ length: largeRows }, (_, n) => csvRow(n % 100 === 0 ? '' : `large-${n}`, '1', n));
  const jobId = await apiBefore.upload(Buffer.from(csvOf(...rows)));
  await progressed(site.sql, jobId, 0.3);
  await Promise.all([apiBefore.process.kill('SIGKILL'), site.killWorkers()]);
  await site.expireLeases();
  const api = await serve(house);
  await work(house);
  expect(await ended(site.sql, jobId)).toMatchObject({ status: 'completed', rejected: largeRows / 100 });
  return api;
}

async function lookAround(house: House, api: Api): Promise<void> {
  for (const path of [
    '/v1/users/csv-1',
    '/v1/users/single/events',
    '/v1/companies/single',
    '/v1/background_jobs?limit=100',
    '/v1/overview',
    '/v1/inbox',
    '/v1/deliveries',
    '/metrics',
  ])
    await request(house, api, path);
  const exportRequest = { event_type: ['users', 'companies', 'events'], format: 'ndjson' };
  const answer = await post(house, api, '/api/v1/analytics/exports', exportRequest);
  const { job_id: jobId } = JSON.parse(answer) as { job_id: string };
  const job = await waitFor('the export to complete', async () => {
    const text = await request(house, api, `/api/v1/analytics/exports/jobs/${jobId}`);
    const exportJob = JSON.parse(text) as { status: string; presigned_urls: { url: string }[] };
    return exportJob.status === 'completed' ? exportJob : null;
  });
  for (const { url } of job.presigned_urls) {
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(bytes.length).toBeGreaterThan(0);
    expect(clearIn('an export', bytes)).toEqual([]);
  }
}

async function command(house: House, ...args: readonly string[]): Promise<void> {
  const { folder, variables, answers } = house;
  const run = startSluice(args, variables);
  await waitFor(`${run.name} to end`, () => run.ending !== null);
  expect([run.output, run.ending]).toEqual([expect.anything(), 'exit code 0']);
  answers.set(`sluice ${args.join(' ')}`.replaceAll(folder, ''), run.output);
}

async function runCommands(house: House): Promise<void> {
  const { folder, site } = house;
  const file = join(folder, 'drop/cli.csv');
  await writeFile(file, csvOf(csvRow('cli', '1', 'cli'), csvRow('cli-bad', 'x', 'cli.bad')));
  await command(house, 'import', file, '--rejects-dir', join(folder, 'drop'));
  await command(house, 'jobs', 'list');
  await command(house, 'status');
  await site.sql('checkpoint');
}

async function expectNothingClear({ site, writtenFolders, answers, hooks }: House): Promise<void> {
  await site.sql('checkpoint');
  const clearPlaces = await clearBelow(...writtenFolders);
  if (site.redis !== null) clearPlaces.push(...(await clearInRedis(site.redis)));
  for (const [name, text] of answers) clearPlaces.push(...clearIn(name, text));
  for (const { body } of hooks.received) clearPlaces.push(...clearIn('a webhook', body));
  expect(hooks.received.length).toBeGreaterThan(0);
  expect(clearPlaces).toEqual([]);
}

async function clearInRedis({ url, configure }: TestRedis): Promise<string[]> {
  await configure('rdbcompression', 'no');
  const client = new Redis(url);
  try {
    const keys = await client.keys('*');
    const dumps = await Promise.all(
      keys.map(async (key) => clearIn(key, (await client.dumpBuffer(key)) ?? '')),
    );
    return dumps.flat();
  } finally {
    client.disconnect();
  }
}
