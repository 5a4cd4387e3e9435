import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Inbox } from '../../../src/capabilities/inbox/api.ts';
import type { DeliveryDetail as Delivery } from '../../../src/capabilities/notifications/api.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import { openServer, refusalOf } from '../../support/http.ts';
import { drop } from '../../support/inbox.ts';
import type { Tenant } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from '../../support/webhook-receiver.ts';

/* What operators look at and act on: the inbox, deliveries, keys, settings. */

const adminKey = 'admin-key-of-the-tests-0123';
const folder = await mkdtemp(join(tmpdir(), 'sluice-inbox-'));
const receiver = await startWebhookReceiver();
afterAll(async () => {
  await receiver.stop();
  await rm(folder, { recursive: true, force: true });
});
const { t, server } = await openServer({
  worker: true,
  settings: {
    INBOX_DIR: folder,
    INBOX_STABLE_MS: '100',
    ADMIN_KEY: adminKey,
    NOTIFY_ALLOW_PRIVATE: 'true',
  },
});
const other = await t.addEnvironment('other');

const post = (body?: object) => ({
  method: 'POST',
  ...(body && { json: body }),
});

describe('the inbox', () => {
  const look = async ({ key }: { readonly key: string } = t) =>
    (await server.json<Inbox>('/v1/inbox', { key })).body;

  test('shows what became of files, and takes one that failed in again when it is asked to', async () => {
    await waitFor('the folder', async () => (await readdir(folder)).includes('default'));
    await drop(join(folder, 'default', 'users.csv'), 'nothing,known\n1,2\n');
    const [failed] = await waitFor('the file to fail', async () => {
      const { recent } = await look();
      return recent.length === 1 && recent;
    });
    expect(failed).toMatchObject({
      name: 'users.csv',
      outcome: 'failed',
      reasons: [{ message: expect.any(String) }],
    });
    expect((await look(other)).recent).toEqual([]);
    const path = `/v1/inbox/${failed?.file_id}/take_again`;
    expect(await refusalOf(server, path, { ...post(), key: other.key })).toEqual([404, ['not_found']]);
    await drop(join(folder, 'default', 'mapping.yaml'), 'map:\n  nothing: user_id\n');
    expect((await server.json(path, post())).body).toMatchObject({ name: 'users.csv' });
    await waitFor('the file to be loaded', async () => {
      const { recent } = await look();
      return recent.length === 2 && recent[0]?.outcome === 'done';
    });
    expect(await refusalOf(server, path, post())).toEqual([404, ['not_found']]);
    expect(await refusalOf(server, '/v1/inbox/x/take_again', post())).toEqual([404, ['not_found']]);
  });
});

describe('deliveries', () => {
  const subscribe = async ({ environment }: Tenant): Promise<string> => {
    const wish = {
      channel: 'webhook',
      target: receiver.url,
      outcomes: ['completed'],
      kinds: ['load'],
    } as const;
    const rules = { allowPrivate: true };
    const { subscription } = await addSubscription(t.system.db, environment.environmentId, wish, rules);
    return subscription.subscriptionId;
  };

  test('show what each attempt was answered, and are sent once more when that is asked for', async () => {
    const id = await subscribe(t);
    receiver.answer((response) => void response.writeHead(410).end());
    const ping = await server.json<{ delivery_id: string }>(`/v1/subscriptions/${id}/test`, post());
    expect(ping).toMatchObject({ status: 200, body: { delivered: false, status: 410 } });
    const path = `/v1/deliveries/${ping.body.delivery_id}`;
    expect((await server.json<Delivery>(path)).body).toMatchObject({
      state: 'dead',
      tries: [{ attempt: 1, status: 410 }],
      body: expect.stringContaining('ping'),
    });
    const dead = await server.json<{ data: Delivery[]; metadata: object }>(
      '/v1/deliveries?state=dead&since=2026-01-01',
    );
    expect(dead.body).toMatchObject({ data: [{ target: receiver.url }], metadata: { total_count: 1 } });
    expect((await server.json('/v1/deliveries', { key: other.key })).body).toMatchObject({ data: [] });
    expect(await refusalOf(server, path, { key: other.key })).toEqual([404, ['not_found']]);
    await t.system.pool.query(
      'update notification_subscriptions set disabled_at = null, disabled_reason = null',
    );
    receiver.answer((response) => void response.writeHead(200).end());
    const again = await server.json(`${path}/replay`, post());
    expect(again).toMatchObject({ status: 202, body: { count: 1 } });
    const shown = await waitFor('the delivery', async () => {
      const { body } = await server.json<Delivery>(path);
      return body.state === 'delivered' && body;
    });
    expect(shown.tries.map(({ status }) => status)).toEqual([200, 410]);
    expect((await server.json(`${path}/replay`, post())).body).toEqual({ count: 1 });
    expect((await server.json<object[]>('/v1/subscriptions')).body).toMatchObject([
      { id, target: receiver.url },
    ]);
  });

  // proves: environments-apart
  test('have ids, as subscriptions have, that say nothing of other environments and open nothing in them', async () => {
    const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    receiver.answer((response) => void response.writeHead(200).end());
    const tenants = [
      { key: t.key, subscription: await subscribe(t), stranger: other.key },
      { key: other.key, subscription: await subscribe(other), stranger: t.key },
    ];
    for (const { key, subscription, stranger } of tenants) {
      const ping = `/v1/subscriptions/${subscription}/test`;
      for (let count = 0; count < 2; count++) await server.json(ping, { ...post(), key });
      const first = await server.fetch('/v1/deliveries?limit=1', { key });
      const [, next = ''] = /<([^>]+)>/.exec(first.headers.get('link') ?? '') ?? [];
      const cursor = new URL(next).searchParams.get('cursor') ?? '';
      const [newest] = ((await first.json()) as { data: Delivery[] }).data;
      const [before] = (
        await server.json<{ data: Delivery[] }>(`/v1/deliveries?limit=1&cursor=${cursor}`, { key })
      ).body.data;
      for (const id of [newest?.delivery_id, before?.delivery_id, newest?.subscription_id, subscription])
        expect(id).toMatch(uuidv7);
      expect(newest?.subscription_id).toBe(subscription);
      expect([before?.delivery_id, newest?.delivery_id].toSorted()).toEqual([
        before?.delivery_id,
        newest?.delivery_id,
      ]);
      expect(Buffer.from(cursor, 'base64url').toString()).toBe(newest?.delivery_id);
      const path = `/v1/deliveries/${newest?.delivery_id}`;
      expect(await refusalOf(server, path, { key: stranger })).toEqual([404, ['not_found']]);
      for (const theirs of [`${path}/replay`, ping])
        expect(await refusalOf(server, theirs, { ...post(), key: stranger })).toEqual([404, ['not_found']]);
      expect(await refusalOf(server, '/v1/deliveries/1', { key })).toEqual([404, ['not_found']]);
    }
  });
});

