import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createApiKey } from '../../../src/access/key-store.ts';
import type { Schedule } from '../../../src/capabilities/schedules/api.ts';
import { MAX_SCHEDULE_BYTES } from '../../../src/capabilities/schedules/file.ts';
import { MAX_SCHEDULES } from '../../../src/capabilities/schedules/schema.ts';
import { askForRun } from '../../../src/capabilities/schedules/start.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import { readSchedule } from './support/schedules.ts';

const folder = await mkdtemp(join(tmpdir(), 'sluice-schedules-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
await writeFile(join(folder, 'commands.yaml'), 'crm: { run: [curl, "https://crm.example/{day}"] }\n');
const { t, server } = await openServer({
  settings: {
    SCHEDULES_LOCAL_ROOTS: folder,
    SCHEDULES_EXPORT_ROOTS: folder,
    SCHEDULES_VARIABLES: 'default:SCHEDULE_TOKEN, other:SCHEDULE_THEIRS',
    SOURCE_COMMANDS: join(folder, 'commands.yaml'),
  },
});
const otherTenant = await t.addEnvironment('other');
const { environmentId } = t.environment;
afterEach(() => t.system.pool.query('truncate schedules cascade'));

const path = '/v1/schedules';
const nightly = {
  name: 'nightly',
  cron: '0 3 * * *',
  timezone: 'Europe/Berlin',
  load: {
    http: { url: 'https://example.com/u.csv', headers: { Authorization: `Bearer \${env:SCHEDULE_TOKEN}` } },
    map: { Kunde: 'user_id' },
    max_errors: '5%',
  },
};
const weekly = { name: 'weekly', cron: '@weekly', export: { range: 'last_7_days', format: 'parquet' } };
const put = (json: Readonly<Record<string, unknown>> & { readonly name: string }, key = t.key) =>
  server.json<Schedule>(`${path}/${json.name}`, { method: 'PUT', json, key });
const refusalOfPut = (name: string, json: object, key = t.key) =>
  refusalOf(server, `${path}/${name}`, { method: 'PUT', json, key });
const remove = (name: string, key = t.key) => server.fetch(`${path}/${name}`, { method: 'DELETE', key });
const show = async (name: string) => (await server.json<Schedule>(`${path}/${name}`)).body;
const listNames = async (key = t.key) => {
  const { body } = await server.json<{ data: Schedule[] }>(path, { key });
  return body.data.map(({ schedule }) => schedule);
};

// proves: schedule-made
test('a schedule is created, shown, listed by name, replaced and deleted', async () => {
  expect((await put(weekly)).status).toBe(200);
  const created = await put(nightly);
  expect(created).toMatchObject({
    status: 200,
    body: { schedule: 'nightly', kind: 'load', time_zone: 'Europe/Berlin', enabled: true },
  });
  expect(created.body.definition).toMatchObject({ ...nightly, missed: 'run_once' });
  expect(created.body.next_times).toHaveLength(5);
  expect(created.body.next_times[0]).toBe(created.body.next_due);
  expect((await show('nightly')).what).toBe('http https://example.com/u.csv');
  expect(await listNames()).toEqual(['nightly', 'weekly']);
  const { definition } = await show('nightly');
  expect(definition).toEqual(created.body.definition);
  const replacement = { ...(definition as typeof nightly), cron: '@hourly', enabled: false };
  expect((await put(replacement)).body).toMatchObject({ cron: '@hourly', next_due: null, next_times: [] });
  expect(await show('nightly')).toMatchObject({ cron: '@hourly' });
  expect((await remove('nightly')).status).toBe(204);
  expect(await refusalOf(server, `${path}/nightly`)).toEqual([404, ['not_found']]);
  expect((await remove('nightly')).status).toBe(404);
  expect(await listNames()).toEqual(['weekly']);
});

test('a deleted schedule loses its history, except while one of its runs is active', async () => {
  await put(nightly);
  const due = new Date('2026-03-01T00:00:00Z');
  await askForRun(t.system, environmentId, 'nightly', due);
  expect((await remove('nightly')).status).toBe(204);
  expect(await refusalOf(server, `${path}/nightly`)).toEqual([404, ['not_found']]);
  expect((await server.json<object[]>(`${path}/nightly/runs`)).body).toHaveLength(1);
  expect((await put(nightly)).body.paused_at).toBeNull();
  await t.system.pool.query(`update schedule_runs set status = 'completed', ended_at = now()`);
  expect((await remove('nightly')).status).toBe(204);
  expect(await refusalOf(server, `${path}/nightly/runs`)).toEqual([404, ['not_found']]);
  const { rows } = await t.system.pool.query('select 1 from schedules union all select 1 from schedule_runs');
  expect(rows).toEqual([]);
});

test('a wrong schedule is refused with the place or line of each problem', async () => {
  const wrong = {
    name: 'A b',
    cron: '* * *',
    colour: 'red',
    environment: 'other',
    load: { http: { url: 'http://example.com/' }, files: { pattern: '../x' }, max_errors: 'many' },
  };
  const { status, body } = await server.json<ErrorBody>(`${path}/a`, { method: 'PUT', json: wrong });
  expect(status).toBe(400);
  expect(new Set(body.errors.map(({ error_code, details }) => `${error_code} ${details}`))).toEqual(
    new Set(
      [
        'colour',
        'cron',
        'environment',
        'load',
        'load.files.pattern',
        'load.http.url',
        'load.max_errors',
        'name',
      ].map((place) => `invalid_field ${place}`),
    ),
  );
  const withoutWork = { method: 'PUT', json: { cron: '@daily' } };
  expect((await server.json<ErrorBody>(`${path}/a`, withoutWork)).body.errors[0]?.message).toBe(
    'The schedule must have either load or export',
  );
  const file = 'cron: "0 3 * *"\nload:\n  files: { pattern: users.csv }\n  colour: red\n';
  const text = await server.json<ErrorBody>(`${path}/a`, { method: 'PUT', json: { file } });
  expect(text.body.errors.map(({ details }) => details)).toEqual([
    'file: line 1, column 7',
    'file: line 4, column 3',
  ]);
  const valid = { file: 'cron: "0 3 * * *"\nload: { files: { pattern: users.csv } }\n' };
  expect((await server.json<Schedule>(`${path}/a`, { method: 'PUT', json: valid })).body).toMatchObject({
    schedule: 'a',
    time_zone: 'UTC',
  });
  expect(await refusalOfPut('nightly', { ...nightly, name: 'another' })).toEqual([400, ['invalid_field']]);
  const map = Object.fromEntries(
    Array.from({ length: 400 }, (_, at) => [`${at}`.padEnd(200, 'x'), `n${at}`]),
  );
  const tooLarge = { ...nightly, load: { ...nightly.load, map } };
  expect(JSON.stringify(tooLarge).length).toBeGreaterThan(MAX_SCHEDULE_BYTES);
  expect(await refusalOfPut('nightly', tooLarge)).toEqual([400, ['invalid_field']]);
  expect(await listNames()).toEqual(['a']);
});

// proves: schedule-confined
test('foreign variables, secrets in clear and other folders are refused, not stored', async () => {
  const { load } = nightly;
  const http = (more: object) => ({ http: { ...load.http, ...more } });
  const s3 = {
    url: 's3://files/',
    access_key: `\${env:SCHEDULE_TOKEN}`,
    secret_key: `\${env:SCHEDULE_TOKEN}`,
  };
  const refusedChanges: readonly [string, object][] = [
    ['load', { load: http({ headers: { a: `\${env:SCHEDULE_THEIRS}` } }) }],
    ['load', { load: http({ url: `https://example.com/\${env:SCHEDULE_OTHER}` }) }],
    ['load.http.headers.Authorization', { load: http({ headers: { Authorization: 'Bearer geheim' } }) }],
    ['load.http.url', { load: http({ url: 'https://example.com/?a=b&access_token=geheim' }) }],
    ['load.http.url', { load: http({ url: 'https://example.com/?sig=geheim' }) }],
    ['load.http.url', { load: http({ url: `https://\${env:SCHEDULE_TOKEN}.example.com/` }) }],
    ['load.s3.secret_key', { load: { s3: { ...s3, secret_key: 'geheim' } } }],
    ['load.s3.access_key', { load: { s3: { ...s3, access_key: undefined } } }],
    ['load.files.pattern', { load: { files: { pattern: '/etc/*.csv' } } }],
    ['export.to_dir', { load: undefined, export: { to_dir: folder } }],
    ['load.command', { load: { command: { name: 'shop' } } }],
    ['load.command', { load: { command: { name: 'crm' } } }],
    ['export.to_dir', { load: undefined, export: { event_type: 'users', to_dir: `a/${'é'.repeat(128)}` } }],
  ];
  for (const [place, change] of refusedChanges) {
    const json = { ...nightly, ...change };
    const { status, body } = await server.json<ErrorBody>(`${path}/nightly`, { method: 'PUT', json });
    expect([place, status, body.errors.map(({ details }) => details)]).toEqual([place, 400, [place]]);
    expect(JSON.stringify(body)).not.toContain('geheim');
  }
  expect((await t.system.pool.query('select 1 from schedules')).rows).toEqual([]);
  const allowedLoads = [
    http({ headers: { Accept: 'text/csv', 'X-Key': `\${env:SCHEDULE_TOKEN}` } }),
    http({ url: `https://example.com/?page=2&token=\${env:SCHEDULE_TOKEN}` }),
    { s3 },
    { files: { pattern: 'users-*.csv' } },
    { command: { name: 'crm', parameters: { day: 'today' } } },
  ];
  for (const [at, each] of allowedLoads.entries()) {
    expect((await put({ ...nightly, name: `n${at}`, load: each })).status).toBe(200);
  }
});

test('a schedule of another environment is hidden, and its name is free', async () => {
  await put(weekly);
  expect(await listNames(otherTenant.key)).toEqual([]);
  for (const method of ['GET', 'DELETE', 'PATCH']) {
    const json = method === 'PATCH' ? { json: { paused: true } } : {};
    const request = { method, key: otherTenant.key, ...json };
    expect([method, ...(await refusalOf(server, `${path}/weekly`, request))]).toEqual([
      method,
      404,
      ['not_found'],
    ]);
  }
  expect((await put({ ...weekly, cron: '@daily' } as typeof weekly, otherTenant.key)).status).toBe(200);
  expect((await show('weekly')).cron).toBe('@weekly');
  expect((await remove('weekly', otherTenant.key)).status).toBe(204);
  expect(await listNames()).toEqual(['weekly']);
});

test('a key with import makes schedules of loads, and with export also of exports', async () => {
  const keyOf = async (...scopes: ('read' | 'import' | 'export')[]) =>
    (await createApiKey(t.system.db, environmentId, { label: 'x', scopes })).key;
  const reader = await keyOf('read');
  const importer = await keyOf('import');
  const importerAndExporter = await keyOf('import', 'export');
  const refusal = [403, ['insufficient_scope']];
  expect(await refusalOfPut('nightly', nightly, reader)).toEqual(refusal);
  expect(await refusalOfPut('weekly', weekly, importer)).toEqual(refusal);
  expect((await put(nightly, importer)).status).toBe(200);
  expect((await put(weekly, importerAndExporter)).status).toBe(200);
  expect(await refusalOfPut('weekly', { ...nightly, name: 'weekly' }, importer)).toEqual(refusal);
  const run = { method: 'POST', json: {}, key: importer };
  expect(await refusalOf(server, `${path}/weekly/runs`, run)).toEqual(refusal);
  expect((await server.json(`${path}/weekly/runs`, { ...run, key: importerAndExporter })).status).toBe(202);
  expect((await remove('weekly', importer)).status).toBe(403);
  expect((await remove('nightly', importer)).status).toBe(204);
});

test('an environment has a bounded number of schedules', async () => {
  await t.system.pool.query(
    `insert into schedules (environment_id, schedule_name, considered_until, definition)
    select $1, 's' || n, now(), $2::jsonb || jsonb_build_object('name', 's' || n) from generate_series(1, $3::int) n`,
    [environmentId, readSchedule(weekly), MAX_SCHEDULES],
  );
  expect(await refusalOfPut('weekly', weekly)).toEqual([400, ['invalid_field']]);
  expect((await put({ ...weekly, name: 's7' })).status).toBe(200);
  expect((await remove('s1')).status).toBe(204);
  expect((await put(weekly)).status).toBe(200);
});

test('a requested run is made once, and a failed one is repeated for its due time', async () => {
  await put(nightly);
  const due_at = '2026-01-01T02:00:00.000Z';
  const runs = `${path}/nightly/runs`;
  const ask = () => server.json<{ status: string }>(runs, { method: 'POST', json: { due_at } });
  expect(await ask()).toMatchObject({ status: 202, body: { due_at, status: 'queued', cause: 'asked' } });
  expect((await ask()).body.status).toBe('queued');
  await t.system.pool.query(
    `update schedule_runs set status = 'failed', ended_at = now(), reason_code = 'x', reason = 'broken'`,
  );
  expect((await show('nightly')).runs).toMatchObject([
    { due_at, status: 'failed', failure: { error_code: 'x', message: 'broken' } },
  ]);
  expect((await ask()).body.status).toBe('queued');
  const history = await server.json<object[]>(runs);
  expect(history.body).toMatchObject([{ due_at, status: 'queued', items: [], item_count: 0 }]);
  expect((await server.json(runs, { key: otherTenant.key })).status).toBe(404);
  for (const wrong of ['yesterday', '2999-01-01T00:00:00Z', 7]) {
    const request = { method: 'POST', json: { due_at: wrong } };
    expect(await refusalOf(server, runs, request)).toEqual([400, ['invalid_field']]);
  }
});

test('an unknown schedule can be neither run nor paused', async () => {
  for (const name of ['nowhere', 'NO.PE', '%00']) {
    const run = { method: 'POST', json: {} };
    expect(await refusalOf(server, `${path}/${name}/runs`, run)).toEqual([404, ['not_found']]);
    const change = { method: 'PATCH', json: { paused: true } };
    expect(await refusalOf(server, `${path}/${name}`, change)).toEqual([404, ['not_found']]);
  }
});
