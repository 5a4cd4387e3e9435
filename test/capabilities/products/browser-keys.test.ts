import { describe, expect, test } from 'vitest';
import { changeEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import { scopes } from '../../../src/domain/caller.ts';
import { readEvents } from '../../support/oracles/events.ts';
import { openServer, refusalOf } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ settings: { TRUST_PROXY: '127.0.0.1' } });

let environments = 0;
async function site() {
  const { environment, key } = await t.addEnvironment(`site-${++environments}`);
  const origin = `https://shop${environments}.example.com`;
  const { environmentId } = environment;
  const pageKey = await createApiKey(t.system.db, environmentId, { label: 'page', scopes: ['browser'] });
  await changeEnvironment(t.system.db, environment.name, { allowed_origins: [origin] });
  const preflight = () => sendPreflight('/v1/t', origin);
  await waitFor('the origin to be noticed', async () => (await preflight()).status === 204);
  return { origin, key, pageKey: pageKey.key, events: () => readEvents(t.system, environmentId) };
}

const sendPreflight = (path: string, origin: string) =>
  fetch(new URL(path, server.address), {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  });
const allowedOrigin = ({ headers }: Response) => headers.get('access-control-allow-origin');
const event = { userId: 'ada', event: 'Paid' };
const from = (origin: string) => ({ origin, 'content-type': 'text/plain' });

