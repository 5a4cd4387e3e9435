import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Interrupted } from '../../../src/base/errors.ts';
import { uuidv7 } from '../../../src/base/uuid.ts';
import { listDeliveries } from '../../../src/capabilities/notifications/delivery-store.ts';
import type { RulesDocument } from '../../../src/capabilities/rules/document.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import type { ScheduleContext } from '../../../src/capabilities/schedules/context.ts';
import { endWaitingRuns } from '../../../src/capabilities/schedules/end-run.ts';
import { setPaused } from '../../../src/capabilities/schedules/schedule-store.ts';
import type { ScheduleDefinition } from '../../../src/capabilities/schedules/schema.ts';
import { openS3 } from '../../../src/capabilities/schedules/source-s3.ts';
import { runJob } from '../../../src/capabilities/schedules/work.ts';
import type { TaskClaim } from '../../../src/domain/task.ts';
import { requireExport } from '../../../src/export/inspect-exports.ts';
import { reconcileTasks } from '../../../src/tasks/reconcile.ts';
import { LostClaim } from '../../../src/tasks/store.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { expireTaskLeases, makeTasksDue } from '../../support/servers/tasks.ts';
import { startWebServer, type WebServer } from '../../support/servers/web-server.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  doNext,
  finish,
  historyOf,
  readSchedule,
  requestRun,
  runNow,
  runsOf,
  scheduleContext,
  takeRun,
  tick,
} from './support/schedules.ts';

let t: TestSystem;
let environmentId: number;
let context: ScheduleContext;
let folder: string;
let httpServer: WebServer;
let httpsServer: WebServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-schedules-'));
  await mkdir(join(folder, 'in/default'), { recursive: true });
  t = await openTestSystem({ worker: true });
  environmentId = t.environment.environmentId;
  httpServer = await startWebServer('http');
  httpsServer = await startWebServer('https');
  context = scheduleContext(t, {
    localRoots: [join(folder, 'in')],
    exportRoots: [join(folder, 'out')],
    allowPrivate: true,
    authorities: httpsServer.cert,
    variables: { SCHEDULE_TOKEN: 'geheim' },
    granted: ['default:SCHEDULE_TOKEN'],
  });
});
afterAll(async () => {
  await httpServer?.stop();
  await httpsServer?.stop();
  await t?.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  await sql`truncate users, companies, schedules cascade`.execute(t.system.db);
  await sql`delete from tasks where kind = 'run'`.execute(t.system.db);
});

const put = (name: string, content: string | Uint8Array): Promise<void> =>
  writeFile(join(folder, 'in/default', name), content);
const userIds = async (): Promise<string[]> =>
  Object.keys((await readProfiles(t.system, environmentId)).users);
async function countLoads(start: string): Promise<number> {
  const { rows } = await sql`select 1 from loads where filename like ${`${start}%`}`.execute(context.db);
  return rows.length;
}

const files = (pattern: string, options = {}) => readSchedule({ load: { files: { pattern }, ...options } });
const page = (url: string, options = {}) =>
  readSchedule({ load: { http: { url, allow_private: true, ...options }, entity: 'users' } });

const doNow = (schedule: ScheduleDefinition, runContext = context) =>
  runNow(runContext, environmentId, schedule);
const request = (schedule: ScheduleDefinition, dueAt = '2026-02-01T00:00:00Z') =>
  requestRun(context, environmentId, schedule, new Date(dueAt));
async function take(): Promise<TaskClaim> {
  const claim = await takeRun(context);
  if (claim === null) throw new Error('there is nothing to claim');
  return claim;
}
async function loseWorker(): Promise<void> {
  await expireTaskLeases(context.db, 'run');
  await reconcileTasks(context, [runJob]);
}
const add = (id: string, at: string | null = null) =>
  sql`insert into users (environment_id, user_id, metadata, first_seen_at, last_seen_at, updated_at)
    select ${environmentId}, ${id}, '{}', at, at, at
    from coalesce(${at}::timestamptz, now()) as at`.execute(context.db);

/**
 * Makes the service fail to record that the file `name` was loaded, until the returned function is
 * called.
 */