describe('keys, environments and settings', () => {
  const signIn = async () => {
    const origin = { 'sec-fetch-site': 'same-origin' };
    const signedIn = await server.fetch('/v1/console/sign_in', {
      ...post({ key: adminKey }),
      key: null,
      headers: { 'content-type': 'application/json', ...origin },
    });
    const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
    return { key: null, headers: { cookie, 'content-type': 'application/json', ...origin } };
  };

  // proves: administrators
  test('are of administrators: no key of an environment opens them', async () => {
    for (const path of ['/v1/keys', '/v1/environments']) {
      expect([path, ...(await refusalOf(server, path))]).toEqual([path, 403, ['insufficient_scope']]);
    }
    for (const path of [
      ...['/v1/keys', '/v1/keys/0tzwkpc87gq5/revoke'],
      ...['/v1/environments', '/v1/subscriptions'],
    ]) {
      expect(await refusalOf(server, path, post({ label: 'x' }))).toEqual([403, ['insufficient_scope']]);
    }
  });

  test('a key is made, used and revoked; it is shown once, and the list says when it was used', async () => {
    const admin = await signIn();
    const as = (body: object) => ({ ...admin, method: 'POST', body: JSON.stringify(body) });
    const made = await server.json<{ key: string; key_id: string }>(
      '/v1/keys',
      as({ label: 'nightly', scopes: ['read'], expires_at: '2999-01-01' }),
    );
    expect(made).toMatchObject({
      status: 201,
      body: { label: 'nightly', scopes: ['read'], last_used_at: null },
    });
    const { key, key_id } = made.body;
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
  test('a key of another environment is not listed or revoked', async () => {
    const admin = await signIn();
    const id = other.key.split('_')[1] ?? '';
    expect(JSON.stringify((await server.json('/v1/keys', admin)).body)).not.toContain(id);
    const revoke = { ...admin, method: 'POST', body: '{}' };
    expect(await refusalOf(server, `/v1/keys/${id}/revoke`, revoke)).toEqual([404, ['not_found']]);
  });

  test('environments and subscriptions are made, and the secret of a webhook is shown once', async () => {
    const admin = await signIn();
    const as = (body: object, method = 'POST') => ({ ...admin, method, body: JSON.stringify(body) });
    const made = await server.json<{ app_token: string }>('/v1/environments', as({ name: 'made-here' }));
    expect(made).toMatchObject({ status: 201, body: { name: 'made-here', app_token: expect.any(String) } });
    expect((await server.json<object[]>('/v1/environments', admin)).body).toContainEqual(made.body);
    const path = '/v1/environments/made-here';
    const allow = (origins: unknown, at = path) => server.json(at, as({ allowed_origins: origins }, 'PATCH'));
    const pages = ['https://a.example.com', 'http://localhost:3000'];
    expect((await allow(pages)).body).toEqual({ ...made.body, allowed_origins: pages });
    expect((await allow([])).body).toEqual(made.body);
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
    const wish = { url: receiver.url, on: ['failed'] };
    const added = await server.json<{ id: number; secret: string }>('/v1/subscriptions', as(wish));
    const { id, secret } = added.body;
    expect(added).toMatchObject({ status: 201, body: { on: ['failed'], types: ['load', 'export'] } });
    expect(secret).toMatch(/^whsec_/);
    const mail = await server.json('/v1/subscriptions', as({ email: 'ops@example.com' }));
    expect(mail).toMatchObject({ status: 201, body: { channel: 'email', secret: null } });
    const listed = JSON.stringify((await server.json('/v1/subscriptions')).body);
    expect(listed).toContain('ops@example.com');
    expect(listed).not.toContain(secret);
    const own = `/v1/subscriptions/${id}`;
    expect(await refusalOf(server, own, { method: 'DELETE' })).toEqual([403, ['insufficient_scope']]);
    expect((await server.fetch(own, { ...admin, method: 'DELETE' })).status).toBe(204);
    expect(await refusalOf(server, own, { ...admin, method: 'DELETE' })).toEqual([404, ['not_found']]);
    for (const body of [
      {},
      { url: 'ftp://x' },
      { url: receiver.url, email: 'a@example.com' },
      { ...wish, on: [] },
    ])
      expect(await refusalOf(server, '/v1/subscriptions', as(body))).toEqual([400, ['invalid_field']]);
  });
});
