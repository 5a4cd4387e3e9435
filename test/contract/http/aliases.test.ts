import { expect, test } from 'vitest';
import type { MadeAlias, UserAlias } from '../../../src/api/alias.ts';
import type { JobDetail } from '../../../src/api/load.ts';
import { openServer, refusalOf } from '../../support/http.ts';
import { readProfiles } from '../../support/load-file.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ worker: true });

interface Page {
  readonly data: readonly UserAlias[];
  readonly metadata: { readonly user_id: string; readonly cursor: { readonly after: string | null } };
}

const give = (userId: string, alias: string, merge?: boolean) =>
  server.json<MadeAlias>(`/v1/users/${userId}/aliases`, { json: { alias, ...(merge && { merge }) } });

async function send(path: string, json: object): Promise<void> {
  expect((await server.fetch(path, { json })).status).toBe(202);
}

// proves: identities
test('an alias is listed, read, tracked, deleted and given back as its person', async () => {
  await send('/v1/identify', { user_id: 'anon', metadata: { source: 'ads' } });
  await send('/v1/track', { user_id: 'anon', event_name: 'visited' });
  const { status, body } = await give('u1', 'anon');
  expect([status, body]).toMatchObject([202, { user_id: 'u1', alias: 'anon', is_new: true }]);
  await t.ended(body.job_id ?? '');
  const { body: job } = await server.json<JobDetail>(`/v1/background_jobs/${body.job_id}`);
  expect(job).toMatchObject({
    type: 'join',
    status: 'completed',
    counts: { read: 3, inserted: 1, updated: 1, removed: 1 },
  });
  await send('/v1/track', { user_id: 'anon', event_name: 'again' });
  for (const id of ['anon', 'u1']) {
    expect((await server.json(`/v1/users/${id}`)).body).toMatchObject({
      user_id: 'u1',
      metadata: { source: 'ads' },
    });
    const distinct_ids = ['u1', 'anon'];
    expect((await server.json(`/v1/users/${id}?distinct_ids=true`)).body).toMatchObject({ distinct_ids });
    expect((await server.json('/v1/users?distinct_ids=true&id_prefix=u1')).body).toMatchObject({
      data: [{ user_id: 'u1', distinct_ids }],
    });
    expect((await server.json<object>(`/v1/users/${id}`)).body).not.toHaveProperty('distinct_ids');
    const { body: events } = await server.json<{ data: { event_name: string }[] }>(`/v1/users/${id}/events`);
    expect(events.data.map(({ event_name }) => event_name)).toEqual(['again', 'visited']);
    expect((await server.json<Page>(`/v1/users/${id}/aliases`)).body).toMatchObject({
      data: [{ alias: 'anon', job_id: body.job_id }],
      metadata: { user_id: 'u1' },
    });
    expect((await server.fetch(`/v1/users/${id}/history`)).status).toBe(200);
    expect((await server.json(`/v1/users/${id}/activity`)).body).toMatchObject({ events: 2 });
  }
  expect((await give('u1', 'anon')).body).toMatchObject({ is_new: false, job_id: null });
  const { body: undo } = await server.json<JobDetail>(`/v1/background_jobs/${body.job_id}/undo`, {
    json: {},
  });
  await t.ended(undo.job_id);
  expect((await server.json<Page>('/v1/users/anon/aliases')).body).toMatchObject({
    data: [],
    metadata: { user_id: 'anon' },
  });
  expect((await readProfiles(t.system, t.environment.environmentId)).users).toMatchObject({
    anon: { metadata: { source: 'ads' } },
  });
});

// proves: alias-of-one
test('an alias of another person is refused with alias_taken, and merged on demand', async () => {
  await give('m1', 'device');
  expect(await refusalOf(server, '/v1/users/m2/aliases', { json: { alias: 'device' } })).toEqual([
    409,
    ['alias_taken'],
  ]);
  expect((await give('m2', 'device', true)).body).toMatchObject({ user_id: 'm2', is_new: true });
  const { body } = await server.json<Page>('/v1/users/m1/aliases');
  expect([body.metadata.user_id, body.data.map(({ alias }) => alias)]).toEqual(['m2', ['device', 'm1']]);
});

// proves: identities-deleted
test('deleting a person by any id deletes all ids, with what is stored under them', async () => {
  await send('/v1/track', { user_id: 'd-anon', event_name: 'visited' });
  await send('/v1/identify', { user_id: 'd1', metadata: { a: 1 } });
  await give('d1', 'd-anon');
  await give('d1', 'd-phone');
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ users: ['d-phone'] });
  const asked = await server.json<{ job_id: string }>('/v1/users', { method: 'DELETE', headers, body });
  expect(asked.status).toBe(202);
  await waitFor('the deletion to end', async () => {
    const { body: job } = await server.json<{ status: string }>(`/v1/background_jobs/${asked.body.job_id}`);
    return job.status === 'completed';
  });
  for (const id of ['d1', 'd-anon', 'd-phone'])
    expect((await server.fetch(`/v1/users/${id}`)).status).toBe(404);
  const { rows } = await t.system.pool.query(
    "select 1 from events where user_id like 'd%' union all select 1 from aliases where user_id = 'd1'",
  );
  expect(rows).toEqual([]);
  await send('/v1/identify', { user_id: 'd-phone', metadata: { b: 1 } });
  expect((await server.json('/v1/users/d-phone')).body).toMatchObject({
    user_id: 'd-phone',
    metadata: { b: 1 },
  });
});