async function refuseToRemember(name: string): Promise<() => Promise<unknown>> {
  await sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'not now'; end $$`.execute(context.db);
  await sql`create trigger refuse before insert on schedule_memory
    for each row when (new.item like ${sql.lit(`%/${name}`)}) execute function refuse()`.execute(context.db);
  return () => sql`drop function refuse cascade`.execute(context.db);
}

// proves: suppressed
test('a suppressed person is refused in loads of schedules', async () => {
  await put('kept-out.csv', 'user_id,plan\nkept-out,pro\nstays,pro\n');
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['kept-out'], { suppress: true });
  await waitFor('the deletion', async () => (await deletion.look()).status === 'completed');
  expect(await doNow(files('kept-out.csv'))).toMatchObject({ status: 'completed_with_rejects' });
  expect(await userIds()).toEqual(['stays']);
});

describe('the due times of schedules', () => {
  const nothing = { load: { files: { pattern: 'none-*.csv' } } };

  // proves: schedule-once
  test('a due time makes one run, however many processes look', async () => {
    const schedule = readSchedule(nothing);
    expect(await tick(context, [schedule], '2026-03-01T10:30:00')).toBe(0);
    const contexts = [context, { ...context }, { ...context }, { ...context }];
    const runCounts = await Promise.all(
      contexts.map((context) => tick(context, [schedule], '2026-03-01T11:00:01')),
    );
    expect(runCounts.reduce((sum, count) => sum + count)).toBe(1);
    await Promise.all(contexts.map((context) => doNext(context)));
    expect(await finish(context, schedule)).toMatchObject({ status: 'unchanged', attempts: 1 });
    expect(await tick(context, [schedule], '2026-03-01T11:59:59')).toBe(0);
    expect(await historyOf(context, schedule)).toEqual(['2026-03-01T11:00 unchanged due']);
  });

  test.each([
    ['run_once', ['2026-03-02T09:00 queued made_up']],
    ['skip', ['2026-03-02T09:00 skipped due']],
    [
      'run_all',
      [
        '2026-03-02T07:00 queued made_up',
        '2026-03-02T08:00 queued made_up',
        '2026-03-02T09:00 queued made_up',
      ],
    ],
  ] as const)('missed due times in the window follow the policy %s', async (missed, history) => {
    const schedule = readSchedule({ ...nothing, missed, missed_within: '150m' });
    await tick(context, [schedule], '2026-03-01T10:30:00');
    await tick(context, [schedule], '2026-03-02T09:20:00');
    expect(await historyOf(context, schedule)).toEqual(history);
    const [firstRun] = await runsOf(context, schedule);
    expect(firstRun?.missed).toBe(missed === 'run_all' ? 0 : 2);
    expect(await tick(context, [schedule], '2026-03-02T09:21:00')).toBe(0);
  });

  // proves: schedule-paused
  test('due times during a pause are not made up, even if no process looked', async () => {
    const schedule = readSchedule(nothing);
    await tick(context, [schedule], '2026-03-01T10:30:00');
    for (const [isPaused, at] of [
      [true, '2026-03-01T10:31:00Z'],
      [false, '2026-03-01T12:30:00Z'],
    ] as const) {
      await setPaused(context.db, environmentId, schedule.name, isPaused, new Date(at));
    }
    expect(await tick(context, [schedule], '2026-03-01T12:31:00')).toBe(0);
  });

  test('a due time during an earlier run is skipped or waits, by the policy', async () => {
    const skips = readSchedule(nothing);
    const waits = readSchedule({ ...nothing, overlap: 'wait' });
    for (const at of ['2026-03-01T10:30:00', '2026-03-01T11:00:00', '2026-03-01T12:00:00']) {
      await tick(context, [skips, waits], at);
    }
    const [, skippedRun] = await runsOf(context, skips);
    expect(skippedRun).toMatchObject({ status: 'skipped', code: 'overlap' });
    await takeRun(context);
    await takeRun(context);
    for (const schedule of [skips, waits]) {
      expect((await runsOf(context, schedule))[0]).toMatchObject({ status: 'running' });
    }
    // The schedule `waits` has a second run. The second run must not be claimed until the first has
    // ended.
    expect(await takeRun(context)).toBeNull();
    expect((await runsOf(context, waits))[1]).toMatchObject({ status: 'queued' });
  });

  test('due times of a disabled schedule or of an earlier cron are not made up', async () => {
    const schedule = readSchedule(nothing);
    await tick(context, [schedule], '2026-03-01T10:30:00');
    for (const at of ['2026-03-01T11:20:00', '2026-03-01T12:20:00']) {
      await tick(context, [{ ...schedule, enabled: false }], at);
    }
    await tick(context, [{ ...schedule, cron: '10 * * * *' }], '2026-03-01T12:20:30');
    expect(await historyOf(context, schedule)).toEqual([]);
  });
});

describe('the files of a schedule', () => {
  test('each file is loaded once, again after a change, and its rejects are reported', async () => {
    await put('a-1.csv', 'user_id,plan\nu1,x\n');
    await put('a-2.csv', 'user_id,plan\nu2,x\n');
    const schedule = files('a-*.csv');
    const firstRun = await doNow(schedule);
    expect(firstRun).toMatchObject({ status: 'completed', items: [{ isNew: true }, { isNew: true }] });
    expect(await userIds()).toEqual(['u1', 'u2']);
    expect(await doNow(schedule)).toMatchObject({ status: 'unchanged', items: [] });
    await appendFile(join(folder, 'in/default', 'a-2.csv'), ',no id\n');
    const thirdRun = await doNow(schedule);
    expect(thirdRun).toMatchObject({ status: 'completed_with_rejects', items: [{ error: null }] });
    expect(thirdRun.items[0]?.item).toMatch(/a-2\.csv$/);
  });

  test('a refused file fails the run, and the next run tries it again', async () => {
    await put('b-1.csv', 'name\nnobody\n');
    await put('b-2.csv', 'user_id\nu3\n');
    const schedule = files('b-*.csv');
    const failedRun = await doNow(schedule);
    expect(failedRun).toMatchObject({ status: 'failed', code: 'unrecognised_columns' });
    expect(failedRun.reason).toContain('with `map: { "Their Header": user_id }`');
    expect(await userIds()).toEqual(['u3']);
    await put('b-1.csv', 'user_id\nu4\n');
    expect(await doNow(schedule)).toMatchObject({
      status: 'completed',
      items: [{ item: expect.stringMatching(/b-1/) }],
    });
  });

  // proves: source-options
  test('files are read with the options of the schedule', async () => {
    await put('said-1.csv', 'user_id\nu7\n');
    expect(await doNow(files('said-*.csv', { sheet: 'Customers' }))).toMatchObject({
      status: 'failed',
      reason: expect.stringContaining('sheet says how to read a workbook; the file was read as a CSV'),
    });
    const options = { header: 'none', delimiter: 'pipe', map: { '1': 'user_id' } };
    await put('said-1.csv', 'u8,x|pro\n');
    expect(await doNow(files('said-*.csv', options))).toMatchObject({
      status: 'completed',
    });
    expect(await userIds()).toEqual(['u8,x']);
  });

  // proves: rules-everywhere
  test('files keep to the rules of their environment', async () => {
    const rules: RulesDocument = { users: { properties: { plan: { enum: ['pro'], otherwise: 'refuse' } } } };
    await applyRules(context, environmentId, rules, null);
    onTestFinished(async () => void (await applyRules(context, environmentId, {}, null)));
    await put('ruled-1.csv', 'user_id,plan\nr1,pro\nr2,gold\n');
    expect(await doNow(files('ruled-1.csv'))).toMatchObject({ status: 'completed_with_rejects' });
    expect(await userIds()).toEqual(['r1']);
  });

  // proves: mirror
  test('a file as a mirror removes other profiles, and a run that may not says so', async () => {
    // Declares the log complete from the start. Otherwise, open transactions of other databases
    // could prevent the service from knowing that it is complete.
    await sql`update change_log set complete_since = 0`.execute(context.db);
    await put('mirror-1.csv', 'user_id,plan\nu1,x\nu2,x\n');
    expect(await doNow(files('mirror-1.csv'))).toMatchObject({ status: 'completed' });
    const userCount = (await userIds()).length;
    await put('mirror-2.csv', 'user_id,plan\nu1,x\n');
    const withDefaultBound = files('mirror-2.csv', { mirror: 'remove', if_duplicate: 'load' });
    expect(await doNow(withDefaultBound)).toMatchObject({ status: 'completed_with_rejects' });
    expect(await userIds()).toHaveLength(userCount);
    const withHighBound = files('mirror-2.csv', {
      mirror: 'remove',
      max_removed: 1_000,
      if_duplicate: 'load',
    });
    expect(await doNow(withHighBound)).toMatchObject({ status: 'completed', reason: null });
    expect(await userIds()).toEqual(['u1']);
  });

  test('a repeated run loads only the files that had failed', async () => {
    await put('e-1.csv', 'user_id,plan\nu5,x\n');
    await put('e-2.csv', 'user_id,plan\n,x\nu6,x\n');
    const schedule = files('e-*.csv', { max_errors: 0, if_duplicate: 'load' });
    const due = new Date('2026-02-01T00:00:00Z');
    const repeat = () => requestRun(context, environmentId, schedule, due);
    expect(await repeat()).toBe('asked');
    const failedRun = await finish(context, schedule);
    expect(failedRun).toMatchObject({ status: 'failed', code: 'too_many_rejects' });
    await put('e-2.csv', 'user_id,plan\nu6,x\n');
    expect(await repeat()).toBe('again');
    const repeatedRun = await finish(context, schedule);
    expect(repeatedRun.status).toBe('completed');
    expect(repeatedRun.items[0]).toEqual(failedRun.items[0]);
    expect(await countLoads('e-1')).toBe(1);
    expect(await repeat()).toBe('known');
  });

  test('a reversed range in a pattern matches no file', async () => {
    await put('range.csv', 'user_id\nx\n');
    expect(await doNow(files('[z-a]ange.csv'))).toMatchObject({ status: 'unchanged', items: [] });
    expect(await doNow(files('[z-ar]ange.csv'))).toMatchObject({ status: 'completed' });
  });

  test('files outside the allowed folders cannot be loaded', async () => {
    await writeFile(join(folder, 'secret.csv'), 'user_id\nx\n');
    await symlink(join(folder, 'secret.csv'), join(folder, 'in/default', 'link.csv'));
    for (const pattern of ['link.csv', join(folder, 'secret.csv'), join(folder, '*.csv')]) {
      const run = await doNow(files(pattern));
      expect(run).toMatchObject({ status: 'failed', code: 'outside_roots' });
    }
    expect(await userIds()).toEqual([]);
  });
});

test.skipIf(process.getuid?.() !== 0)('an unreadable file fails the run, with a path', async () => {
  const locked = join(folder, 'in/default', 'locked');
  await mkdir(locked, { mode: 0o700 });
  await put('locked/a.csv', 'user_id\nu1\n');
  const schedule = files('locked/a.csv');
  await request(schedule, '2026-03-01T00:00:00Z');
  await chmod(folder, 0o755);
  // This process runs as another user while it searches for the file.
  process.seteuid?.(65_534);
  try {
    await doNext(context);
  } finally {
    process.seteuid?.(0);
  }
  expect(await finish(context, schedule)).toMatchObject({
    status: 'failed',
    code: 'unreadable_file',
    reason: `${join(locked, 'a.csv')} cannot be read: EACCES`,
  });
});

describe('a worker with a run', () => {
  // proves: schedule-once
  test('the run of a lost worker is completed by another, and loads nothing twice', async () => {
    await put('c-1.csv', 'user_id\nc1\n');
    await put('c-2.csv', 'user_id\nc2\n');
    const schedule = files('c-*.csv', { if_duplicate: 'load' });
    await request(schedule);
    const claim = await take();
    // The worker dies after it has stored the first file, so its later writes fail.
    const dying = new AbortController();
    const log = Object.assign(Object.create(context.log), { info: () => dying.abort(new Error('killed')) });
    await runJob.run({ ...context, log }, claim, dying.signal).catch(() => undefined);
    expect(await countLoads('c-')).toBe(1);
    await loseWorker();
    const { rows } = await sql`select losses from tasks where task_id = ${claim.taskId}`.execute(context.db);
    expect(rows).toEqual([{ losses: 1 }]);
    const run = await finish(context, schedule);
    expect(run).toMatchObject({ status: 'completed', attempts: 2 });
    expect(await countLoads('c-')).toBe(2);
  });

  test('a late worker changes nothing', async () => {
    await put('d-1.csv', 'user_id\nd1\n');
    const schedule = files('d-*.csv', { if_duplicate: 'load' });
    await request(schedule);
    const lateClaim = await take();
    await loseWorker();
    const otherClaim = await take();
    const never = new AbortController().signal;
    await expect(runJob.run(context, lateClaim, never)).rejects.toThrow(LostClaim);
    expect(await countLoads('d-')).toBe(0);
    await runJob.run(context, otherClaim, never);
    const run = await finish(context, schedule);
    await expect(runJob.run(context, lateClaim, never)).rejects.toThrow(LostClaim);
    expect(await runsOf(context, schedule)).toMatchObject([{ status: 'completed', attempts: 2 }]);
    expect(run.items).toHaveLength(1);
    expect(await countLoads('d-')).toBe(1);
  });

  test('a worker that stops releases its run without a spent attempt', async () => {
    const slow = page(`${httpServer.url}/slow`, { allow_http: true });
    httpServer.answer('/slow', (_, response) => void response.writeHead(200).write('user_id\n'));
    await request(slow);
    const stopping = new AbortController();
    const running = doNext(context, stopping.signal);
    await waitFor('the request', () => httpServer.requests.some(({ url }) => url === '/slow'));
    stopping.abort(new Interrupted('the worker stops'));
    await running;
    expect(await runsOf(context, slow)).toMatchObject([{ status: 'queued', lastError: null }]);
  });
});

describe('a web server as a source', () => {
  test('a request has headers with variables, and an unchanged file is not loaded', async () => {
    let etag = '"1"';
    httpsServer.answer('/users.csv', (request, response) => {
      if (request.headers['if-none-match'] === etag) return void response.writeHead(304).end();
      response.writeHead(200, { etag }).end(`user_id\nh${etag.slice(1, 2)}\n`);
    });
    const schedule = page(`${httpsServer.url}/users.csv`, {
      headers: { Authorization: 'Bearer ${env:SCHEDULE_TOKEN}' },
    });
    expect(await doNow(schedule)).toMatchObject({ status: 'completed' });
    expect(httpsServer.requests.at(-1)?.headers.authorization).toBe('Bearer geheim');
    expect(await doNow(schedule)).toMatchObject({ status: 'unchanged' });
    etag = '"2"';
    expect(await doNow(schedule)).toMatchObject({ status: 'completed' });
    expect(await userIds()).toEqual(['h1', 'h2']);
    const runs = await sql`select definition::text from schedule_runs`.execute(context.db);
    expect(JSON.stringify(runs.rows)).not.toContain('geheim');
  });

  test('a private web server is refused unless both schedule and setting allow it', async () => {
    const requestsBefore = httpsServer.requests.length;
    const strict = { ...context, schedules: { ...context.schedules, allowPrivate: false } };
    const port = new URL(httpsServer.url).port;
    const code = async (runContext: ScheduleContext, url: string, options = {}) =>
      (await doNow(page(url, options), runContext)).code;
    expect(await code(context, `${httpsServer.url}/users.csv`, { allow_private: false })).toBe(
      'private_address',
    );
    expect(await code(strict, `${httpsServer.url}/users.csv`)).toBe('private_address');
    expect(await code(strict, `https://localhost:${port}/users.csv`)).toBe('private_address');
    expect(await code(strict, `https://[::ffff:127.0.0.1]:${port}/users.csv`)).toBe('private_address');
    expect(httpsServer.requests).toHaveLength(requestsBefore);
  });

  test('a redirect is followed within bounds, without the secrets for another server', async () => {
    const to = (location: string) => (_: unknown, response: import('node:http').ServerResponse) =>
      void response.writeHead(302, { location }).end();
    const headers = { Authorization: 'Bearer ${env:SCHEDULE_TOKEN}' };
    const otherServer = await startWebServer('http');
    try {
      otherServer.answer('/there', (_, response) => void response.end('user_id\nr1\n'));
      httpServer.answer('/here', to(`${otherServer.url}/there`));
      const run = await doNow(page(`${httpServer.url}/here`, { allow_http: true, headers }));
      expect(run.status).toBe('completed');
      expect(httpServer.requests.at(-1)?.headers.authorization).toBe('Bearer geheim');
      expect(otherServer.requests[0]?.headers.authorization).toBeUndefined();
    } finally {
      await otherServer.stop();
    }
    const code = async (url: string) =>
      (await doNow(page(url, { allow_http: url.startsWith('http:') }))).code;
    httpServer.answer('/loop', to('/loop'));
    expect(await code(`${httpServer.url}/loop`)).toBe('too_many_redirects');
    httpsServer.answer('/down', to(`${httpServer.url}/here`));
    expect(await code(`${httpsServer.url}/down`)).toBe('insecure_redirect');
    httpServer.answer('/metadata', to('http://169.254.169.254/latest'));
    expect(await code(`${httpServer.url}/metadata`)).toBe('private_address');
  });

  test('a failing web server fails the run with the reason', async () => {
    const small = {
      ...context,
      schedules: { ...context.schedules, limits: { ...context.schedules.limits, maxUploadBytes: 1_000 } },
    };
    httpsServer.answer('/large', (_, response) => void response.end(`user_id\n${'x'.repeat(2_000)}\n`));
    expect(await doNow(page(`${httpsServer.url}/large`), small)).toMatchObject({
      status: 'failed',
      code: 'payload_too_large',
    });
    expect(await doNow(page(`${httpsServer.url}/none`))).toMatchObject({
      code: 'unexpected_status',
      reason: expect.stringContaining('404'),
    });
    const unset = page(`${httpsServer.url}/users.csv`, { headers: { X: '${env:SCHEDULE_NOT_SET}' } });
    expect((await doNow(unset)).code).toBe('missing_variable');
  });

  test('a busy web server is requested again, and no secret is logged or stored', async () => {
    let requests = 0;
    httpsServer.answer('/moody?token=geheim', (_, response) => {
      response.writeHead(++requests === 1 ? 503 : 200).end('user_id\nm1\n');
    });
    const { log, lines } = collectLog();
    const schedule = page(`${httpsServer.url}/moody?token=\${env:SCHEDULE_TOKEN}`);
    await request(schedule);
    await doNext({ ...context, log });
    const [failedRun] = await runsOf(context, schedule);
    expect(failedRun).toMatchObject({ status: 'queued', lastError: expect.stringContaining('503') });
    expect(lines).toMatchObject([{ schedule: schedule.name, err: { code: 'unexpected_status' } }]);
    await makeTasksDue(context.db, 'run');
    const repeatedRun = await finish(context, schedule);
    expect(repeatedRun).toMatchObject({ status: 'completed', attempts: 2 });
    const loads = await sql`select * from loads where filename like 'moody%'`.execute(context.db);
    expect(JSON.stringify([failedRun, lines, repeatedRun, loads.rows])).not.toContain('geheim');
    expect(loads.rows).toHaveLength(1);
  });
});

