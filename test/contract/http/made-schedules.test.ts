import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import type { Schedule } from '../../../src/api/source.ts';
import { MAX_MADE_SCHEDULE_BYTES, MAX_MADE_SCHEDULES } from '../../../src/domain/limits.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { askForRun } from '../../../src/sources/schedules/start-schedules.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/http.ts';
import { readSchedule } from '../../support/schedules.ts';

const folder = await mkdtemp(join(tmpdir(), 'sluice-made-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const file = join(folder, 'schedules.yaml');
const ofFile = (name: string) => `schedules: [{ name: ${name}, cron: "@daily", export: {} }]`;
await writeFile(file, ofFile('of-file'));
const { t, server } = await openServer({
  settings: {
    SCHEDULES_FILE: file,
    SCHEDULES_EXPORT_ROOTS: folder,
    SCHEDULES_VARIABLES: 'default:SCHEDULE_TOKEN, other:SCHEDULE_THEIRS',
  },
});
const other = await t.addEnvironment('other');
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
const create = (json: object, key = t.key) => server.json<Schedule>(path, { json, key });
const change = (json: { readonly name: string }) =>
  server.json<Schedule>(`${path}/${json.name}`, { method: 'PUT', json });
const remove = (name: string, key = t.key) => server.fetch(`${path}/${name}`, { method: 'DELETE', key });
const names = async () => {
  const { body } = await server.json<{ data: Schedule[] }>(path);
  return body.data.map(({ schedule, made_by }) => `${schedule} ${made_by}`);
};

// proves: schedule-made
test('a schedule is created, shown, listed beside those of the file, changed and deleted', async () => {
  const created = await create(nightly);
  expect(created).toMatchObject({
    status: 201,
    body: { schedule: 'nightly', made_by: 'api', kind: 'load', time_zone: 'Europe/Berlin', enabled: true },
  });
  expect(created.body.definition).toMatchObject({ ...nightly, missed: 'run_once' });
  expect(created.body.due_times).toHaveLength(7);
  expect((await create(weekly)).status).toBe(201);
  expect(await names()).toEqual(['of-file file', 'nightly api', 'weekly api']);
  const { body: shown } = await server.json<Schedule>(`${path}/nightly`);
  expect(shown.definition).toEqual(created.body.definition);
  const again = { ...(shown.definition as typeof nightly), cron: '@hourly', enabled: false };
  expect((await change(again)).body).toMatchObject({ cron: '@hourly', enabled: false, next_due: null });
  expect((await server.json<Schedule>(`${path}/nightly`)).body).toMatchObject({ cron: '@hourly' });
  expect((await server.json<Schedule>(`${path}/of-file`)).body).toMatchObject({ definition: null });
  expect((await remove('nightly')).status).toBe(204);
  expect(await refusalOf(server, `${path}/nightly`)).toEqual([404, ['not_found']]);
  expect((await remove('nightly')).status).toBe(404);
  expect(await names()).toEqual(['of-file file', 'weekly api']);
});

test('a deleted schedule goes with its history; while a run is under way, the run and the history stay', async () => {
  await create(nightly);
  const schedule = readSchedule(nightly);
  const { environmentId } = t.environment;
  await askForRun(t.system.db, environmentId, schedule, new Date('2026-03-01T00:00:00Z'), new Date());
  expect((await remove('nightly')).status).toBe(204);
  expect(await names()).toEqual(['of-file file']);
  expect((await server.json<object[]>(`${path}/nightly/runs`)).body).toMatchObject([{ status: 'queued' }]);
  await writeFile(file, ofFile('nightly'));
  expect((await server.json<Schedule>(`${path}/nightly`)).body).toMatchObject({
    made_by: 'file',
    paused_at: null,
  });
  await writeFile(file, ofFile('of-file'));
  expect((await create(nightly)).body.paused_at).toBeNull();
  await t.system.pool.query(`update schedule_runs set status = 'completed', ended_at = now()`);
  expect((await remove('nightly')).status).toBe(204);
  expect(await refusalOf(server, `${path}/nightly/runs`)).toEqual([404, ['not_found']]);
  const { rows } = await t.system.pool.query('select 1 from schedules union all select 1 from schedule_runs');
  expect(rows).toEqual([]);
});

test('it is held to the rules of the file, each problem at its place', async () => {
  const wrong = {
    ...{ name: 'A b', cron: '* * *', colour: 'red', environment: 'other' },
    load: { http: { url: 'http://example.com/' }, files: { pattern: '../x' }, max_errors: 'many' },
  };
  const { status, body } = await server.json<ErrorBody>(path, { json: wrong });
  expect(status).toBe(400);
  expect(body.errors.map(({ error_code, details }) => `${error_code} ${details}`).sort()).toEqual([
    ...['invalid_field colour', 'invalid_field cron', 'invalid_field environment', 'invalid_field load'],
    ...['invalid_field load.files.pattern', 'invalid_field load.http.url', 'invalid_field load.max_errors'],
    'invalid_field name',
  ]);
  expect(body.errors.map(({ message }) => message).join()).not.toContain('schedules[');
  const none = await server.json<ErrorBody>(path, { json: { name: 'a', cron: '@daily' } });
  expect(none.body.errors[0]?.message).toBe('the schedule must have either load or export');
  await create(nightly);
  for (const name of [undefined, 'another']) {
    const renamed = { method: 'PUT', json: { ...nightly, name } };
    expect(await refusalOf(server, `${path}/nightly`, renamed)).toEqual([400, ['invalid_field']]);
  }
  const large = { ...nightly, load: { ...nightly.load, http: { url: `https://a.b/${'x'.repeat(3_900)}` } } };
  const map = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [`${at}`.padEnd(200, 'x'), `n${at}`]),
  );
  const tooLarge = { ...large, load: { ...large.load, map } };
  expect(JSON.stringify(tooLarge).length).toBeGreaterThan(MAX_MADE_SCHEDULE_BYTES);
  expect(await refusalOf(server, path, { json: tooLarge })).toEqual([400, ['invalid_field']]);
});

