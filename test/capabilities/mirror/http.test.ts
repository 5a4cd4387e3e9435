import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { MirrorField } from '../../../src/capabilities/mirror/api.ts';
import { readDeliveryPolicy } from '../../../src/capabilities/notifications/deliver.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import type { JobDetail, Plan } from '../../../src/load/api.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { type ErrorBody, form, openServer } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import type { Tenant } from '../../support/servers/system.ts';

type Job = JobDetail & { readonly mirror: MirrorField };

const { t, server } = await openServer({ worker: true });

let environments = 0;
const tenant = (): Promise<Tenant> => t.addEnvironment(`mirror${++environments}`);

function post<T>({ key }: Tenant, path: string, body: string, type = 'text/csv') {
  return server.json<T>(path, { method: 'POST', key, body, headers: { 'content-type': type } });
}

async function ended({ key }: Tenant, jobId: string): Promise<Job> {
  const show = async () => (await server.json<Job>(`/v1/background_jobs/${jobId}`, { key })).body;
  await expect.poll(async () => (await show()).status).toMatch(/completed|failed/);
  return show();
}

async function load(owner: Tenant, body: string, query = '?mirror=remove&max_removed=100%'): Promise<Job> {
  const { status, body: job } = await post<Job>(owner, `/v1/imports${query.replace('%', '%25')}`, body);
  expect(status).toBe(200);
  return ended(owner, job.job_id);
}

async function refusal(owner: Tenant, body: string, query: string) {
  const answer = await post<ErrorBody>(owner, `/v1/imports${query}`, body);
  return [answer.status, answer.body.errors[0]?.message, answer.body.errors[0]?.details];
}

const users = async ({ environment }: Tenant) =>
  (await readProfiles(t.system, environment.environmentId)).users;
const ids = async (owner: Tenant) => Object.keys(await users(owner)).sort();

const csv = (...rows: readonly string[]) => `user_id,plan\n${rows.map((row) => `${row}\n`).join('')}`;
const fourUsers = csv('u1,pro', 'u2,pro', 'u3,free', 'u4,free');

test('a mirror removes the profiles that its file lacks, and counts them separately', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const job = await load(owner, csv('u1,pro', 'u2,basic', 'u5,pro'));
  expect(job.counts).toMatchObject({ read: 3, inserted: 1, updated: 1, unchanged: 1, removed: 0 });
  expect(job.mirror).toEqual({
    profiles: 4,
    missing: 2,
    allowed: 4,
    done: 2,
    kept_because: null,
    summary: '2 of 4 profiles are missing from the file; 2 removed',
  });
  expect(await ids(owner)).toEqual(['u1', 'u2', 'u5']);
});

test('a mirror of a file of companies removes companies, and no user', async () => {
  const owner = await tenant();
  await load(owner, 'user_id,company_id\nu1,acme\nu2,globex\n', '');
  const job = await load(owner, 'company_id,tier\nacme,gold\n');
  expect(job.mirror).toMatchObject({ profiles: 2, missing: 1, done: 1 });
  const { companies } = await readProfiles(t.system, owner.environment.environmentId);
  expect(Object.keys(companies)).toEqual(['acme']);
  expect(await ids(owner)).toEqual(['u1', 'u2']);
});

test('a mirror removes nothing beyond max_removed, by default 5%, and completes', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const job = await load(owner, csv('u1,pro', 'u2,pro', 'u3,free'), '?mirror=remove');
  expect(job).toMatchObject({
    status: 'completed',
    mirror: { profiles: 4, missing: 1, allowed: 0, done: 0, kept_because: 'too_many' },
  });
  const mirrored = await load(owner, csv('u1,pro'), '?mirror=remove&max_removed=2');
  expect(mirrored.mirror).toMatchObject({ missing: 3, allowed: 2, done: 0, kept_because: 'too_many' });
  expect(await ids(owner)).toEqual(['u1', 'u2', 'u3', 'u4']);
  expect((await load(owner, csv('u1,pro'), '?mirror=remove&max_removed=3')).mirror).toMatchObject({
    done: 3,
  });
  expect(await ids(owner)).toEqual(['u1']);
});

test('a mirror with rejects removes nothing without mirror_despite_rejects', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const file = csv('u1,pro', ',pro');
  expect((await load(owner, file)).mirror).toMatchObject({ missing: 3, done: 0, kept_because: 'rejects' });
  expect(await ids(owner)).toHaveLength(4);
  const query = '?mirror=remove&max_removed=100%&mirror_despite_rejects=true';
  expect((await load(owner, file, query)).mirror).toMatchObject({ done: 3, kept_because: null });
  expect(await ids(owner)).toEqual(['u1']);
});

test('a mirror can be planned row by row, and the applied plan removes just those', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const plannedJob = await load(
    owner,
    csv('u1,pro', 'u2,basic', 'u3,free'),
    '?mirror=remove&max_removed=1&plan=true',
  );
  expect(plannedJob.mirror).toMatchObject({ missing: 1, allowed: 1, done: 0 });
  const { key } = owner;
  const { body: plan } = await server.json<Plan>(`/v1/background_jobs/${plannedJob.job_id}/plan`, { key });
  expect(plan.profiles.users).toEqual({ new: 0, changed: 1, removed: 1 });
  expect(plan.sample.map(({ id, after }) => [id, after])).toEqual([
    ['u2', { plan: 'basic' }],
    ['u4', null],
  ]);
  expect(await ids(owner)).toHaveLength(4);
  await server.json(`/v1/background_jobs/${plannedJob.job_id}/apply`, { method: 'POST', key, json: {} });
  await expect.poll(async () => (await ended(owner, plannedJob.job_id)).mirror?.done).toBe(1);
  expect(await ids(owner)).toEqual(['u1', 'u2', 'u3']);
});