// proves: schedule-objects
test('new and changed objects of a bucket are loaded, the oldest first, in pages', async () => {
  const bucket = await startS3();
  cleanUpAfter('test', () => bucket.stop());
  const s3 = {
    url: 's3://files/in/',
    endpoint: bucket.endpoint,
    access_key: 'S3RVER',
    secret_key: 'S3RVER',
  };
  const schedule = readSchedule({ load: { s3, entity: 'users' } });
  await bucket.put('in/b.ndjson', '{"user_id":"s1","n":"first"}\n', '2026-01-01T00:00:00Z');
  await bucket.put('in/a.ndjson.gz', gzipSync('{"user_id":"s1","n":"second"}\n'), '2026-01-02T00:00:00Z');
  await bucket.put('elsewhere.ndjson', '{"user_id":"s9"}\n', '2026-01-01T00:00:00Z');
  expect(await doNow(schedule)).toMatchObject({
    status: 'completed',
    items: [{ item: 'in/a.ndjson.gz' }, { item: 'in/b.ndjson' }],
  });
  const { users } = await readProfiles(t.system, environmentId);
  expect(users).toEqual({ s1: { metadata: { n: 'second' }, company: null } });
  expect(await doNow(schedule)).toMatchObject({
    status: 'unchanged',
    items: [],
  });
  await bucket.put('in/b.ndjson', '{"user_id":"s2"}\n', '2026-01-03T00:00:00Z');
  expect(await doNow(schedule)).toMatchObject({
    items: [{ item: 'in/b.ndjson' }],
  });
  // The bucket's list has two pages. The oldest file is on the last page.
  const names = Array.from({ length: 12 }, (_, at) => `many/${String.fromCharCode(97 + at)}.csv`);
  for (const [at, name] of names.entries()) {
    await bucket.put(name, 'user_id\ns3\n', new Date(Date.UTC(2026, 0, 30 - at)).toISOString());
  }
  const source = openS3({ ...s3, url: 's3://files/many/' }, context.schedules, 5);
  const takenKeys: string[] = [];
  for (const expected of [5, 5, 2, 0]) {
    const items = await source.list((key) => takenKeys.includes(key), new AbortController().signal);
    expect(items).toHaveLength(expected);
    takenKeys.push(...items.map(({ key }) => key));
  }
  source.close?.();
  expect(takenKeys).toEqual(names.toReversed());
  const missing = readSchedule({ load: { s3: { ...s3, url: 's3://no-such-bucket/' } } });
  expect(await doNow(missing)).toMatchObject({
    status: 'failed',
    code: 's3_failed',
  });
});