// proves: schedule-file-wins
test('a name that the file has is the file’s: it is neither created, changed nor deleted, and the file hides one of that name', async () => {
  expect(await refusalOf(server, path, { json: { ...weekly, name: 'of-file' } })).toEqual([
    409,
    ['definition_locked'],
  ]);
  await create(weekly);
  expect(await refusalOf(server, path, { json: weekly })).toEqual([400, ['invalid_field']]);
  await writeFile(file, ofFile('weekly'));
  try {
    expect(await names()).toEqual(['weekly file']);
    for (const method of ['PUT', 'DELETE']) {
      const body = method === 'PUT' ? { json: weekly } : {};
      expect(await refusalOf(server, `${path}/weekly`, { method, ...body })).toEqual([
        409,
        ['definition_locked'],
      ]);
    }
    // It may have any name while it cannot be read.
    await writeFile(file, '[');
    const locked = [409, ['definition_locked']];
    expect(await refusalOf(server, path, { json: { ...weekly, name: 'of-file' } })).toEqual(locked);
    expect((await remove('weekly')).status).toBe(409);
  } finally {
    await writeFile(file, ofFile('of-file'));
  }
  expect(await names()).toEqual(['of-file file', 'weekly api']);
});

// proves: schedule-confined
test('variables that its environment was not granted, secrets in clear and other folders are refused, and nothing is stored', async () => {
  const { load } = nightly;
  const http = (more: object) => ({ http: { ...load.http, ...more } });
  const s3 = {
    url: 's3://files/',
    access_key: `\${env:SCHEDULE_TOKEN}`,
    secret_key: `\${env:SCHEDULE_TOKEN}`,
  };
  const refused: readonly [string, object][] = [
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
    ['export.to_dir', { load: undefined, export: { event_type: 'users', to_dir: `a/${'é'.repeat(128)}` } }],
  ];
  for (const [place, more] of refused) {
    const { status, body } = await server.json<ErrorBody>(path, { json: { ...nightly, ...more } });
    expect([place, status, body.errors.map(({ details }) => details)]).toEqual([place, 400, [place]]);
    expect(JSON.stringify(body)).not.toContain('geheim');
  }
  expect((await t.system.pool.query('select 1 from schedules')).rows).toEqual([]);
  const allowed = [
    http({ headers: { Accept: 'text/csv', 'X-Key': `\${env:SCHEDULE_TOKEN}` } }),
    http({ url: `https://example.com/?page=2&token=\${env:SCHEDULE_TOKEN}` }),
    { s3 },
    { files: { pattern: 'users-*.csv' } },
  ];
  for (const [at, each] of allowed.entries()) {
    expect((await create({ ...nightly, name: `n${at}`, load: each })).status).toBe(201);
  }
});

test('one of another environment is not seen, changed or deleted, and has its name for itself', async () => {
  await create(weekly);
  const asOther = { key: other.key };
  expect((await server.json<{ data: object[] }>(path, asOther)).body.data).toEqual([]);
  expect(await refusalOf(server, `${path}/weekly`, asOther)).toEqual([404, ['not_found']]);
  expect(await refusalOf(server, `${path}/weekly`, { ...asOther, method: 'PUT', json: weekly })).toEqual([
    404,
    ['not_found'],
  ]);
  expect((await remove('weekly', other.key)).status).toBe(404);
  expect((await create(weekly, other.key)).status).toBe(201);
  expect((await remove('weekly', other.key)).status).toBe(204);
  expect(await names()).toEqual(['of-file file', 'weekly api']);
});

test('a key makes what it may ask for: loads with import, exports with export as well', async () => {
  const keyOf = async (...scopes: ('read' | 'import' | 'export')[]) =>
    (await createApiKey(t.system.db, t.environment.environmentId, { label: 'x', scopes })).key;
  const [reader, importer, both] = [
    await keyOf('read'),
    await keyOf('import'),
    await keyOf('import', 'export'),
  ];
  const refused = [403, ['insufficient_scope']];
  expect(await refusalOf(server, path, { json: nightly, key: reader })).toEqual(refused);
  expect(await refusalOf(server, path, { json: weekly, key: importer })).toEqual(refused);
  expect((await create(nightly, importer)).status).toBe(201);
  expect((await create(weekly, both)).status).toBe(201);
  const asLoad = { method: 'PUT', json: { ...nightly, name: 'weekly' }, key: importer };
  expect(await refusalOf(server, `${path}/weekly`, asLoad)).toEqual(refused);
  expect((await remove('weekly', importer)).status).toBe(403);
  expect((await remove('nightly', importer)).status).toBe(204);
});

test('an environment has a bounded number of them', async () => {
  await t.system.pool.query(
    `insert into schedules (environment_id, schedule_name, considered_until, definition)
    select $1, 's' || n, now(), $2::jsonb || jsonb_build_object('name', 's' || n) from generate_series(1, $3::int) n`,
    [t.environment.environmentId, readSchedule(weekly), MAX_MADE_SCHEDULES],
  );
  expect(await refusalOf(server, path, { json: weekly })).toEqual([400, ['invalid_field']]);
  expect((await change({ ...weekly, name: 's7' })).status).toBe(200);
  expect((await remove('s1')).status).toBe(204);
  expect((await create(weekly)).status).toBe(201);
});
