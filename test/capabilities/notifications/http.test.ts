import { afterAll, describe, expect, test } from 'vitest';
import type { DeliveryDetail as Delivery } from '../../../src/capabilities/notifications/api.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import { type ErrorBody, openServer, refusalOf, signIn } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from './support/webhook-receiver.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const receiver = await startWebhookReceiver();
afterAll(() => receiver.stop());
const settings = { ADMIN_KEY: adminKey, NOTIFY_ALLOW_PRIVATE: 'true' };
const shownTarget = `${new URL(receiver.url).origin}/***`;
const { t, server } = await openServer({ worker: true, settings });
const otherTenant = await t.addEnvironment('other');

const post = (body?: object) => ({
  method: 'POST',
  ...(body && { json: body }),
});

describe('the deliveries of an environment', () => {
  const subscribe = async ({ environment }: Tenant): Promise<string> => {
    const wish = {
      channel: 'webhook',
      target: receiver.url,
      outcomes: ['completed'],
      kinds: ['load'],
    } as const;
    const rules = { allowPrivate: true };
    const { subscription } = await addSubscription(t.system, environment.environmentId, wish, rules);
    return subscription.subscriptionId;
  };

  test('a delivery has the answer to each attempt, and is replayed on request', async () => {
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
    const deadList = await server.json<{ data: Delivery[]; metadata: object }>(
      '/v1/deliveries?state=dead&since=2026-01-01',
    );
    expect(deadList.body).toMatchObject({ data: [{ target: shownTarget }], metadata: { total_count: 1 } });
    expect((await server.json('/v1/deliveries', { key: otherTenant.key })).body).toMatchObject({ data: [] });
    expect(await refusalOf(server, path, { key: otherTenant.key })).toEqual([404, ['not_found']]);
    await t.system.pool.query(
      'update notification_subscriptions set disabled_at = null, disabled_reason = null',
    );
    receiver.answer((response) => void response.writeHead(200).end());
    const replay = await server.json(`${path}/replay`, post());
    expect(replay).toMatchObject({ status: 202, body: { count: 1 } });
    const delivery = await waitFor('the delivery', async () => {
      const { body } = await server.json<Delivery>(path);
      return body.state === 'delivered' && body;
    });
    expect(delivery.tries.map(({ status }) => status)).toEqual([200, 410]);
    expect((await server.json(`${path}/replay`, post())).body).toEqual({ count: 1 });
    expect((await server.json<object[]>('/v1/subscriptions')).body).toMatchObject([
      { id, target: shownTarget },
    ]);
  });

  // proves: environments-apart
  test('the ids of deliveries reveal and open nothing in other environments', async () => {
    const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    receiver.answer((response) => void response.writeHead(200).end());
    const tenants = [
      { key: t.key, subscription: await subscribe(t), stranger: otherTenant.key },
      { key: otherTenant.key, subscription: await subscribe(otherTenant), stranger: t.key },
    ];
    for (const { key, subscription, stranger } of tenants) {
      const ping = `/v1/subscriptions/${subscription}/test`;
      for (let count = 0; count < 2; count++) await server.json(ping, { ...post(), key });
      const firstPage = await server.fetch('/v1/deliveries?limit=1', { key });
      const [, next = ''] = /<([^>]+)>/.exec(firstPage.headers.get('link') ?? '') ?? [];
      const cursor = new URL(next).searchParams.get('cursor') ?? '';
      const [newest] = ((await firstPage.json()) as { data: Delivery[] }).data;
      const [older] = (
        await server.json<{ data: Delivery[] }>(`/v1/deliveries?limit=1&cursor=${cursor}`, { key })
      ).body.data;
      const byOffset = await server.json<{ data: Delivery[] }>('/v1/deliveries?limit=1&offset=1', { key });
      expect(byOffset.body.data.map(({ delivery_id }) => delivery_id)).toEqual([older?.delivery_id]);
      for (const id of [newest?.delivery_id, older?.delivery_id, newest?.subscription_id, subscription])
        expect(id).toMatch(uuidv7);
      expect(newest?.subscription_id).toBe(subscription);
      expect([older?.delivery_id, newest?.delivery_id].toSorted()).toEqual([
        older?.delivery_id,
        newest?.delivery_id,
      ]);
      expect(Buffer.from(cursor, 'base64url').toString()).toBe(newest?.delivery_id);
      const path = `/v1/deliveries/${newest?.delivery_id}`;
      expect(await refusalOf(server, path, { key: stranger })).toEqual([404, ['not_found']]);
      for (const foreignPath of [`${path}/replay`, ping])
        expect(await refusalOf(server, foreignPath, { ...post(), key: stranger })).toEqual([
          404,
          ['not_found'],
        ]);
      expect(await refusalOf(server, '/v1/deliveries/1', { key })).toEqual([404, ['not_found']]);
    }
  });
});

test('a misspelt or foreign parameter of deliveries is refused with the intended one', async () => {
  for (const [name, message] of [
    ['stat=dead', /^stat is not a parameter. Did you mean state\?$/],
    ['page=1', /and cursor from/],
  ] as const) {
    const { status, body } = await server.json<ErrorBody>(`/v1/deliveries?${name}`);
    expect([status, body.errors[0]?.details]).toEqual([400, name.split('=')[0]]);
    expect(body.errors[0]?.message).toMatch(message);
  }
});

// proves: administrators
test('only an administrator adds and deletes subscriptions and sees a secret once', async () => {
  const asReader = await refusalOf(server, '/v1/subscriptions', post({ email: 'ops@example.com' }));
  expect(asReader).toEqual([403, ['insufficient_scope']]);
  const admin = await signIn(server, adminKey);
  const as = (body: object) => ({ ...admin, method: 'POST', body: JSON.stringify(body) });
  const wish = { url: receiver.url, on: ['failed'] };
  const creation = await server.json<{ id: number; secret: string }>('/v1/subscriptions', as(wish));
  const { id, secret } = creation.body;
  expect(creation).toMatchObject({ status: 201, body: { on: ['failed'], types: ['load', 'export'] } });
  expect(secret).toMatch(/^whsec_/);
  const mail = await server.json('/v1/subscriptions', as({ email: 'ops@example.com' }));
  expect(mail).toMatchObject({ status: 201, body: { channel: 'email', secret: null } });
  const list = JSON.stringify((await server.json('/v1/subscriptions')).body);
  expect(list).toContain('ops@example.com');
  expect(list).not.toContain(secret);
  const path = `/v1/subscriptions/${id}`;
  expect(await refusalOf(server, path, { method: 'DELETE' })).toEqual([403, ['insufficient_scope']]);
  expect((await server.fetch(path, { ...admin, method: 'DELETE' })).status).toBe(204);
  expect(await refusalOf(server, path, { ...admin, method: 'DELETE' })).toEqual([404, ['not_found']]);
  for (const body of [
    {},
    { url: 'ftp://x' },
    { url: receiver.url, email: 'a@example.com' },
    { ...wish, on: [] },
  ])
    expect(await refusalOf(server, '/v1/subscriptions', as(body))).toEqual([400, ['invalid_field']]);
});