describe('the exports of a schedule', () => {
  async function deliveredIds(to: string | null): Promise<string[]> {
    const text = await readFile(join(to ?? '', 'users.ndjson'), 'utf8');
    return text
      .split('\n')
      .flatMap((line) => (line === '' ? [] : (JSON.parse(line) as { user_id: string }).user_id));
  }

  const increments = (fields = {}) =>
    readSchedule({
      export: {
        range: 'since_last_success',
        event_type: 'users',
        compression: 'none',
        to_dir: 'increments',
        ...fields,
      },
    });

  test('exports since the last success have every change once, despite a failed run', async () => {
    const schedule = increments({ retention_days: 3 });
    await add('e1');
    const firstRun = await doNow(schedule);
    expect(firstRun).toMatchObject({ status: 'completed', rangeFrom: null, rangeTo: null });
    expect(await deliveredIds(firstRun.deliveredTo)).toEqual(['e1']);
    const exportRow = await requireExport(context, environmentId, firstRun.items[0]?.jobId ?? '');
    const { rows } =
      await sql`select retention_days, cursor from exports join schedules using (cursor) where job_id = ${exportRow.jobId}`.execute(
        context.db,
      );
    expect(rows).toEqual([{ retention_days: 3, cursor: exportRow.cursor }]);
    await add('e2');
    await request(schedule, '2025-01-01T00:00:00Z');
    await sql`update schedule_runs set status = 'failed', reason_code = 'x', ended_at = now() where status = 'queued'`.execute(
      context.db,
    );
    await add('e3');
    expect((await deliveredIds((await doNow(schedule)).deliveredTo)).sort()).toEqual(['e2', 'e3']);
    expect(await deliveredIds((await doNow(schedule)).deliveredTo)).toEqual([]);
  });

  // proves: schedule-export
  test('an export since the last success leaves uncommitted changes to the next run', async () => {
    const schedule = increments({ event_type: ['users', 'events'] });
    await sql`select ensure_events_partition(now() - interval '1 hour')`.execute(context.db);
    const client = await t.system.pool.connect();
    try {
      await client.query('begin');
      await client.query(
        `insert into users (environment_id, user_id, updated_at) values ($1, 'late', now() - interval '1 day')`,
        [environmentId],
      );
      await client.query(
        `insert into events (inserted_at, environment_id, event_id, event_name, user_id, source)
         values (now() - interval '1 hour', $1, 'late', 'late', 'late', 'test')`,
        [environmentId],
      );
      await add('done');
      const firstRun = await doNow(schedule);
      expect(await deliveredIds(firstRun.deliveredTo)).toEqual(['done']);
      await client.query('commit');
    } finally {
      client.release();
    }
    const { deliveredTo } = await doNow(schedule);
    expect(await deliveredIds(deliveredTo)).toEqual(['late']);
    expect(await readFile(join(deliveredTo ?? '', 'events.ndjson'), 'utf8')).toContain('"event_id":"late"');
  });

  // proves: schedule-export
  test('an export with an expired cursor exports everything once, with a warning', async () => {
    const schedule = increments({ include_removed: true });
    await add('kept');
    await doNow(schedule);
    await sql`update change_log set complete_since = current_position()`.execute(context.db);
    // The next cursor would also be expired if a transaction that began before `complete_since`
    // were still open in any database.
    await waitFor('older transactions to end', async () => {
      const { rows } = await sql<{ over: boolean }>`
        select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + position_offset() >= complete_since as over
        from change_log`.execute(context.db);
      return rows[0]?.over;
    });
    const fullRun = await doNow(schedule);
    expect(await deliveredIds(fullRun.deliveredTo)).toEqual(['kept']);
    const { warnings } = await requireExport(context, environmentId, fullRun.items[0]?.jobId ?? '');
    expect(warnings).toMatchObject([{ message: expect.stringContaining('has expired') }]);
    await sql`delete from users`.execute(context.db);
    const { deliveredTo } = await doNow(schedule);
    expect(await readFile(join(deliveredTo ?? '', 'users.ndjson'), 'utf8')).toBe(
      '{"user_id":"kept","removed":true}\n',
    );
  });

  // proves: schedule-once
  test('an export of a lost worker is delivered once it is completed', async () => {
    await add('kept');
    const schedule = readSchedule({
      export: { event_type: 'users', compression: 'none', to_dir: 'lost' },
    });
    const endBlock = await refuseToWait();
    try {
      await request(schedule, '2026-03-01T11:00:00Z');
      const claim = await take();
      const run = runJob.run(context, claim, new AbortController().signal);
      await expect(run).rejects.toThrow('not now');
    } finally {
      await endBlock();
    }
    await loseWorker();
    expect(await doNext(context)).toBe(true);
    expect(await runsOf(context, schedule)).toMatchObject([
      { status: 'waiting', attempts: 2, deliveredTo: null },
    ]);
    await makeTasksDue(context.db, 'export');
    const { status, items, deliveredTo } = await finish(context, schedule);
    expect({ status, items: items.map(({ item }) => item) }).toEqual({
      status: 'completed',
      items: ['export'],
    });
    expect(await deliveredIds(deliveredTo)).toEqual(['kept']);
  });

  /**
   * Prevents runs from waiting and exports from starting, until the returned function is called.
   */
  async function refuseToWait(): Promise<() => Promise<void>> {
    await sql`create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not now'; end $$`.execute(context.db);
    await sql`create function put_off() returns trigger language plpgsql as
      $$ begin new.not_before = now() + interval '1 hour'; return new; end $$`.execute(context.db);
    await sql`create trigger refuse before update on schedule_runs
      for each row when (new.status = 'waiting') execute function refuse()`.execute(context.db);
    await sql`create trigger put_off before insert on tasks
      for each row when (new.kind = 'export') execute function put_off()`.execute(context.db);
    return async () => {
      await sql`drop function refuse, put_off cascade`.execute(context.db);
    };
  }
});

