import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, expect, test } from 'vitest';
import type { JobDetail } from '../../../src/load/api.ts';
import { openServer, refusalOf } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { waitFor } from '../../support/wait-for.ts';
import { concluded, drop } from '../inbox/support/inbox.ts';

const inbox = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
afterAll(() => rm(inbox, { recursive: true, force: true }));
const settings = { INBOX_DIR: inbox, INBOX_STABLE_MS: '50' };
const { t, server } = await openServer({ worker: true, settings });

async function remove(...users: string[]): Promise<void> {
  const json = { users, suppress: true };
  const { status, body } = await server.json<JobDetail>('/v1/users', { method: 'DELETE', json });
  expect(status).toBe(202);
  await waitFor('the deletion', async () => {
    const { body: job } = await server.json<JobDetail>(`/v1/background_jobs/${body.job_id}`);
    return job.status === 'completed' ? job : null;
  }).then((job) => expect(job).toMatchObject({ suppress: true }));
}

async function load(path: string, body: object | string): Promise<JobDetail> {
  const answer = await server.json<JobDetail>(
    path,
    typeof body === 'string'
      ? { method: 'POST', body, headers: { 'content-type': 'text/csv' } }
      : { json: body },
  );
  expect([200, 202], JSON.stringify(answer.body)).toContain(answer.status);
  await t.ended(answer.body.job_id);
  return (await server.json<JobDetail>(`/v1/background_jobs/${answer.body.job_id}`)).body;
}

const countSuppressions = async (query = '') => (await server.json(`/v1/suppressions${query}`)).body;

async function users(): Promise<string[]> {
  const { rows } = await sql<{
    id: string;
  }>`select user_id as id from users union select user_id from events order by 1`.execute(t.system.db);
  return rows.map(({ id }) => id);
}

// proves: suppressed
test('a suppressed person is refused on every way in, and accepted once readmitted', async () => {
  await server.fetch('/v1/identify', { json: { user_id: 'gone' } });
  await remove('gone');
  expect([
    await countSuppressions(),
    await countSuppressions('?user_id=gone'),
    await countSuppressions('?user_id=u1'),
  ]).toEqual([{ count: 1 }, { count: 1 }, { count: 0 }]);
  const singles: [string, object][] = [
    ['/v1/identify', { user_id: 'gone', metadata: { plan: null } }],
    ['/v1/identify', { user_id: 'gone', company: { company_id: 'acme' } }],
    ['/v1/track', { user_id: 'gone', event_name: 'e' }],
    ['/v1/track', { user_id: 'gone', event_name: 'e', event_id: 'e1' }],
    ['/v1/page', { userId: 'gone', messageId: 'm1' }],
    ['/v1/identify', { type: 'identify', userId: 'gone', anonymousId: 'a', messageId: 'm2' }],
    ['/capture', { api_key: t.key, event: 'e', distinct_id: 'gone' }],
    ['/2/httpapi', { api_key: t.key, events: [{ event_type: 'e', user_id: 'gone' }] }],
  ];
  for (const [path, json] of singles)
    expect([path, await refusalOf(server, path, { json })]).toEqual([path, [400, ['suppressed']]]);
  const items = [
    { type: 'identify', user_id: 'u1' },
    { type: 'identify', user_id: 'gone' },
    { type: 'track', user_id: 'gone', event_name: 'e' },
  ];
  expect((await server.json('/v1/batch', { json: { batch: items } })).body).toMatchObject({
    accepted: 1,
    rejected: [
      { index: 1, error_code: 'suppressed' },
      { index: 2, error_code: 'suppressed' },
    ],
  });
  const array = { users: [{ user_id: 'u2' }, { user_id: 'gone', metadata: { a: 1 } }] };
  expect(await load('/v1/users/bulk_identify', array)).toMatchObject({
    counts: { inserted: 1, rejected: 1 },
  });
  for (const query of ['?dry_run=true', '?plan=true'])
    expect(await load(`/v1/imports${query}`, 'user_id,plan\nu3,\ngone,true\n')).toMatchObject({
      counts: { rejected: 1 },
    });
  const folder = join(inbox, t.environment.name);
  await drop(join(folder, 'users.csv'), 'user_id,plan\nu5,pro\ngone,pro\n');
  expect(await concluded(folder, 'users.csv')).toMatchObject([{ receipt: { counts: { rejected: 1 } } }]);
  expect(await users()).not.toContain('gone');

  const liftRequest = { method: 'DELETE', json: { users: ['gone', 'u1'] } };
  expect((await server.json('/v1/suppressions', liftRequest)).body).toEqual({ lifted: 1, not_found: 1 });
  expect(await countSuppressions()).toEqual({ count: 0 });
  expect((await server.fetch('/v1/track', { json: { user_id: 'gone', event_name: 'e' } })).status).toBe(202);
  expect(await users()).toContain('gone');
});

test('companies cannot be suppressed, and wrong requests change nothing', async () => {
  const sendDelete = (path: string, json: object) => refusalOf(server, path, { method: 'DELETE', json });
  expect(await sendDelete('/v1/companies', { companies: ['acme'], suppress: true })).toEqual([
    400,
    ['invalid_field'],
  ]);
  expect(await sendDelete('/v1/users', { users: ['u1'], suppress: 'yes' })).toEqual([400, ['invalid_field']]);
  expect(await refusalOf(server, '/v1/suppressions?user_id=%00')).toEqual([400, ['invalid_field']]);
  expect(await sendDelete('/v1/suppressions', { users: [] })).toEqual([400, ['invalid_field']]);
  expect(await sendDelete('/v1/suppressions', { users: ['u1'], suppress: false })).toEqual([
    400,
    ['invalid_field'],
  ]);
});

test('`sluice delete --suppress` suppresses users, and accepts no companies', async () => {
  await server.fetch('/v1/identify', { json: { user_id: 'by-command' } });
  const sluice = (...words: readonly string[]) => runCommand(t, 'delete', ...words, '--suppress', '--yes');
  await expect(sluice('companies', 'acme')).rejects.toThrow();
  await sluice('users', 'by-command');
  expect(await countSuppressions('?user_id=by-command')).toEqual({ count: 1 });
});
