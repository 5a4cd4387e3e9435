import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openJobs } from '../../../jobs/kinds.ts';
import { createSignInLink } from '../../../src/access/console-session.ts';
import { findEnvironment } from '../../../src/access/environment-store.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { startPoller } from '../../../src/base/timers.ts';
import type { Inbox } from '../../../src/capabilities/inbox/api.ts';
import type { ScheduleDefinition } from '../../../src/capabilities/schedules/schema.ts';
import { linkFilesForMail } from '../../../src/export/file-links.ts';
import { cancelLoad } from '../../../src/load/end.ts';
import {
  type FileOptions,
  loadFile,
  newEnvironment,
  runManually,
  startManually,
} from '../../support/files/load-file.ts';
import { type FetchOptions, openServer, signIn } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { runDueTasks } from '../../support/servers/tasks.ts';
import { waitFor } from '../../support/wait-for.ts';
import { drop } from '../inbox/support/inbox.ts';
import { finish, readSchedule, requestRun, scheduleContext } from '../schedules/support/schedules.ts';

const adminKey = 'an-administrators-key-of-enough-length';
const folder = await mkdtemp(join(tmpdir(), 'sluice-acts-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const inbox = join(folder, 'inbox');
const secret = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const settings = {
  ADMIN_KEY: adminKey,
  INBOX_DIR: inbox,
  INBOX_STABLE_MS: '100',
  SCHEDULES_LOCAL_ROOTS: folder,
  SCHEDULES_EXPORT_ROOTS: folder,
  SUBSCRIPTION_SECRET: secret(7),
  SUBSCRIPTION_OTHER: secret(8),
};
const { t, server } = await openServer({ settings });
const admin = await signIn(server, adminKey);
const { environmentId } = t.environment;
const jobs = openJobs(t.system);
afterAll(() => jobs.close());

type Act = () => Promise<unknown>;

const post = (path: string, json: unknown = {}, options: FetchOptions = {}) =>
  server.json<Record<string, string>>(path, { json, ...options });
const put = (path: string, json: unknown) => post(path, json, { method: 'PUT' });
const sluice = (...words: readonly string[]) => {
  const variables = { ...t.variables, PUBLIC_URL: server.address };
  return runCommand({ ...t, variables }, ...words).finally(() => {
    process.exitCode = undefined;
  });
};

async function twice(act: Act): Promise<void> {
  await act();
  await act();
}

/** Sends a request twice with the same idempotency key. */
const retried = (send: (options: FetchOptions) => Promise<unknown>): Promise<void> => {
  const headers = { 'idempotency-key': randomUUID() };
  return twice(() => send({ headers }));
};

const jobPath = (jobId = '') => `/v1/background_jobs/${jobId}`;
const exportsPath = '/api/v1/analytics/exports';

/**
 * Runs due tasks while `act` runs, without the connections of a worker. Loads of other tests stay
 * queued.
 */
async function withTasks<T>(act: () => Promise<T>): Promise<T> {
  const tasks = startPoller(20, async () => {
    await runDueTasks(t.system, jobs.kinds);
  });
  try {
    return await act();
  } finally {
    await tasks.stop();
  }
}

/** Runs a worker, which also watches the inbox, while `act` runs. */
async function withWorker<T>(act: () => Promise<T>): Promise<T> {
  const worker = t.startWorker();
  try {
    return await act();
  } finally {
    await worker.stop();
  }
}

let files = 0;
async function fileOf(content: unknown, extension = 'json'): Promise<string> {
  const path = join(folder, `file-${++files}.${extension}`);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

async function send(): Promise<string> {
  const headers = { 'content-type': 'text/csv' };
  const { body } = await server.json<Record<string, string>>('/v1/imports', {
    method: 'POST',
    headers,
    body: `user_id,plan\nu${++files},free\n`,
  });
  return body['job_id'] ?? '';
}

const loaded = async (options: FileOptions = {}, csv = `user_id,plan\nu${++files},free\n`) =>
  (await loadFile(t.system, environmentId, csv, options)).jobId;
const planned = () => loaded({ dryRun: true, plan: true });

const named = async (): Promise<string> => jobPath(await send());

async function heldLoad(): Promise<{ readonly env: string; readonly key: string; readonly jobId: string }> {
  const { environment, key } = await t.addEnvironment(`held-${++files}`);
  const load = await startManually(t.system, environment.environmentId, 'user_id\nu1\n', {
    guard: { rows: '2..' },
  });
  const { jobId, status } = await runManually(load);
  expect(status).toBe('held');
  return { env: environment.name, key, jobId };
}

interface ExportDetail {
  readonly end_time: string | null;
  readonly presigned_urls: readonly { readonly url: string }[];
}

let exported: Promise<string> | undefined;
function exportedJob(): Promise<string> {
  exported ??= exportUsers();
  return exported;
}

async function exportUsers(): Promise<string> {
  const { body } = await post(exportsPath, { event_type: 'users' });
  const jobId = body['job_id'] ?? '';
  const detail = () => server.json<ExportDetail>(`${exportsPath}/jobs/${jobId}`);
  await withTasks(() => waitFor('the export', async () => (await detail()).body.end_time !== null));
  return jobId;
}

/**
 * Returns an act that downloads a file of the job. The caller in `options` requests the link to
 * this file.
 */
async function downloadOf(jobId: string, options: FetchOptions): Promise<Act> {
  const { body } = await server.json<ExportDetail>(`${exportsPath}/jobs/${jobId}`, options);
  return () => openLink(body.presigned_urls[0]?.url);
}

async function openLink(url = ''): Promise<void> {
  const answer = await server.fetch(url, { key: null });
  expect([answer.status, await answer.text()]).toEqual([200, expect.anything()]);
}

async function newKey(): Promise<string> {
  return (await post('/v1/keys', { label: 'a' }, admin)).body['key_id'] ?? '';
}

const console = (body: object) =>
  post('/v1/console/sign_in', body, { key: null, headers: { 'sec-fetch-site': 'same-origin' } });

const schedule = { cron: '0 3 * * *', export: {} };
async function newSchedule(): Promise<string> {
  const name = `schedule-${++files}`;
  await put(`/v1/schedules/${name}`, schedule);
  return name;
}

async function newSubscription(): Promise<string> {
  const hook = { url: 'https://example.com/hooks' };
  return (await post('/v1/subscriptions', hook, admin)).body['id'] ?? '';
}

async function newSegment(): Promise<string> {
  const definition = { property: 'plan', equals: 'pro' };
  const { body } = await post('/v1/segments', { key: `s${++files}`, title: `S${files}`, definition });
  return `/v1/segments/${body['id']}`;
}

const rulesFile = () => ({ users: { properties: { plan: { enum: ['free', `pro-${++files}`] } } } });
const definitionsFile = () => ({ features: [{ key: `f${++files}`, display_name: 'Report' }] });

const subscriptionOf = (path: string, variable: string) => ({
  name: 'ops',
  url: `https://example.com/${path}`,
  secret: `\${env:${variable}}`,
});
const declared = {
  definitions: { features: [{ key: 'report', display_name: 'Report' }] },
  rules: { users: { properties: { plan: { enum: ['free'] } } } },
  schedules: { schedules: [{ name: 'nightly', ...schedule }] },
  subscriptions: [subscriptionOf('hooks', 'SUBSCRIPTION_SECRET')],
};
const changed = {
  definitions: { features: [{ key: 'report', display_name: 'Reports' }] },
  rules: { users: { properties: { plan: { enum: ['free', 'pro'] } } } },
  schedules: { schedules: [{ name: 'nightly', ...schedule, cron: '0 4 * * *' }] },
  subscriptions: [subscriptionOf('other', 'SUBSCRIPTION_OTHER')],
};
const empty = { definitions: { features: [] }, rules: {}, schedules: { schedules: [] }, subscriptions: [] };

async function configurationOf(environment: string, members: object): Promise<string> {
  const path = await mkdtemp(join(folder, 'environments-'));
  await writeFile(join(path, `${environment}.yaml`), JSON.stringify(members));
  return path;
}

let configured: Promise<string> | undefined;
/**
 * Returns the name of an environment created from a file. Acts change this environment one after
 * another.
 */
function configuration(): Promise<string> {
  configured ??= newConfiguration();
  return configured;
}

async function newConfiguration(): Promise<string> {
  const name = `applied-${++files}`;
  await sluice('apply', await configurationOf(name, declared), '--create');
  return name;
}

/** Processes the schedule's runs until they end. Meanwhile, a worker runs their jobs. */
async function endRuns(definition: ScheduleDefinition): Promise<void> {
  const { status } = await withTasks(() => finish(scheduleContext(t), definition));
  expect(status).toBe('completed');
}

async function runSchedule(fields: Readonly<Record<string, unknown>>): Promise<void> {
  const definition = readSchedule(fields);
  await requestRun(scheduleContext(t), environmentId, definition, new Date());
  await endRuns(definition);
}

async function failedFile(): Promise<string> {
  await drop(join(inbox, 'default', `wrong-${++files}.csv`), 'nothing,known\n1,2\n');
  return withWorker(async () => {
    const file = await waitFor('the file to fail', async () => {
      const { recent } = (await server.json<Inbox>('/v1/inbox')).body;
      return recent.find(({ name, outcome }) => name === `wrong-${files}.csv` && outcome === 'failed');
    });
    return file.file_id;
  });
}

const byCommand = (action: string) => `command_line ${action}`;

/**
 * Each case has a title, the expected entries of the log, and a function that prepares the act and
 * returns it.
 */
const cases: readonly (readonly [string, readonly string[], () => Promise<Act>])[] = [
  [
    'a key that is created over HTTP',
    ['api_key key.created'],
    async () => () => post('/v1/keys', { label: 'a' }, admin),
  ],
  [
    'a key that is revoked twice',
    ['api_key key.revoked'],
    async () => {
      const path = `/v1/keys/${await newKey()}/revoke`;
      return () => twice(() => post(path, undefined, { ...admin, method: 'POST' }));
    },
  ],
  ['a key that a command creates', ['command_line key.created'], async () => () => sluice('keys', 'create')],
  [
    'a key that a command rotates',
    ['command_line key.rotated'],
    async () => {
      const id = await newKey();
      return () => sluice('keys', 'rotate', id);
    },
  ],
  [
    'a key that a command revokes twice',
    ['command_line key.revoked'],
    async () => {
      const id = await newKey();
      return () => twice(() => sluice('keys', 'revoke', id));
    },
  ],
  [
    'a request of `sluice api`',
    ['command_line key.created', 'command_line key.deleted'],
    async () => () => sluice('api', 'v1/users'),
  ],
  [
    'an environment that is created over HTTP',
    ['api_key environment.created'],
    async () => () => post('/v1/environments', { name: `made-${++files}` }, admin),
  ],
  [
    'an environment that is changed over HTTP',
    ['api_key environment.changed'],
    async () => () =>
      post('/v1/environments/default', { allowed_origins: [] }, { ...admin, method: 'PATCH' }),
  ],
  [
    'an environment that a command creates',
    ['command_line environment.created'],
    async () => () => sluice('env', 'create', `made-${++files}`),
  ],
  [
    'an environment that a command changes',
    ['command_line environment.changed'],
    async () => () => sluice('env', 'layout', '--set', 'stream'),
  ],
  ['a link to the console', ['command_line link.created'], async () => () => sluice('console', 'link')],
  ['a sign-in with ADMIN_KEY', ['api_key session.started'], async () => () => signIn(server, adminKey)],
  ['a sign-in with a key', ['api_key session.started'], async () => () => signIn(server, t.key)],
  [
    'a sign-in by a link',
    ['api_key session.started'],
    async () => {
      const link = await createSignInLink(t.system, environmentId);
      return () => console({ link });
    },
  ],
  ['a sign-in with a wrong key', ['anonymous sign_in.refused'], async () => () => console({ key: 'wrong' })],
  [
    'a request with a wrong key',
    ['anonymous key.refused'],
    async () => () => server.fetch('/v1/users', { key: 'wrong' }),
  ],
  [
    'a sign-out, and a request of the ended session',
    ['api_key session.ended', 'anonymous key.refused'],
    async () => {
      const session = await signIn(server, adminKey);
      return () => twice(() => server.fetch('/v1/console/session', { ...session, method: 'DELETE' }));
    },
  ],
  [
    'a session that a command ends twice',
    ['command_line session.ended'],
    async () => {
      const session = await signIn(server, adminKey);
      const { body } = await server.json<{ session_id: string }>('/v1/console/session', session);
      return () => twice(() => sluice('console', 'end', '--', body.session_id));
    },
  ],
  [
    'a file that is sent twice with the same idempotency key',
    ['api_key load.accepted'],
    async () => () => {
      const body = `user_id\nu${++files}\n`;
      return retried(({ headers }) =>
        server.fetch('/v1/imports', {
          method: 'POST',
          body,
          headers: { ...(headers as object), 'content-type': 'text/csv' },
        }),
      );
    },
  ],
  [
    'an array of users',
    ['api_key load.accepted'],
    async () => () => post('/v1/users/bulk_identify', { users: [{ user_id: 'u1' }] }),
  ],
  [
    'a file that a command imports',
    ['command_line load.accepted'],
    async () => {
      const file = await fileOf(`user_id\nu${++files}\n`, 'csv');
      return () => withTasks(() => sluice('import', file));
    },
  ],
  [
    'a folder of an export that a command imports into an empty environment',
    ['command_line load.accepted', 'command_line definitions.applied'],
    async () => {
      const from = await configuration();
      const environmentOf = await findEnvironment(t.system.db, from);
      await loadFile(t.system, environmentOf?.environmentId ?? 0, 'user_id\nu1\n');
      const path = join(folder, `out-${++files}`);
      await withTasks(() => sluice('export', '--env', from, '--out', path, '--everything'));
      const { environment } = await t.addEnvironment(`imported-${files}`);
      return () => withTasks(() => sluice('import', path, '--env', environment.name));
    },
  ],
  [
    'a load that is cancelled twice with the same idempotency key',
    ['api_key load.cancelled'],
    async () => {
      const path = await named();
      return () => retried((options) => post(`${path}/cancel`, undefined, { ...options, method: 'POST' }));
    },
  ],
  [
    'a load that a command cancels',
    ['command_line load.cancelled'],
    async () => {
      const jobId = await send();
      return () => sluice('jobs', 'cancel', jobId);
    },
  ],
  [
    'a load that is retried twice with the same idempotency key',
    ['api_key load.retried'],
    async () => {
      const path = await named();
      await post(`${path}/cancel`, undefined, { method: 'POST' });
      return () => retried((options) => post(`${path}/retry`, undefined, { ...options, method: 'POST' }));
    },
  ],
  [
    'a load that a command retries',
    ['command_line load.retried'],
    async () => {
      const jobId = await send();
      await post(`${jobPath(jobId)}/cancel`, undefined, { method: 'POST' });
      return () => sluice('jobs', 'retry', jobId);
    },
  ],
  [
    'a plan that is applied twice with the same idempotency key',
    ['api_key load.applied'],
    async () => {
      const path = jobPath(await planned());
      return () => retried((options) => post(`${path}/apply`, {}, options));
    },
  ],
  [
    'a plan that a command applies',
    ['command_line load.applied'],
    async () => {
      const jobId = await planned();
      return () => sluice('jobs', 'apply', jobId);
    },
  ],
  [
    'a held load that is released twice',
    ['api_key load.released'],
    async () => {
      const { key, jobId } = await heldLoad();
      return () => twice(() => post(`${jobPath(jobId)}/apply`, {}, { key }));
    },
  ],
  [
    'a held load that a command releases twice',
    ['command_line load.released'],
    async () => {
      const { env, jobId } = await heldLoad();
      return () => twice(() => sluice('jobs', 'release', jobId, '--env', env));
    },
  ],
  [
    'a held load that is discarded twice',
    ['api_key load.cancelled'],
    async () => {
      const { key, jobId } = await heldLoad();
      return () => twice(() => post(`${jobPath(jobId)}/cancel`, undefined, { key, method: 'POST' }));
    },
  ],
  [
    'a load that is undone twice with the same idempotency key',
    ['api_key load.undone'],
    async () => {
      const path = jobPath(await loaded());
      return () => retried((options) => post(`${path}/undo`, {}, options));
    },
  ],
  [
    'two loads that a command undoes',
    ['command_line load.undone', 'command_line load.undone'],
    async () => {
      const jobIds = [await loaded(), await loaded()];
      return () => sluice('jobs', 'undo', ...jobIds);
    },
  ],
  [
    'a cancelled load of on_failure=undo that has written',
    ['service load.cancelled', 'service load.undone'],
    async () => {
      const environment = await newEnvironment(t.system);
      const options = { source: { onFailure: 'undo' }, chunkBytes: 1 };
      const load = await startManually(t.system, environment, 'user_id\nu1\nu2\n', options);
      await load.chunk(0);
      return () => cancelLoad(t.system, environment, load.jobId);
    },
  ],
  [
    'an export that is requested twice with the same idempotency key',
    ['api_key export.requested'],
    async () => () => retried((options) => post(exportsPath, { event_type: 'users' }, options)),
  ],
  [
    'an export that is cancelled twice with the same idempotency key',
    ['api_key export.cancelled'],
    async () => {
      const { body } = await post(exportsPath, {});
      const path = `${jobPath(body['job_id'])}/cancel`;
      return () => retried((options) => post(path, undefined, { ...options, method: 'POST' }));
    },
  ],
  [
    'an export of a command, of which each file is saved',
    ['command_line export.requested', 'command_line file.downloaded', 'command_line file.downloaded'],
    async () => () =>
      withTasks(() => sluice('export', '--out', join(folder, `out-${++files}`), '--event-type', 'users')),
  ],
  [
    'a file that is downloaded by the link of a key',
    ['api_key file.downloaded'],
    async () => downloadOf(await exportedJob(), { key: t.key }),
  ],
  [
    'a file that is downloaded by the link of a session',
    ['api_key file.downloaded'],
    async () => downloadOf(await exportedJob(), admin),
  ],
  [
    'a file that is downloaded by the link of an e-mail',
    ['link file.downloaded'],
    async () => {
      const jobId = await exportedJob();
      const context = { ...t.system, baseUrl: server.address };
      const { files: links } = await linkFilesForMail(context, environmentId, jobId);
      return () => openLink(links[0]?.url);
    },
  ],
  [
    'rejects that are downloaded twice',
    ['api_key rejects.downloaded', 'api_key rejects.downloaded'],
    async () => {
      const path = jobPath(await loaded({}, 'user_id,plan\n,free\nu1,pro\n'));
      return () => twice(async () => (await server.fetch(`${path}/rejects?format=csv`)).text());
    },
  ],
  [
    'rejects that a command prints',
    ['command_line rejects.downloaded'],
    async () => {
      const jobId = await loaded({}, 'user_id,plan\n,free\nu1,pro\n');
      return () => sluice('jobs', 'rejects', jobId);
    },
  ],
  [
    'the rows of a plan',
    ['api_key plan.downloaded'],
    async () => {
      const path = jobPath(await planned());
      return async () => (await server.fetch(`${path}/plan?format=csv`)).text();
    },
  ],
  [
    'a deletion that is requested twice with the same idempotency key',
    ['api_key deletion.accepted'],
    async () => () =>
      retried((options) => post('/v1/users', { users: ['u1'] }, { ...options, method: 'DELETE' })),
  ],
  [
    'a deletion by a command',
    ['command_line deletion.accepted'],
    async () => () => withTasks(() => sluice('delete', 'users', 'u1', '--yes')),
  ],
  [
    'the outcomes of a deletion',
    ['api_key outcomes.downloaded'],
    async () => {
      const { body } = await post('/v1/users', { users: ['u1'] }, { method: 'DELETE' });
      const path = `${jobPath(body['job_id'])}/outcomes`;
      return async () => (await server.fetch(path, { headers: { accept: 'text/csv' } })).text();
    },
  ],
  [
    'a suppression that is lifted',
    ['api_key suppression.lifted'],
    async () => () => post('/v1/suppressions', { users: ['u1'] }, { method: 'DELETE' }),
  ],
  [
    'the log that is downloaded',
    ['api_key audit.downloaded'],
    async () => async () => (await server.fetch('/v1/audit?format=ndjson', admin)).text(),
  ],
  [
    'the log that a command prints as NDJSON',
    ['command_line audit.downloaded'],
    async () => () => sluice('audit', '--ndjson'),
  ],
  [
    'definitions that a command applies twice',
    ['command_line definitions.applied'],
    async () => {
      const file = await fileOf(definitionsFile());
      return () => twice(() => sluice('definitions', 'apply', file));
    },
  ],
  [
    'rules that are stored twice over HTTP',
    ['api_key rules.applied'],
    async () => {
      const rules = { file: JSON.stringify(rulesFile()) };
      return () => twice(() => put('/v1/rules', rules));
    },
  ],
  [
    'rules that a command applies twice',
    ['command_line rules.applied'],
    async () => {
      const file = await fileOf(rulesFile());
      return () => twice(() => sluice('rules', 'apply', file));
    },
  ],
  ['a segment that is created', ['api_key segment.created'], async () => newSegment],
  [
    'a segment that is changed',
    ['api_key segment.changed'],
    async () => {
      const path = await newSegment();
      return () => put(path, { title: path, definition: { property: 'plan', equals: 'free' } });
    },
  ],
  [
    'a segment that is deleted twice',
    ['api_key segment.deleted'],
    async () => {
      const path = await newSegment();
      return () => twice(() => server.fetch(path, { method: 'DELETE' }));
    },
  ],
  [
    'a schedule that is stored twice over HTTP',
    ['api_key schedule.created'],
    async () => () => {
      const path = `/v1/schedules/schedule-${++files}`;
      return twice(() => put(path, schedule));
    },
  ],
  [
    'a schedule that is changed',
    ['api_key schedule.changed'],
    async () => {
      const path = `/v1/schedules/${await newSchedule()}`;
      return () => put(path, { ...schedule, cron: '0 4 * * *' });
    },
  ],
  [
    'a schedule that is paused twice and resumed twice',
    ['api_key schedule.paused', 'api_key schedule.resumed'],
    async () => {
      const path = `/v1/schedules/${await newSchedule()}`;
      const pause = (paused: boolean) => () => post(path, { paused }, { method: 'PATCH' });
      return async () => {
        await twice(pause(true));
        await twice(pause(false));
      };
    },
  ],
  [
    'a schedule that is run twice for the same time',
    ['api_key schedule.run', 'schedule export.requested'],
    async () => {
      const name = await newSchedule();
      const run = () => post(`/v1/schedules/${name}/runs`, { due_at: '2026-01-01T00:00:00Z' });
      return async () => {
        await twice(run);
        await endRuns(readSchedule({ name, ...schedule }));
      };
    },
  ],
  [
    'a schedule that is deleted twice',
    ['api_key schedule.deleted'],
    async () => {
      const path = `/v1/schedules/${await newSchedule()}`;
      return () => twice(() => server.fetch(path, { method: 'DELETE' }));
    },
  ],
  [
    'a schedule that commands apply, pause, resume, run and delete',
    [
      'command_line schedule.created',
      'command_line schedule.paused',
      'command_line schedule.resumed',
      'command_line schedule.run',
      'schedule export.requested',
      'command_line schedule.deleted',
    ],
    async () => {
      const name = `schedule-${++files}`;
      const file = await fileOf({ schedules: [{ name, ...schedule }] });
      return async () => {
        await sluice('schedules', 'apply', file);
        await sluice('schedules', 'pause', name);
        await sluice('schedules', 'resume', name);
        await sluice('schedules', 'run', name);
        await endRuns(readSchedule({ name, ...schedule }));
        await sluice('schedules', 'delete', name);
      };
    },
  ],
  [
    'a load of a schedule',
    ['service schedule.run', 'schedule load.accepted'],
    async () => {
      await drop(join(folder, 'default', 'scheduled.csv'), 'user_id\nscheduled\n');
      return () => runSchedule({ load: { files: { pattern: 'scheduled.csv' }, entity: 'users' } });
    },
  ],
  [
    'an export of a schedule, which is copied to a folder',
    ['service schedule.run', 'schedule export.requested', 'schedule export.delivered'],
    async () => () => runSchedule({ export: { event_type: 'users', to_dir: 'copies' } }),
  ],
  ['a subscription that is created over HTTP', ['api_key subscription.created'], async () => newSubscription],
  [
    'a subscription that is removed twice',
    ['api_key subscription.removed'],
    async () => {
      const path = `/v1/subscriptions/${await newSubscription()}`;
      return () => twice(() => server.fetch(path, { ...admin, method: 'DELETE' }));
    },
  ],
  [
    'a subscription that commands add',
    ['command_line subscription.created'],
    async () => () => sluice('notifications', 'add', '--email', 'ops@example.com'),
  ],
  [
    'a subscription whose secret a command replaces',
    ['command_line subscription.secret_rotated'],
    async () => {
      const id = await newSubscription();
      return () => sluice('notifications', 'rotate-secret', id);
    },
  ],
  [
    'a subscription that a command removes',
    ['command_line subscription.removed'],
    async () => {
      const id = await newSubscription();
      return () => sluice('notifications', 'remove', id);
    },
  ],
  [
    'an environment that `sluice apply` creates, and then finds unchanged',
    [
      'environment.created',
      'definitions.applied',
      'rules.applied',
      'subscription.created',
      'schedule.created',
    ].map(byCommand),
    async () => {
      const path = await configurationOf(`applied-${++files}`, declared);
      return () => twice(() => sluice('apply', path, '--create'));
    },
  ],
  [
    'an environment that `sluice apply` changes',
    [
      'definitions.applied',
      'rules.applied',
      'subscription.changed',
      'subscription.secret_rotated',
      'schedule.changed',
    ].map(byCommand),
    async () => {
      const path = await configurationOf(await configuration(), changed);
      return () => twice(() => sluice('apply', path));
    },
  ],
  [
    'an environment that `sluice apply --prune` empties',
    ['definitions.applied', 'rules.applied', 'subscription.removed', 'schedule.deleted'].map(byCommand),
    async () => {
      const path = await configurationOf(await configuration(), empty);
      return () => twice(() => sluice('apply', path, '--prune', '--yes'));
    },
  ],
  [
    'a file of the inbox that is taken in again',
    ['api_key inbox_file.taken_again'],
    async () => {
      const path = `/v1/inbox/${await failedFile()}/take_again`;
      return () => twice(() => post(path, undefined, { method: 'POST' }));
    },
  ],
  [
    'a file that is dropped into the inbox',
    ['inbox load.accepted'],
    async () => {
      const name = `dropped-${++files}.csv`;
      return async () => {
        await drop(join(inbox, 'default', name), `user_id\n${name}\n`);
        await withWorker(() =>
          waitFor('the file to be loaded', async () => {
            const { recent } = (await server.json<Inbox>('/v1/inbox')).body;
            return recent.some((file) => file.name === name && file.outcome === 'done');
          }),
        );
      };
    },
  ],
];

/** Returns the id, the act and the count of each entry. */
async function readCounts() {
  // Refused credentials are counted in memory. `close` writes the counts to the log.
  await t.system.acts.close();
  const { rows } = await t.system.pool.query<{ id: string; act: string; count: string }>(
    "select entry_id as id, actor_kind || ' ' || action as act, count from audit_entries order by entry_id",
  );
  return rows.map(({ id, act, count }) => ({ id, act, count: Number(count) }));
}

test.each(cases)('%s: the log has exactly %j', async (_, expected, prepare) => {
  const act = await prepare();
  const before = new Map((await readCounts()).map(({ id, count }) => [id, count]));
  await act();
  const added = (await readCounts()).flatMap(({ id, act: name, count }) =>
    Array.from({ length: count - (before.get(id) ?? 0) }, () => name),
  );
  expect(added).toEqual(expected);
});

test('the documentation lists exactly the actions that are tested here', async () => {
  const page = await readFile(join(packageRoot, 'docs/audit.md'), 'utf8');
  const documented = [...page.matchAll(/^\| (`[^|]*`) \| ([^|]*) \|$/gm)].flatMap(
    ([, nouns = '', verbs = '']) =>
      [...nouns.matchAll(/`(\w+)`/g)].flatMap(([, noun]) =>
        verbs.split(', ').map((verb) => `${noun}.${verb.trim()}`),
      ),
  );
  const tested = cases.flatMap(([, acts]) => acts.map((each) => each.split(' ')[1]));
  expect(documented.toSorted()).toEqual([...new Set(tested)].toSorted());
});
