import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Schedule } from '../../../src/api/source.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { readSchedulesFile } from '../../../src/sources/schedules/schedules-file.ts';
import { openServer, refusalOf } from '../../support/http.ts';
import { scheduleContext, tick } from '../../support/schedules.ts';

const text = `schedules:
  - name: nightly-users
    cron: "0 2 * * *"
    timezone: Europe/Berlin
    load: { files: { pattern: /data/users-*.csv } }
  - name: hourly-api
    cron: "*/5 * * * *"
    load: { http: { url: "https://api.example.com/users?token=geheim", headers: { Authorization: geheim } } }
  - name: last-month
    cron: "@monthly"
    enabled: false
    export: { range: last_month, format: csv }
  - name: of-others
    environment: other
    cron: "@daily"
    export: {}
`;
const folder = await mkdtemp(join(tmpdir(), 'sluice-schedules-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const file = join(folder, 'schedules.yaml');
await writeFile(file, text);
const { t, server } = await openServer({ settings: { SCHEDULES_FILE: file } });
const other = await t.addEnvironment('other');

const post = (body?: object) => ({
  method: 'POST',
  ...(body && { json: body }),
});

async function list({ key } = { key: t.key }): Promise<readonly Schedule[]> {
  const { status, body } = await server.json<{ data: Schedule[] }>('/v1/schedules', { key });
  expect(status).toBe(200);
  return body.data;
}

async function find(name: string): Promise<Schedule> {
  const found = (await list()).find(({ schedule }) => schedule === name);
  if (found === undefined) throw new Error(`no schedule ${name}`);
  return found;
}

test('the list has the schedules of the environment, with what is due in a week, and shows no secrets', async () => {
  const answer = await server.json('/v1/schedules');
  expect(JSON.stringify(answer.body)).not.toContain('geheim');
  expect(answer.body).toMatchObject({ problems: [] });
  const [nightly, api, monthly, ...more] = await list();
  expect(more).toEqual([]);
  expect(nightly).toMatchObject({
    kind: 'load',
    what: 'files /data/users-*.csv',
    time_zone: 'Europe/Berlin',
  });
  expect(nightly?.due_times).toHaveLength(7);
  expect(nightly?.due_times[0]).toBe(nightly?.next_due);
  expect([api?.due_times.length, api?.due_times_are_all]).toEqual([400, false]);
  expect(monthly).toMatchObject({
    enabled: false,
    next_due: null,
    due_times: [],
    what: 'export of last month',
  });
  expect((await list(other)).map(({ schedule }) => schedule)).toEqual(['of-others']);
});

test('a run that is asked for is made once, and one that went wrong is done again for its due time', async () => {
  const due_at = '2026-01-01T02:00:00.000Z';
  const path = '/v1/schedules/nightly-users/runs';
  const ask = () => server.json<{ due_at: string; status: string; cause: string }>(path, post({ due_at }));
  expect(await ask()).toMatchObject({ status: 202, body: { due_at, status: 'queued', cause: 'asked' } });
  expect((await ask()).body.status).toBe('queued');
  await t.system.pool.query(
    `update schedule_runs set status = 'failed', ended_at = now(), reason_code = 'x', reason = 'broken'`,
  );
  const { runs } = await find('nightly-users');
  expect(runs).toMatchObject([{ due_at, status: 'failed', message: 'broken' }]);
  expect((await ask()).body.status).toBe('queued');
  const history = await server.json<object[]>(path);
  expect(history.body).toMatchObject([{ due_at, status: 'queued', items: [], item_count: 0 }]);
  expect((await server.json(path, { key: other.key })).status).toBe(404);
});

// proves: schedule-paused
test('of a paused schedule nothing is due, and what would have been is not made up when it goes on', async () => {
  const { value: schedules } = readSchedulesFile(Buffer.from(text));
  const see = async (at: string) => tick(scheduleContext(t), schedules?.slice(0, 1) ?? [], at);
  const paused = await server.json<Schedule>('/v1/schedules/nightly-users/pause', post());
  expect([paused.status, paused.body.next_due, paused.body.due_times]).toEqual([200, null, []]);
  const since = paused.body.paused_at;
  expect((await server.json<Schedule>('/v1/schedules/nightly-users/pause', post())).body.paused_at).toBe(
    since,
  );
  const nextYear = new Date().getUTCFullYear() + 1;
  expect(await see(`${nextYear}-03-01T12:00:00`)).toBe(0);
  const { body } = await server.json<Schedule>('/v1/schedules/nightly-users/resume', post());
  expect([body.paused_at, body.due_times.length]).toEqual([null, 7]);
  expect(await see(`${nextYear}-03-01T12:00:00`)).toBe(0);
  expect(await see(`${nextYear}-03-02T12:00:00`)).toBe(1);
});

test('a schedule of another environment, and one that there is not, can be neither run nor paused', async () => {
  for (const name of ['of-others', 'nowhere', 'NO.PE', '%00']) {
    for (const action of ['runs', 'pause', 'resume']) {
      const path = `/v1/schedules/${name}/${action}`;
      expect([path, ...(await refusalOf(server, path, post({})))]).toEqual([path, 404, ['not_found']]);
    }
  }
});

test('an export is run by keys that may export', async () => {
  const scopes = ['import'] as const;
  const { key } = await createApiKey(t.system.db, t.environment.environmentId, { label: 'x', scopes });
  const path = '/v1/schedules/last-month/runs';
  expect(await refusalOf(server, path, { ...post({}), key })).toEqual([403, ['insufficient_scope']]);
  expect((await server.json(path, post({}))).status).toBe(202);
});

test('a due time that is none, or is to come, is refused', async () => {
  for (const due_at of ['yesterday', '2999-01-01T00:00:00Z', 7]) {
    expect(await refusalOf(server, '/v1/schedules/nightly-users/runs', post({ due_at }))).toEqual([
      400,
      ['invalid_field'],
    ]);
  }
});

test('a file that is wrong is said to be, with lines', async () => {
  await writeFile(file, 'schedules: [{}]');
  const { body } = await server.json<{ data: object[]; problems: string[] }>('/v1/schedules');
  expect(body.data).toEqual([]);
  expect(body.problems[0]).toMatch(/schedules\.yaml:1:\d+: /);
  await writeFile(file, text);
});