// proves: mirror
test('a mirror of a stored file leaves profiles that were written after the file', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const { job_id } = await load(owner, csv('u1,pro'), '');
  await load(owner, csv('u9,pro'), '');
  const request = { method: 'POST', key: owner.key } as const;
  const { body: upload } = await server.json<{ upload_id: string }>(
    `/v1/background_jobs/${job_id}/upload`,
    request,
  );
  const query = `mirror=remove&entity=users&max_removed=3&upload_id=${upload.upload_id}`;
  const { body: job } = await server.json<Job>(`/v1/imports?${query}`, request);
  expect((await ended(owner, job.job_id)).mirror).toMatchObject({ profiles: 5, missing: 3, done: 3 });
  expect(await ids(owner)).toEqual(['u1', 'u9']);
});

test('a mirror that removes nothing notifies as completed_with_rejects', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const wish = {
    channel: 'email',
    target: 'ops@example.com',
    outcomes: ['completed_with_rejects'],
    kinds: ['load'],
  } as const;
  const { config } = t.system;
  await addSubscription(t.system, owner.environment.environmentId, wish, readDeliveryPolicy(config));
  await load(owner, csv('u1,pro'), '?mirror=remove');
  const { body } = await server.json<{ data: readonly { event_type: string }[] }>('/v1/deliveries', {
    key: owner.key,
  });
  expect(body.data.map(({ event_type }) => event_type)).toEqual(['load.completed_with_rejects']);
});

test('a refused mirror names the option at fault', async () => {
  const owner = await tenant();
  const cases: readonly (readonly [string, string, string])[] = [
    [csv(), '?mirror=remove', 'file'],
    [csv('u1,pro'), '?mirror=everything', 'mirror'],
    [csv('u1,pro'), '?mirror=flag:gone', 'mirror'],
    [csv('u1,pro'), '?max_removed=5', 'max_removed'],
    [csv('u1,pro'), '?mirror=remove&max_removed=many', 'max_removed'],
    [csv('u1,pro'), '?mirror=remove&existing=keep', 'existing'],
  ];
  for (const [body, query, details] of cases) {
    const [status, message, where] = await refusal(owner, body, query);
    expect([status, message], query).toEqual([
      expect.toSatisfy((code: number) => code >= 400 && code < 500),
      expect.any(String),
    ]);
    if (details !== 'file') expect(where, query).toBe(details);
  }
  for (const [empty, type] of [
    [`${csv()}\n\n`, 'text/csv'],
    ['[]', 'application/json'],
    ['\n\n', 'application/x-ndjson'],
  ] as const) {
    const query = '?mirror=remove&entity=users&max_removed=100%25';
    expect(
      (await post<ErrorBody>(owner, `/v1/imports${query}`, empty, type)).body.errors[0]?.error_code,
      empty,
    ).toBe('empty_file');
  }
  const mixed = '{"user_id":"u1","plan":"pro"}\n';
  const answer = await post<ErrorBody>(owner, '/v1/imports?mirror=remove', mixed, 'application/x-ndjson');
  expect(answer.body.errors[0]?.message).toMatch(/entity=users/);
});

// proves: options-of
test('max_removed in the query applies to a mirror in the form', async () => {
  const owner = await tenant();
  await load(owner, fourUsers, '');
  const body = form(csv('u1,pro'), { before: { mirror: 'remove', entity: 'users' } });
  const job = (await server.load(body, { query: '?max_removed=3', key: owner.key })) as Job;
  expect(job.mirror).toMatchObject({ allowed: 3, done: 3 });
  const withoutMirror = form(csv('u1,pro'), { before: { entity: 'users' } });
  const { key } = owner;
  const answer = await server.json<ErrorBody>('/v1/imports?max_removed=3', {
    method: 'POST',
    key,
    body: withoutMirror,
  });
  expect(answer.body.errors).toMatchObject([{ message: 'max_removed has no effect without mirror' }]);
});

test('options_of ignores the mirror, so a small file removes nobody', async () => {
  const owner = await tenant();
  const { job_id } = await load(owner, 'user_id\nk1\nk2\nk3\n');
  expect(await load(owner, 'user_id\nk1\n', `?options_of=${job_id}`)).toMatchObject({ mirror: null });
  expect(await ids(owner)).toEqual(['k1', 'k2', 'k3']);
});

test('`sluice import` refuses two files as one mirror', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-mirror-'));
  cleanUpAfter('test', () => rm(folder, { recursive: true }));
  const files = ['a.csv', 'b.csv'].map((name) => join(folder, name));
  for (const file of files) await writeFile(file, 'user_id\nu1\n');
  const words = ['import', ...files, '--entity', 'users', '--mirror', 'remove'];
  await expect(runCommand(t, ...words)).rejects.toThrow('give one file');
});