describe('pages of an allowed origin', () => {
  // proves: browser-keys
  test('a page may send to every path for records, and to no other', async () => {
    const { origin: shop } = await site();
    for (const path of ['/v1/track', '/v1/batch/', '/v1/p', '/i/v0/e/?ip=1', '/2//httpapi']) {
      const answer = await sendPreflight(path, shop);
      expect([path, answer.status, allowedOrigin(answer)]).toEqual([path, 204, shop]);
      expect(answer.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
      expect(answer.headers.get('vary')).toBe('Origin');
      expect(answer.headers.get('access-control-allow-credentials')).toBe('true');
    }
    for (const path of ['/v1/users', '/v1/imports', '/v1/keys', '/v1/nowhere', '/']) {
      const answer = await sendPreflight(path, shop);
      expect([path, [404, 405].includes(answer.status), allowedOrigin(answer)]).toEqual([path, true, null]);
    }
  });

  // proves: browser-keys
  test('a page reads the answers to its records, and other pages read nothing', async () => {
    const { origin: shop, pageKey, events } = await site();
    const send = (writeKey: string, origin: string) =>
      server.fetch('/v1/t', { key: null, json: { ...event, writeKey }, headers: from(origin) });
    const accepted = await send(pageKey, shop);
    expect([accepted.status, allowedOrigin(accepted)]).toEqual([200, shop]);
    const unknown = await send('slk_nobody', shop);
    expect([unknown.status, allowedOrigin(unknown)]).toEqual([401, shop]);
    for (const origin of [
      'https://evil.example.com',
      shop.replace('https', 'http'),
      `${shop}:8443`,
      'null',
    ]) {
      expect([origin, (await sendPreflight('/v1/t', origin)).status]).toEqual([origin, 405]);
      const refusal = await send(pageKey, origin);
      expect([origin, refusal.status, allowedOrigin(refusal)]).toEqual([origin, 403, null]);
      expect(refusal.headers.get('vary')).toBe('Origin');
    }
    expect(await events()).toHaveLength(1);
  });

  test('a new environment allows no origin', async () => {
    const { key } = await t.addEnvironment('closed');
    const answer = await server.fetch('/v1/track', {
      key,
      json: { user_id: 'u', event_name: 'x' },
      headers: { origin: 'https://closed.example.com' },
    });
    expect([answer.status, allowedOrigin(answer)]).toEqual([202, null]);
    expect((await sendPreflight('/v1/track', 'https://closed.example.com')).status).toBe(405);
  });
});

describe('a key for pages', () => {
  // proves: browser-keys
  test('a key for pages sends records of every kind as a beacon without headers', async () => {
    const { origin: shop, pageKey, events } = await site();
    const beacon = (path: string, body: object) =>
      server.fetch(path, { key: null, method: 'POST', body: JSON.stringify(body), headers: from(shop) });
    const batch = [
      { type: 'track', user_id: 'ada', event_name: 'ours' },
      { type: 'track', ...event, event: 'theirs' },
    ];
    expect((await beacon('/v1/b', { writeKey: pageKey, batch })).status).toBe(200);
    expect((await beacon('/v1/i', { writeKey: pageKey, userId: 'ada', traits: {} })).status).toBe(200);
    expect((await beacon('/v1/g', { writeKey: pageKey, userId: 'ada', groupId: 'acme' })).status).toBe(200);
    const track = { key: pageKey, json: { user_id: 'ada', event_name: 'third' }, headers: { origin: shop } };
    expect((await server.fetch('/v1/track', track)).status).toBe(202);
    expect((await events()).map(({ name }) => name).sort()).toEqual(['ours', 'theirs', 'third']);
  });

  // proves: browser-keys
  test('a key for pages opens nothing else', async () => {
    const { pageKey: key } = await site();
    for (const [method, path] of [
      ['GET', '/v1/users/ada'],
      ['GET', '/v1/validate'],
      ['GET', '/v1/console/session'],
      ['POST', '/v1/imports'],
      ['POST', '/v1/users/bulk_identify'],
      ['POST', '/api/v1/analytics/exports'],
      ['DELETE', '/v1/users'],
    ] as const) {
      expect([path, ...(await refusalOf(server, path, { key, method }))]).toEqual([
        path,
        403,
        ['insufficient_scope'],
      ]);
    }
    const large = JSON.stringify({ batch: [], text: 'x'.repeat(1024 * 1024) });
    expect((await server.fetch('/v1/batch', { key, method: 'POST', body: large })).status).toBe(413);
  });

  // proves: browser-keys
  test('a key for pages changes the named user, and joins no two users', async () => {
    const { origin, key, pageKey } = await site();
    const send = (path: string, json: object) =>
      server.fetch(path, {
        key: null,
        json: { writeKey: pageKey, api_key: pageKey, ...json },
        headers: from(origin),
      });
    const anonymousId = '1f0a3f6e-58a3-4c0b-9a51-0d2b7b1c9e11';
    const identification = await send('/v1/i', { userId: 'eve', anonymousId, traits: { plan: 'free' } });
    expect(identification.status).toBe(200);
    for (const [path, json] of [
      ['/v1/a', { userId: 'eve', previousId: 'ada' }],
      ['/v1/b', { batch: [{ type: 'alias', userId: 'eve', previousId: anonymousId }] }],
      ['/capture', { event: '$merge_dangerously', distinct_id: 'eve', properties: { alias: 'ada' } }],
    ] as const) {
      const answer = await send(path, json);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(await answer.text()).toContain('unsupported_kind');
    }
    expect((await server.fetch('/v1/users/eve', { key })).status).toBe(200);
  });

  test('a key for pages has no other scope', async () => {
    const { environmentId } = t.environment;
    const wish = { label: 'both', scopes: [...scopes, 'browser'] } as const;
    await expect(createApiKey(t.system.db, environmentId, wish)).rejects.toThrow('may only have browser');
  });

  // proves: browser-keys
  test('calls of a key for pages are limited by address, and batches by hundreds', async () => {
    const { origin, pageKey } = await site();
    const post = async (address: string, path: string, json: object) => {
      const headers = { origin, 'x-forwarded-for': address };
      return (await server.fetch(path, { key: null, json: { ...json, writeKey: pageKey }, headers })).status;
    };
    // Refused records also count towards the limit. They take less time than accepted records, so
    // the test ends within the limit's window.
    const sendBatch = (records: number) =>
      post('192.0.2.3', '/v1/b', { batch: Array.from({ length: records }, () => ({ type: 'track' })) });
    const sendOne = (address: string) => post(address, '/v1/t', event);
    expect([await sendBatch(10_000), await sendBatch(10_000), await sendBatch(9_800)]).toEqual([
      400, 400, 400,
    ]);
    // An empty batch also counts as one request.
    await sendBatch(0);
    expect([await sendOne('192.0.2.3'), await sendOne('192.0.2.3')]).toEqual([200, 429]);
    expect([await sendBatch(1), await sendOne('192.0.2.2')]).toEqual([429, 200]);
  });
});

// proves: browser-keys
test('the settings of the SDK name this service, for a key that may send', async () => {
  const { origin: shop, pageKey } = await site();
  const show = (writeKey: string) =>
    server.fetch(`/v1/projects/${writeKey}/settings`, { key: null, headers: { origin: shop } });
  const answer = await show(pageKey);
  expect([answer.status, allowedOrigin(answer)]).toEqual([200, shop]);
  const { host } = new URL(server.address);
  expect(await answer.json()).toMatchObject({
    integrations: { 'Segment.io': { apiKey: pageKey, apiHost: `${host}/v1`, protocol: 'http' } },
    metrics: { sampleRate: 0 },
  });
  expect((await show('slk_nobody')).status).toBe(401);
});
