import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createApiKey } from '../../../src/access/key-store.ts';
import type { SdkProduct } from '../../../src/capabilities/products/take-calls.ts';
import { newEnvironment, readProfiles, runManually, startManually } from '../../support/files/load-file.ts';
import { readEvents, type StoredEvent } from '../../support/oracles/events.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const { log, lines } = collectLog();
log.level = 'trace';
const { t, server } = await openServer({ log, settings: { TRUST_PROXY: '127.0.0.1' } });

let environments = 0;
async function tenant() {
  const { key, environment } = await t.addEnvironment(`products-${++environments}`);
  const { environmentId } = environment;
  return {
    key,
    environmentId,
    events: () => readEvents(t.system, environmentId),
    profiles: () => readProfiles(t.system, environmentId),
  };
}

const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` });

const paths: Readonly<Record<SdkProduct, string>> = {
  segment: '/v1/import',
  posthog: '/batch/',
  mixpanel: '/import?strict=1',
  amplitude: '/2/httpapi',
};

// proves: product-sdks
test.each(Object.keys(paths) as SdkProduct[])(
  'a record of %s is stored like one of an export file',
  async (preset) => {
    const url = new URL(`../../../examples/presets/${preset}.ndjson`, import.meta.url);
    const file = await readFile(url, 'utf8');
    const environment = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environment, file, { preset }));
    const { key, events, profiles } = await tenant();
    for (const line of file.trim().split('\n')) {
      const headers = { ...basic(key), 'content-type': 'application/x-ndjson' };
      await server.fetch(paths[preset], { key: null, method: 'POST', body: line, headers });
    }
    expect(await profiles()).toEqual(await readProfiles(t.system, environment));
    const loadedEvents = await readEvents(t.system, environment);
    const withoutOwnIds = (eventList: readonly StoredEvent[]) =>
      eventList.map(({ id, source: _, ...event }) => ({
        ...event,
        id: file.includes(`"${id}"`) ? id : 'ours',
      }));
    expect(loadedEvents.length).toBeGreaterThan(1);
    // If the request contains no company, the event gets the company of its user.
    const company = expect.toBeOneOf([null, 'northwind']);
    expect(withoutOwnIds(await events())).toEqual(
      withoutOwnIds(loadedEvents).map((event) => (event.company === null ? { ...event, company } : event)),
    );
  },
);

describe('the tracking API of Segment', () => {
  const call = { userId: 'ada', messageId: 'm1', timestamp: '2026-03-04T05:06:07.123Z' };

  // proves: product-sdks
  test('each kind of call of Segment is stored, plain or gzip, with the key in Basic', async () => {
    const { key, events, profiles } = await tenant();
    let messages = 0;
    const send = async (path: string, body: object, isPacked = false) => {
      const text = JSON.stringify({ ...call, messageId: `m${++messages}`, ...body });
      const encoding: Record<string, string> = isPacked ? { 'content-encoding': 'gzip' } : {};
      const answer = await server.json(path, {
        key: null,
        method: 'POST',
        body: isPacked ? gzipSync(text) : text,
        headers: { ...basic(key), 'content-type': 'application/json', ...encoding },
      });
      expect([path, answer.status, answer.body]).toEqual([path, 200, { success: true }]);
    };
    await send('/v1/identify', { traits: { plan: 'pro' }, context: { ip: '192.0.2.1' } });
    await send('/v1/group', { groupId: 'acme', traits: { size: 7 } }, true);
    await send('/v1/track', { event: 'Paid', properties: { amount: 49.5 } }, true);
    await send('/v1/page', { name: 'Home', properties: { url: 'https://example.com/a?b=1' } });
    await send('/v1/screen', { userId: null, anonymousId: 'anon', name: 'Start' });
    expect(await profiles()).toEqual({
      users: { ada: { company: 'acme', metadata: { plan: 'pro' } }, anon: { company: null, metadata: {} } },
      companies: { acme: { metadata: { size: 7 } } },
    });
    expect(await events()).toMatchObject(
      [
        { type: 'track', name: 'Paid', user: 'ada', company: 'acme', metadata: { amount: 49.5 } },
        { type: 'page_view', name: 'Home', metadata: { hostname: 'example.com', search: '?b=1' } },
        { type: 'page_view', name: 'Start', user: 'anon', metadata: { anonymousId: 'anon' } },
      ].map((event) => ({ at: call.timestamp, ...event })),
    );
  });

  test('a message of Segment is stored once, however often it is sent', async () => {
    const { key, events } = await tenant();
    for (const path of ['/v1/track', '/v1/t', '/v1/track']) {
      expect((await server.fetch(path, { key, json: { ...call, event: 'Paid' } })).status).toBe(200);
    }
    expect(await events()).toMatchObject([{ id: 'm1', name: 'Paid' }]);
  });

  test.each([
    ['a clock that is two hours ahead', 7_200_000],
    ['a clock that is a year behind', -365 * 86_400_000],
  ])('the times of %s are corrected by sentAt, in single calls and batches', async (_, aheadMs) => {
    const { key, events, profiles } = await tenant();
    const timeBefore = (ms: number) => new Date(Date.now() + aheadMs - ms).toISOString();
    const single = { ...call, event: 'Paid', timestamp: timeBefore(60_000), sentAt: timeBefore(0) };
    await server.fetch('/v1/track', { key, json: single });
    const items = [
      { ...call, type: 'track', event: 'Paid', messageId: 'm2', timestamp: timeBefore(60_000) },
      { ...call, type: 'identify', traits: { plan: 'pro' }, timestamp: timeBefore(60_000) },
    ];
    await server.fetch('/v1/batch', { key, json: { batch: items, sentAt: timeBefore(0) } });
    const lateMs = (await events()).map(({ at }) => Date.now() - Date.parse(at));
    expect(lateMs).toHaveLength(2);
    for (const ms of lateMs) expect(Math.abs(ms - 60_000)).toBeLessThan(30_000);
    await server.fetch('/v1/identify', { key, json: { user_id: 'ada', metadata: { plan: 'free' } } });
    expect((await profiles()).users['ada']?.metadata).toEqual({ plan: 'free' });
  });

  test('the times of a batch are corrected by its sentAt, not by that of its items', async () => {
    const { key, events } = await tenant();
    const queued = { ...call, type: 'track', event: 'Paid', sentAt: '2026-03-04T05:06:08Z' };
    const sentAt = new Date().toISOString();
    const bodies = [
      { tags: ['a'], sentAt, batch: [queued], more: [] },
      [{ ...queued, messageId: 'm2', sentAt }],
    ];
    for (const [at, path] of ['/v1/batch', '/v1/b'].entries()) {
      const json = bodies[at];
      expect((await server.fetch(path, { key, json })).status).toBe(200);
    }
    expect(await events()).toMatchObject([{ at: call.timestamp }, { at: call.timestamp }]);
  });

  test('a call without an id is stored once per Idempotency-Key', async () => {
    const { key, events } = await tenant();
    const headers = { 'idempotency-key': 'once' };
    for (const _ of [1, 2]) {
      const json = { userId: 'ada', event: 'Paid' };
      expect((await server.fetch('/v1/track', { key, json, headers })).status).toBe(200);
    }
    expect(await events()).toHaveLength(1);
  });

  test('the times of a correct clock are kept', async () => {
    const { key, events } = await tenant();
    const sentAt = new Date(Date.now() - 2_000).toISOString();
    await server.fetch('/v1/track', { key, json: { ...call, event: 'Paid', sentAt } });
    expect(await events()).toMatchObject([{ at: call.timestamp }]);
  });

  test('calls of Segment share their paths and batches with our own records', async () => {
    const { key, events } = await tenant();
    const ours = { user_id: 'ada', event_name: 'ours', metadata: { userId: 'x' } };
    expect((await server.fetch('/v1/track', { key, json: { ...ours, userId: 'grace' } })).status).toBe(202);
    const batch = [
      { type: 'track', ...ours },
      { ...call, type: 'track', event: 'theirs' },
    ];
    expect((await server.json('/v1/batch', { key, json: { batch } })).body).toEqual({
      accepted: 2,
      rejected: [],
    });
    expect((await events()).map(({ name, user }) => [name, user])).toEqual([
      ['theirs', 'ada'],
      ['ours', 'ada'],
      ['ours', 'ada'],
    ]);
  });

  // proves: product-sdks
  test('a batch without any accepted call, and a call that joins ids, get 400', async () => {
    const { key, events } = await tenant();
    const unknown = { type: 'alias', userId: 'ada', previousId: 'old' };
    const refusedBatch = { batch: [unknown, { type: 'track', userId: 'ada' }] };
    for (const path of ['/v1/batch', '/v1/b', '/v1/import']) {
      const { status, body } = await server.json<ErrorBody>(path, { key, json: refusedBatch });
      expect([path, status, body.errors.map(({ error_code, details }) => [error_code, details])]).toEqual([
        path,
        400,
        [
          ['unsupported_kind', 'item 0'],
          ['missing_field', 'item 1'],
        ],
      ]);
    }
    expect(await refusalOf(server, '/v1/alias', { key, json: unknown })).toEqual([400, ['unsupported_kind']]);
    const mixedBatch = { batch: [unknown, { ...call, type: 'track', event: 'Paid' }] };
    const { status, body } = await server.json('/v1/batch', { key, json: mixedBatch });
    expect([status, body]).toMatchObject([200, { accepted: 1, rejected: [{ index: 0 }] }]);
    expect(await events()).toHaveLength(1);
  });
});

describe('a record that joins two ids of a person', () => {
  const mixpanel = (event: string, properties: object) => ({ event, properties });
  const posthog = (event: string, properties: object) => ({ event, distinct_id: 'ada', properties });

  // proves: product-sdks
  test('a record that joins ids and has properties changes only its user', async () => {
    const { key, profiles } = await tenant();
    const calls: [string, object][] = [
      ['/v1/identify', { userId: 'ada', anonymousId: 'anon', traits: { plan: 'pro' } }],
      ['/capture', posthog('$identify', { $anon_distinct_id: 'anon', $set: { seats: 7 } })],
      ['/track', mixpanel('Paid', { $user_id: 'ada', $device_id: 'd1', distinct_id: 'ada' })],
    ];
    for (const [path, json] of calls) expect((await server.fetch(path, { key, json })).status).toBe(200);
    expect(await profiles()).toMatchObject({
      users: { ada: { company: null, metadata: { plan: 'pro', seats: 7 } } },
    });
    expect(Object.keys((await profiles()).users)).toEqual(['ada']);
  });
});

describe('a key in the body', () => {
  const event = { userId: 'ada', event: 'Paid' };

  // proves: product-sdks
  test('a key in the body is checked like one in the header, and never logged', async () => {
    const { key, events } = await tenant();
    const { environment } = await t.addEnvironment('without-ingest');
    const reading = { label: 'reads', scopes: ['read'] } as const;
    const { key: reader } = await createApiKey(t.system.db, environment.environmentId, reading);
    const send = (writeKey: unknown) =>
      server.json('/v1/t', { key: null, json: { ...event, writeKey, properties: { writeKey: 'mine' } } });
    expect((await send(key)).status).toBe(200);
    for (const wrong of [`${key}x`, 'slk_000000000000_0', 'nonsense', '', 7, null, 'x'.repeat(1_000)]) {
      expect((await send(wrong)).status).toBe(401);
    }
    expect((await send(reader)).status).toBe(403);
    const unknown = { authorization: 'Token slk_wrong' };
    const answer = await server.json('/v1/t', { headers: unknown, json: { ...event, writeKey: key } });
    expect(answer.status).toBe(401);
    expect((await events()).map(({ metadata }) => metadata)).toEqual([{ writeKey: 'mine' }]);
    const logText = JSON.stringify(lines);
    expect(logText).toContain('request refused');
    for (const secret of [key, reader]) expect(logText).not.toContain(secret);
  });

  test('a key in the body admits one record of at most a megabyte, packed or not', async () => {
    const { key } = await tenant();
    const large = JSON.stringify({ ...event, writeKey: key, properties: { text: 'x'.repeat(1024 * 1024) } });
    const send = (body: string | Uint8Array<ArrayBuffer>) =>
      refusalOf(server, '/v1/t', { key: null, method: 'POST', body });
    expect(await send(large)).toEqual([413, ['payload_too_large']]);
    expect(await send(new Uint8Array(gzipSync(large)))).toEqual([413, ['payload_too_large']]);
  });

  test('announced calls without a key in the header block only such calls from their address', async () => {
    const { key } = await tenant();
    const connections = await Promise.all(Array.from({ length: 4 }, () => server.connect()));
    for (const connection of connections) {
      connection.head('POST /v1/t HTTP/1.1', 'Host: x', 'Content-Length: 1048576', 'Expect: 100-continue');
      // The server sends 100 Continue as soon as it has memory for the body.
      await connection.until(/100 Continue/);
    }
    const body = { ...event, writeKey: key };
    expect(await refusalOf(server, '/v1/t', { key: null, json: body })).toEqual([429, ['rate_limited']]);
    const headers = { 'x-forwarded-for': '192.0.2.7' };
    expect((await server.fetch('/v1/t', { key: null, json: body, headers })).status).toBe(200);
    expect((await server.fetch('/v1/t', { key, json: body })).status).toBe(200);
    for (const connection of connections) connection.reset();
    await waitFor('room for bodies', async () => {
      const { status } = await server.fetch('/v1/t', { key: null, json: body });
      return status === 200;
    });
  });
});

test.each([60_000, 1e300, -60_000])(
  'an event that PostHog delayed by %d ms gets its own time, within the allowed past',
  async (offset) => {
    const { key, events } = await tenant();
    const event = { event: 'Paid', offset, properties: { token: key, distinct_id: 'ada' } };
    const { status } = await server.fetch('/e/', { key: null, json: [event] });
    const lateMs = (await events()).map(({ at }) => Date.now() - Date.parse(at));
    expect([status, lateMs.length]).toEqual(offset > 1e9 ? [400, 0] : [200, 1]);
    for (const ms of lateMs) expect(Math.abs(ms - 60_000)).toBeLessThan(30_000);
  },
);

describe('the packing of SDKs', () => {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
  const form = (data: string) => ({
    body: data,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  const text = (body: string | Uint8Array<ArrayBuffer>) => ({
    body,
    headers: { 'content-type': 'text/plain' },
  });
  const event = (token: string) => ({
    event: 'Paid',
    properties: { token, distinct_id: 'ada', list: [1, 'ä>?'] },
  });

  const packings: Readonly<Record<string, (key: string) => readonly [path: string, RequestInit]>> = {
    'a beacon of an array': (key) => ['/e/', text(JSON.stringify([event(key)]))],
    'gzip without a header': (key) => [
      '/i/v0/e/?compression=gzip-js',
      text(new Uint8Array(gzipSync(JSON.stringify([event(key)])))),
    ],
    'base64 in a form': (key) => [
      '/e/?compression=base64',
      form(`data=${encodeURIComponent(base64(event(key)))}`),
    ],
    'base64 in a form whose signs are not escaped': (key) => [
      '/capture',
      form(`data=${base64(event(key))}&ip=1`),
    ],
    'JSON in a form': (key) => [
      '/track',
      form(`verbose=1&data=${encodeURIComponent(JSON.stringify([event(key)]))}`),
    ],
    'a key around the records': (key) => [
      '/batch',
      text(JSON.stringify({ batch: [event('')], api_key: key })),
    ],
    'a key between arrays': (key) => [
      '/capture',
      text(JSON.stringify({ tags: ['[a"'], api_key: key, batch: [event('')], more: [1, [2]] })),
    ],
    'a key between texts with brackets': (key) => [
      '/capture',
      text(JSON.stringify({ a: '"[', api_key: key, b: ']', batch: [event('')] })),
    ],
    'a key in the query': (key) => [`/import?api_key=${key}`, text(JSON.stringify([event('')]))],
    'lines of NDJSON': (key) => [
      '/import',
      {
        body: `${JSON.stringify(event(key))}\n`,
        headers: { ...basic(key), 'content-type': 'application/x-ndjson' },
      },
    ],
  };
  // proves: product-sdks
  test.each(Object.entries(packings))('%s is unpacked', async (_, make) => {
    const { key, events } = await tenant();
    const [path, init] = make(key);
    expect((await server.fetch(path, { key: null, method: 'POST', ...init })).status).toBe(200);
    const storedEvents = await events();
    expect(storedEvents).toMatchObject([{ name: 'Paid', user: 'ada', metadata: { list: [1, 'ä>?'] } }]);
    expect(JSON.stringify(storedEvents)).not.toContain('token');
  });

  test.each([
    ['nonsense', 'data=%zz'],
    ['no JSON', 'data=bm9uc2Vuc2U='],
    ['another field', 'x=1'],
    ['nothing', ''],
  ])('a form with %s is refused, and not by an internal error', async (_, body) => {
    for (const path of ['/track', '/e', '/batch', '/v1/t', '/identify']) {
      const { status } = await server.fetch(path, { key: null, method: 'POST', ...form(body) });
      expect([path, [400, 401].includes(status)]).toEqual([path, true]);
    }
  });
});

describe('the answer to an SDK', () => {
  // proves: product-sdks
  test('an answer of /import?strict=1 counts and lists like Mixpanel', async () => {
    const { key, events } = await tenant();
    const at = { time: 1_767_225_600, distinct_id: 'ada' };
    const good = { event: 'Paid', properties: { ...at, $insert_id: 'i1' } };
    const send = (json: unknown) => server.json('/import?strict=1', { key, json });
    expect((await send([good])).body).toEqual({ code: 200, status: 'OK', num_records_imported: 1 });
    const { status, body } = await send([good, { event: 'Nobody', properties: {} }]);
    expect([status, body]).toMatchObject([
      400,
      {
        code: 400,
        status: 'Bad Request',
        num_records_imported: 1,
        failed_records: [{ index: 1, field: 'missing_field', message: expect.stringContaining('user_id') }],
      },
    ]);
    expect(await events()).toHaveLength(1);
  });

  // proves: product-sdks
  test('an answer of Amplitude names wrong events, and nothing is stored with them', async () => {
    const { key, events } = await tenant();
    const good = { event_type: 'Paid', user_id: 'ada', insert_id: 'i1' };
    const send = (batch: readonly object[]) =>
      server.json('/2/httpapi', { key: null, json: { api_key: key, events: batch } });
    expect(await send([good, { event_type: 'Nobody' }])).toMatchObject({
      status: 400,
      body: { code: 400, events_with_invalid_fields: { missing_field: [1] } },
    });
    expect(await events()).toEqual([]);
    expect(await send([good])).toMatchObject({ status: 200, body: { code: 200, events_ingested: 1 } });
    expect(await events()).toHaveLength(1);
  });

  // proves: product-sdks, suppressed
  test('an answer of Amplitude names events of suppressed people, and stores nothing', async () => {
    const { key, environmentId, events } = await tenant();
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['gone'], { suppress: true });
    await deletion.run();
    const event = (user_id: string) => ({ event_type: 'Paid', user_id });
    const send = (batch: readonly object[]) =>
      server.json('/2/httpapi', { key: null, json: { api_key: key, events: batch } });
    expect(await send([event('ada'), event('gone'), event('bo')])).toMatchObject({
      status: 400,
      body: { code: 400, events_with_invalid_fields: { suppressed: [1] } },
    });
    expect(await events()).toEqual([]);
    expect(await send([event('ada'), event('bo')])).toMatchObject({ status: 200 });
    expect(await events()).toHaveLength(2);
  });

  test('/identify and /groupidentify of Amplitude answer after the write, uncached', async () => {
    const { key, profiles } = await tenant();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const identify = async (path: string, identification: object) => {
      const body = `api_key=${key}&identification=${encodeURIComponent(JSON.stringify(identification))}`;
      const answer = await server.fetch(path, { key: null, method: 'POST', body, headers });
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    };
    const groups = { org: 'acme' };
    await identify('/identify', [{ user_id: 'ada', user_properties: { $set: { plan: 'pro' } }, groups }]);
    const group_properties = { $set: { seats: 12 }, size: 5 };
    await identify('/groupidentify', [{ group_type: 'org', group_value: 'acme', group_properties }]);
    expect(await profiles()).toEqual({
      users: { ada: { company: 'acme', metadata: { plan: 'pro' } } },
      companies: { acme: { metadata: { seats: 12, size: 5 } } },
    });
  });

  // proves: product-sdks
  test('records with the token of another project are refused, and stored nowhere', async () => {
    const ownTenant = await tenant();
    const otherTenant = await tenant();
    const event = (token: string) => ({ event: 'Paid', properties: { token, distinct_id: 'ada' } });
    const send = (json: object) => server.json<ErrorBody>('/track?verbose=1', { key: null, json });
    const { status, body } = await send([event(ownTenant.key), event(otherTenant.key), event(ownTenant.key)]);
    expect([status, body.errors]).toMatchObject([
      400,
      [{ details: 'item 1', message: expect.stringContaining('another token') }],
    ]);
    expect([await ownTenant.events(), await otherTenant.events()]).toMatchObject([
      { length: 2 },
      { length: 0 },
    ]);
  });

  // proves: product-sdks
  test.each(['$set', '$set_once'])(
    'an update of Mixpanel whose %s has no properties is refused',
    async (operation) => {
      const { key } = await tenant();
      const update = { $token: key, $distinct_id: 'ada', [operation]: ['plan'] };
      expect((await server.fetch('/engage', { key: null, json: [update] })).status).toBe(400);
    },
  );
});
