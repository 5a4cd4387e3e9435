import { afterAll, describe, expect, test } from 'vitest';
import type { DeliveryDetail as Delivery } from '../../../src/capabilities/notifications/api.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import { type ErrorBody, openServer, refusalOf, signIn } from '../../support/http.ts';
import type { Tenant } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from './support/webhook-receiver.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const receiver = await startWebhookReceiver();
afterAll(() => receiver.stop());
const settings = { ADMIN_KEY: adminKey, NOTIFY_ALLOW_PRIVATE: 'true' };
const { t, server } = await openServer({ worker: true, settings });
const other = await t.addEnvironment('other');

const post = (body?: object) => ({
  method: 'POST',
  ...(body && { json: body }),
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
      const byOffset = await server.json<{ data: Delivery[] }>('/v1/deliveries?limit=1&offset=1', { key });
      expect(byOffset.body.data.map(({ delivery_id }) => delivery_id)).toEqual([before?.delivery_id]);
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

test('a misspelt or foreign parameter of the list of deliveries is refused, and names the one that is meant', async () => {
  for (const [name, meant] of [
    ['stat=dead', /^stat is no parameter; did you mean state\?$/],
    ['page=1', /and cursor from/],
  ] as const) {
    const { status, body } = await server.json<ErrorBody>(`/v1/deliveries?${name}`);
    expect([status, body.errors[0]?.details]).toEqual([400, name.split('=')[0]]);
    expect(body.errors[0]?.message).toMatch(meant);
  }
});

describe('subscriptions', () => {
  // proves: administrators
  test('are made by administrators alone', async () => {
    expect(await refusalOf(server, '/v1/subscriptions', post({ email: 'ops@example.com' }))).toEqual([
      403,
      ['insufficient_scope'],
    ]);
  });

  test('are made and removed, and the secret of a webhook is shown once', async () => {
    const admin = await signIn(server, adminKey);
    const as = (body: object) => ({ ...admin, method: 'POST', body: JSON.stringify(body) });
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