test('an export to a link out of the allowed folders fails, and makes nothing', async () => {
  const elsewhere = join(folder, 'elsewhere');
  await mkdir(elsewhere);
  await mkdir(join(folder, 'out/default'), { recursive: true });
  await symlink(elsewhere, join(folder, 'out/default', 'link'));
  await symlink(join(folder, 'nowhere'), join(folder, 'out/default', 'dangling'));
  for (const to_dir of ['link', 'link/a/b', 'dangling/a']) {
    const run = await doNow(readSchedule({ export: { event_type: 'users', to_dir } }));
    expect(run).toMatchObject({ status: 'failed', code: 'outside_roots' });
  }
  expect(await readdir(elsewhere)).toEqual([]);
  expect(await readdir(folder)).not.toContain('nowhere');
});

describe('the notification about a run', () => {
  const address = 'ops@example.com';
  afterEach(async () => {
    await sql`truncate notification_events, notification_subscriptions cascade`.execute(context.db);
  });
  const notifying = (pattern: string, notify: object) =>
    readSchedule({ load: { files: { pattern } }, notify });
  const listAll = () => listDeliveries(context.db, environmentId, { failed: false, limit: 100 });
  test('the end of a run is mailed once, even without a job, and other ends are not', async () => {
    const missing = { http: { url: `${httpsServer.url}/none`, allow_private: true }, entity: 'users' };
    const schedule = readSchedule({ load: missing, notify: { emails: [address], on: ['failed'] } });
    await request(schedule, '2026-03-01T11:00:00Z');
    await doNext(context);
    expect(await listAll()).toEqual([]);
    await Promise.all([endWaitingRuns(context), endWaitingRuns(context), endWaitingRuns(context)]);
    await endWaitingRuns(context);
    const deliveries = await waitFor('the mail', async () => {
      const listed = await listAll();
      return listed.every(({ state }) => state === 'delivered') ? listed : null;
    });
    expect(deliveries).toMatchObject([
      { eventType: 'schedule.failed', target: address, jobId: null, subscriptionId: null },
    ]);
    const outbox = join(t.config.dataDir, 'outbox');
    const mails = await Promise.all(
      (await readdir(outbox)).map((name) => readFile(join(outbox, name), 'utf8')),
    );
    expect(mails.filter((mail) => mail.includes(`Schedule ${schedule.name} failed`))).toEqual([
      expect.stringMatching(/^Reason: .* answers with status 404 \[unexpected_status\]/m),
    ]);
    const unchanged = notifying('none-*.csv', { emails: [address] });
    expect(await doNow(unchanged)).toMatchObject({ status: 'unchanged' });
    await put('notify-ok.csv', 'user_id\nok\n');
    const completed = notifying('notify-ok.csv', { emails: [address], on: ['failed'] });
    expect(await doNow(completed)).toMatchObject({ status: 'completed' });
    expect(await listAll()).toHaveLength(1);
  });

  test('a run whose end cannot be recorded delays no other', async () => {
    await put('stuck.csv', 'user_id\nstuck1\n');
    const stuckSchedule = notifying('stuck.csv', { emails: [address] });
    await put('other.csv', 'user_id\nother1\n');
    const otherSchedule = notifying('other.csv', { emails: [address] });
    const allow = await refuseToRemember('stuck.csv');
    try {
      // Each call of `doNext` processes one run. The first call takes the run that was created
      // first.
      await request(stuckSchedule, '2026-03-01T11:00:00Z');
      await request(otherSchedule, '2026-03-01T10:00:00Z');
      await doNext(context);
      await doNext(context);
      await waitFor('both loads to complete', async () => {
        const { rows } = await sql`select from loads where status = 'completed'
          and filename in ('other.csv', 'stuck.csv')`.execute(context.db);
        return rows.length === 2;
      });
      await expect(endWaitingRuns(context, 1)).rejects.toThrow('not now');
      expect(await runsOf(context, otherSchedule)).toMatchObject([{ status: 'completed' }]);
      expect(await runsOf(context, stuckSchedule)).toMatchObject([{ status: 'waiting' }]);
    } finally {
      await allow();
    }
    expect(await finish(context, stuckSchedule)).toMatchObject({ status: 'completed' });
  });

  // proves: schedule-objects
  test('the end of a run is seen, however many later runs wait for their jobs', async () => {
    const endedJob = uuidv7();
    const openJob = uuidv7();
    await sql`
      insert into exports (job_id, environment_id, request, format, compression, status, ended_at)
      values
        (${endedJob}, ${environmentId}, '{}', 'csv', 'none', 'cancelled', now()),
        (${openJob}, ${environmentId}, '{}', 'csv', 'none', 'queued', null)`.execute(context.db);
    cleanUpAfter('test', () => sql`delete from exports where job_id = ${openJob}`.execute(context.db));
    await sql`
        insert into schedules (environment_id, schedule_name, considered_until)
        select ${environmentId}::integer, 'many-' || n, now() from generate_series(0, 200) n`.execute(
      context.db,
    );
    await sql`
        with made as (
          insert into schedule_runs (environment_id, schedule_name, due_at, cause, status, definition)
          select
            ${environmentId}::integer, 'many-' || n, '2026-03-01'::timestamptz + n * interval '1 hour', 'due', 'waiting',
            ${JSON.stringify({ timezone: 'UTC', export: { event_type: 'users' } })}::jsonb
          from generate_series(0, 200) n
          returning run_id, schedule_name
        )
        insert into schedule_run_items (run_id, item, job_id, is_new)
        select run_id, 'export', case schedule_name when 'many-0' then ${endedJob}::uuid else ${openJob}::uuid end, true
        from made`.execute(context.db);
    await endWaitingRuns(context);
    const { rows } = await sql`
        select status, min(schedule_name) as first, count(*)::integer as runs
        from schedule_runs group by status order by runs`.execute(context.db);
    expect(rows).toEqual([
      { status: 'failed', first: 'many-0', runs: 1 },
      { status: 'waiting', first: 'many-1', runs: 200 },
    ]);
  });
});
