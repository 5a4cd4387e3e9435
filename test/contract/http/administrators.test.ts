import { expect, test } from 'vitest';
import { openServer, refusalOf, signIn } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const { t, server } = await openServer({ settings: { ADMIN_KEY: adminKey } });
const other = await t.addEnvironment('other');

const post = (body: object) => ({ method: 'POST', json: body });

// proves: administrators
test('no key of an environment opens the routes of keys and environments', async () => {
  for (const path of ['/v1/keys', '/v1/environments']) {
    expect([path, ...(await refusalOf(server, path))]).toEqual([path, 403, ['insufficient_scope']]);
  }
  for (const path of ['/v1/keys', '/v1/keys/0tzwkpc87gq5/revoke', '/v1/environments']) {
    expect(await refusalOf(server, path, post({ label: 'x' }))).toEqual([403, ['insufficient_scope']]);
  }
});

test('a new key is shown once, works until it is revoked, and is listed with its last use', async () => {
  const admin = await signIn(server, adminKey);
  const as = (body: object) => ({ ...admin, method: 'POST', body: JSON.stringify(body) });
  const created = await server.json<{ key: string; key_id: string }>(
    '/v1/keys',
    as({ label: 'nightly', scopes: ['read'], expires_at: '2999-01-01' }),
  );
  expect(created).toMatchObject({
    status: 201,
    body: { label: 'nightly', scopes: ['read'], last_used_at: null },
  });
  const { key, key_id } = created.body;
  expect((await server.fetch('/v1/users', { key })).status).toBe(200);
  const list = async () =>
    (await server.json<{ key_id: string; last_used_at: string | null }[]>('/v1/keys', admin)).body;
  await waitFor('its use', async () => (await list()).find((each) => each.key_id === key_id)?.last_used_at);
  expect(JSON.stringify(await list())).not.toContain(key.split('_')[2]);
  expect((await server.json(`/v1/keys/${key_id}/revoke`, as({}))).status).toBe(204);
  expect((await server.fetch('/v1/users', { key })).status).toBe(401);
  for (const body of [
    { label: '' },
    { label: 'x', scopes: ['all'] },
    { label: 'x', expires_at: '2001-01-01' },
  ]) {
    expect((await server.fetch('/v1/keys', as(body))).status).toBe(400);
  }
});

// proves: environments-apart
test('a key of another environment is neither listed nor revoked', async () => {
  const admin = await signIn(server, adminKey);
  const id = other.key.split('_')[1] ?? '';
  expect(JSON.stringify((await server.json('/v1/keys', admin)).body)).not.toContain(id);
  const revoke = { ...admin, method: 'POST', body: '{}' };
  expect(await refusalOf(server, `/v1/keys/${id}/revoke`, revoke)).toEqual([404, ['not_found']]);
});

test('an environment is created under a unique name, and its pages and export layout can be set', async () => {
  const admin = await signIn(server, adminKey);
  const as = (body: object, method = 'POST') => ({ ...admin, method, body: JSON.stringify(body) });
  const created = await server.json<{ app_token: string }>('/v1/environments', as({ name: 'made-here' }));
  expect(created).toMatchObject({ status: 201, body: { name: 'made-here', app_token: expect.any(String) } });
  expect((await server.json<object[]>('/v1/environments', admin)).body).toContainEqual(created.body);
  const path = '/v1/environments/made-here';
  const allow = (origins: unknown, at = path) => server.json(at, as({ allowed_origins: origins }, 'PATCH'));
  const pages = ['https://a.example.com', 'http://localhost:3000'];
  expect((await allow(pages)).body).toEqual({ ...created.body, allowed_origins: pages });
  expect((await allow([])).body).toEqual(created.body);
  for (const wrong of ['https://a.example.com/', 'a.example.com', '*', 7])
    expect([wrong, (await allow([wrong])).status]).toEqual([wrong, 400]);
  expect((await allow(pages, '/v1/environments/no-such')).status).toBe(404);
  for (const name of ['made-here', 'No Name', ''])
    expect(await refusalOf(server, '/v1/environments', as({ name }))).toEqual([400, ['invalid_field']]);
  const layout = as({ export_layout: 'stream' }, 'PATCH');
  expect(await server.json('/v1/environments/made-here', layout)).toMatchObject({
    status: 200,
    body: { name: 'made-here', export_layout: 'stream' },
  });
  expect(await refusalOf(server, '/v1/environments/nobody', layout)).toEqual([404, ['not_found']]);
  const wrong = as({ export_layout: 'rows' }, 'PATCH');
  expect(await refusalOf(server, '/v1/environments/made-here', wrong)).toEqual([400, ['invalid_field']]);
});
