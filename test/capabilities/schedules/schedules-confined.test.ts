import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openJobs } from '../../../jobs/kinds.ts';
import { startWorker } from '../../../jobs/worker.ts';
import type { ScheduleContext } from '../../../src/capabilities/schedules/context.ts';
import { readSchedules, removeSchedule, requireSchedule } from '../../../src/capabilities/schedules/keep.ts';
import { readRuns } from '../../../src/capabilities/schedules/run-store.ts';
import { saveSchedule } from '../../../src/capabilities/schedules/schedule-store.ts';
import { askForRun, makeDueRuns } from '../../../src/capabilities/schedules/start.ts';
import { openWork } from '../../../src/capabilities/schedules/work.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { startWebServer, type WebServer } from '../../support/servers/web-server.ts';
import { waitFor } from '../../support/wait-for.ts';
import { finish, readSchedule, scheduleContext } from './support/schedules.ts';

let t: TestSystem;
let folder: string;
let web: WebServer;
let context: ScheduleContext;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-made-'));
  for (const name of ['default', 'other']) await mkdir(join(folder, 'in', name), { recursive: true });
  t = await openTestSystem({
    worker: true,
    settings: {
      SCHEDULES_LOCAL_ROOTS: join(folder, 'in'),
      SCHEDULES_EXPORT_ROOTS: join(folder, 'out'),
      SCHEDULES_VARIABLES: 'default:SCHEDULE_TOKEN',
      SCHEDULES_ALLOW_PRIVATE: 'true',
    },
  });
  web = await startWebServer('http');
  context = scheduleContext(t, { variables: { SCHEDULE_TOKEN: 'geheim', SCHEDULE_THEIRS: 'theirs' } });
});
afterAll(async () => {
  await web?.stop();
  await t?.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(() => t.system.pool.query('truncate schedules, users, companies cascade'));

const save = (fields: Readonly<Record<string, unknown>>) =>
  saveSchedule(t.system.db, t.environment.environmentId, readSchedule(fields), new Date());
async function run(name: string, runContext = context) {
  const { environmentId } = t.environment;
  await askForRun(t.system, environmentId, name, new Date());
  return finish(runContext, (await requireSchedule(t.system.db, environmentId, name)).definition);
}
const userIds = async () => {
  const { rows } = await t.system.pool.query<{ user_id: string }>('select user_id from users order by 1');
  return rows.map(({ user_id }) => user_id);
};

const hourMs = 3_600_000;

// proves: schedule-made
test('every worker follows changes of schedules, and each due time has one run', async () => {
  const put = (name: string) => writeFile(join(folder, 'in/default', name), `user_id\n${name}\n`);
  await put('first.csv');
  await put('second.csv');
  // A schedule that is saved now is first due at the next full hour.
  const hour = Math.ceil(Date.now() / hourMs) * hourMs;
  let now = new Date();
  const settings = { ...context.schedules, now: () => now };
  const otherSystems = [t.openAnother(), t.openAnother()];
  const process = { variables: {}, isOfService: true };
  const workers = otherSystems.map((other) => {
    const work = { open: () => openWork({ ...other, schedules: settings }, true) };
    return startWorker(other, { process, jobs: openJobs(other, process, [work]) });
  });
  const statuses = async () => {
    const runs = await readRuns(t.system.db, { name: 'live' }, 10);
    return runs.map(({ dueAt, status }) => `${(dueAt.getTime() - hour) / 60_000} ${status}`);
  };
  try {
    await save({ name: 'live', load: { files: { pattern: 'first.csv' } } });
    now = new Date(hour + 1_000);
    await expect.poll(statuses).toEqual(['0 completed']);
    await save({ name: 'live', cron: '20 * * * *', load: { files: { pattern: 'second.csv' } } });
    now = new Date(hour + hourMs + 1_000);
    await expect.poll(statuses).toEqual(['20 completed', '0 completed']);
    expect(await userIds()).toEqual(['first.csv', 'second.csv']);
    await removeSchedule(t.system, t.environment.environmentId, 'live');
    await save({ name: 'next', load: { files: { pattern: 'first.csv' } } });
    now = new Date(hour + 3 * hourMs);
    await waitFor(
      'the workers to look again',
      async () => (await readRuns(t.system.db, { name: 'next' }, 1))[0],
    );
    expect(await statuses()).toEqual([]);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await Promise.all(otherSystems.map((other) => other.close()));
  }
});

test('a worker with an outdated schedule makes runs of the new one, or of none', async () => {
  await save({ name: 'live', load: { files: { pattern: 'first.csv' } } });
  const outdated = await readSchedules(t.system.db, null);
  await save({ name: 'live', cron: '20 * * * *', load: { files: { pattern: 'second.csv' } } });
  const at = (ms: number) => ({ ...context, schedules: { ...context.schedules, now: () => new Date(ms) } });
  const hour = Math.ceil(Date.now() / hourMs) * hourMs;
  expect(await makeDueRuns(at(hour + hourMs), outdated)).toBe(1);
  const { rows } = await t.system.pool.query<{ due_at: Date; definition: object }>(
    'select * from schedule_runs',
  );
  expect(rows).toMatchObject([{ definition: { load: { files: { pattern: 'second.csv' } } } }]);
  expect(rows[0]?.due_at.getUTCMinutes()).toBe(20);
  await t.system.pool.query('delete from schedule_runs');
  await removeSchedule(t.system, t.environment.environmentId, 'live');
  expect(await makeDueRuns(at(hour + 2 * hourMs), outdated)).toBe(0);
});

// proves: schedule-confined
test('files are read from the folder of the environment, and exports written to it', async () => {
  await writeFile(join(folder, 'in/default/own.csv'), 'user_id\nown\n');
  await writeFile(join(folder, 'in/other/theirs.csv'), 'user_id\ntheirs\n');
  await symlink(join(folder, 'in/other'), join(folder, 'in/default/way'));
  await save({ name: 'files', load: { files: { pattern: '**/*.csv' } } });
  await run('files');
  expect(await userIds()).not.toContain('theirs');
  await save({ name: 'copied', export: { event_type: 'users', to_dir: 'nightly' } });
  expect(await run('copied')).toMatchObject({ status: 'completed' });
  expect(await readdir(join(folder, 'out'))).toEqual(['default']);
  expect(await readdir(join(folder, 'out/default/nightly'))).toHaveLength(1);
});

// proves: schedule-confined
test('a variable is filled in only while it is granted to the environment', async () => {
  web.answer('/u.csv', (_, response) => response.end('user_id\nu1\n'));
  const http = { url: `${web.url}/u.csv`, allow_http: true, allow_private: true };
  await save({ name: 'page', load: { http: { ...http, headers: { 'x-key': `\${env:SCHEDULE_TOKEN}` } } } });
  expect(await run('page')).toMatchObject({ status: 'completed' });
  expect(web.requests.map(({ headers }) => headers['x-key'])).toEqual(['geheim']);
  const { rows } = await t.system.pool.query('select definition from schedule_runs');
  expect(JSON.stringify(rows)).not.toContain('geheim');
  const revoked = { ...context, schedules: { ...context.schedules, granted: ['other:SCHEDULE_TOKEN'] } };
  expect(await run('page', revoked)).toMatchObject({ status: 'failed', code: 'missing_variable' });
  expect(web.requests).toHaveLength(1);
});

// proves: schedule-confined
test('a bucket at a private address is not requested without the setting', async () => {
  const keys = { access_key: `\${env:SCHEDULE_TOKEN}`, secret_key: `\${env:SCHEDULE_TOKEN}` };
  const publicOnly = { ...context, schedules: { ...context.schedules, allowPrivate: false } };
  for (const [at, endpoint] of [web.url, web.url.replace('127.0.0.1', 'localhost')].entries()) {
    const name = `bucket-${at}`;
    await save({ name, load: { s3: { url: 's3://files/', endpoint, ...keys } } });
    const requestsBefore = web.requests.length;
    expect(await run(name, publicOnly)).toMatchObject({ status: 'failed', code: 'private_address' });
    expect(web.requests).toHaveLength(requestsBefore);
    expect(await run(name)).toMatchObject({ status: 'failed', code: 's3_failed' });
    expect(web.requests.length).toBeGreaterThan(requestsBefore);
  }
});
