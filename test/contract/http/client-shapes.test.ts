import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import type { ErrorBody } from '../../support/servers/http.ts';
import { openRecordSite } from '../../support/servers/records.ts';

/** Requests in the forms that destinations, transformers and SDKs send. */

const site = await openRecordSite({ worker: true });
afterAll(() => site.close());

const json = { 'content-type': 'application/json' };
const context = {
  app: { name: 'shop', version: '4.2.0', build: 81 },
  ip: '203.0.113.7',
  library: { name: 'analytics.js', version: '2.1.0' },
  page: {
    path: '/pricing',
    referrer: '',
    search: '?a=1',
    title: 'Pricing',
    url: 'https://example.com/pricing',
  },
  userAgent: 'Mozilla/5.0',
};
const traits = {
  email: 'ada@example.com',
  firstName: 'Ada',
  age: 36,
  score: 0.75,
  subscribed: true,
  address: { city: 'London', postalCode: 'W1' },
  tags: ['beta', 7, null],
  createdAt: '2026-01-02T03:04:05.678Z',
};

interface Sent {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | FormData;
}
const send = ({ path = '/v1/identify', headers = json, body }: Sent) =>
  site.server.json<(ErrorBody & { readonly job_id: string }) | null>(path, { method: 'POST', headers, body });
const text = (record: unknown) => JSON.stringify(record);
const problemsOf = (body: ErrorBody | null) =>
  (body?.errors ?? []).map(({ error_code, message, details }) => ({ error_code, message, details }));

describe('identify', () => {
  const shapes: Readonly<Record<string, (user_id: string) => [record: object, metadata: object]>> = {
    'a destination that maps traits to metadata': (user_id) => [{ user_id, metadata: traits }, traits],
    'a destination that sends its envelope along': (user_id) => [
      {
        type: 'identify',
        user_id,
        anonymousId: 'a1',
        messageId: 'm1',
        timestamp: '2026-02-03T04:05:06Z',
        context,
        integrations: { All: true },
        metadata: traits,
      },
      {
        type: 'identify',
        anonymousId: 'a1',
        messageId: 'm1',
        timestamp: '2026-02-03T04:05:06Z',
        context,
        integrations: { All: true },
        ...traits,
      },
    ],
    'a transformer that leaves traits as they are': (user_id) => [
      { user_id, traits, company: {}, groupId: 'g1' },
      { traits, groupId: 'g1' },
    ],
    'a transformer that writes null for what is absent': (user_id) => [
      { user_id, metadata: { ...traits, phone: null }, company: {}, timestamp: null },
      traits,
    ],
    'a PHP SDK, whose empty objects are arrays': (user_id) => [{ user_id, metadata: [], company: [] }, {}],
    'an SDK whose properties are beside the id': (user_id) => [{ user_id, ...traits }, traits],
    'an SDK that sends texts only': (user_id) => [
      { user_id, metadata: { age: '36', active: 'true' } },
      { age: '36', active: 'true' },
    ],
  };
  // proves: client-shapes
  test.each(Object.entries(shapes))('an identify from %s is stored whole', async (name, shape) => {
    const [record, metadata] = shape(name);
    expect((await send({ body: text(record) })).status).toBe(202);
    expect(await site.user(name)).toMatchObject({ metadata, company_id: null });
    expect((await site.user(name))?.metadata).toEqual(metadata);
  });

  test.each([
    [{ userId: 'u', metadata: traits }, 'user_id is missing; there is userId: send it as user_id'],
    [{ distinct_id: 7 }, 'user_id is missing; there is distinct_id: send it as user_id'],
  ])(
    'an identify without user_id is refused, and the answer names the key that was sent instead: %j',
    async (record, message) => {
      const { status, body } = await send({ body: text(record) });
      expect([status, problemsOf(body)]).toEqual([
        400,
        [{ error_code: 'missing_field', message, details: 'user_id' }],
      ]);
    },
  );
});

describe('companies/identify', () => {
  const path = '/v1/companies/identify';

  test('a group call with its traits and envelope is stored whole as a company', async () => {
    const group = { name: 'Acme', employees: 120, mrr: 99.5, active: true, address: { city: 'Bonn' } };
    await send({ path, body: text({ company_id: 'group', type: 'group', messageId: 'm', metadata: group }) });
    expect((await site.company('group'))?.metadata).toEqual({ type: 'group', messageId: 'm', ...group });
    await send({ path, body: text({ company: { id: 4711 }, metadata: group }) });
    expect((await site.company('4711'))?.metadata).toEqual(group);
  });
});

describe('track', () => {
  const path = '/v1/track';
  const properties = { revenue: 39.95, currency: 'EUR', products: [{ sku: 'a', quantity: 2 }], coupon: null };

  test('an event with properties as metadata, beside it, or with its envelope is stored whole', async () => {
    const event = { user_id: 'shopper', event_name: 'Order Completed' };
    const envelope = { messageId: 'm1', anonymousId: 'a1', type: 'track', context };
    await send({
      path,
      body: text({ ...event, metadata: properties, timestamp: '2026-02-01T00:00:00.000Z' }),
    });
    await send({ path, body: text({ ...event, properties, ...envelope, timestamp: 1_769_990_400_000 }) });
    await send({ path, body: text({ ...event, ...properties, inserted_at: 1_770_076_800, groupId: 'g' }) });
    await send({ path, body: text({ ...event, metadata: [], company: { id: 7 }, timestamp: '2026-02-04' }) });
    const stored = await site.events('shopper');
    expect(
      stored.map(({ inserted_at, company_id, metadata }) => [inserted_at.slice(0, 10), company_id, metadata]),
    ).toEqual([
      ['2026-02-01', null, properties],
      ['2026-02-02', null, { properties, ...envelope }],
      ['2026-02-03', null, { ...properties, groupId: 'g' }],
      ['2026-02-04', '7', {}],
    ]);
  });

  // proves: client-shapes
  test('an event under other names is refused, and the answer names the right ones', async () => {
    const { status, body } = await send({
      path,
      body: text({ type: 'track', distinct_id: 'u', event: 'Order Completed', properties }),
    });
    expect([status, problemsOf(body)]).toEqual([
      400,
      [
        {
          error_code: 'missing_field',
          message: 'user_id is missing; there is distinct_id: send it as user_id',
          details: 'user_id',
        },
        {
          error_code: 'missing_field',
          message: 'event_name is missing; there is event: send it as event_name',
          details: 'event_name',
        },
      ],
    ]);
  });
});

describe('a body of JSON', () => {
  const record = (user_id: string) => text({ user_id, metadata: { name: 'Ädä' } });
  const gzip = (content: string) => new Uint8Array(gzipSync(content));
  const typed = (type: string) => (body: string) => ({ body, headers: { 'content-type': type } });
  const shapes: Readonly<Record<string, (content: string) => Omit<Sent, 'path'>>> = {
    'with a charset in capitals and quotes': typed('Application/JSON;Charset="utf-8"'),
    'as text/json': typed('text/json'),
    'as application/vnd.api+json': typed('application/vnd.api+json'),
    'as the text/plain of fetch': (body) => ({ body, headers: {} }),
    'as the form of curl -d': typed('application/x-www-form-urlencoded'),
    'as application/octet-stream': typed('application/octet-stream'),
    'without a type': (body) => ({ body: new TextEncoder().encode(body), headers: {} }),
    'behind a byte order mark, spread over lines': (body) => ({
      body: `\ufeff\r\n${JSON.stringify(JSON.parse(body), null, 2)}\r\n`,
      headers: json,
    }),
    'as gzip': (body) => ({ body: gzip(body), headers: { ...json, 'content-encoding': 'gzip' } }),
    'as gzip without a content-encoding': (body) => ({ body: gzip(body), headers: json }),
  };
  // proves: client-shapes
  test.each(Object.entries(shapes))('a JSON body %s is stored as a record', async (name, shape) => {
    const { status } = await send(shape(record(name)));
    expect([status, (await site.user(name))?.metadata]).toEqual([202, { name: 'Ädä' }]);
  });

  test.each(Object.entries(shapes))(
    'a JSON array %s is loaded by bulk_identify and by imports',
    async (name, shape) => {
      const uploads = [
        ['/v1/users/bulk_identify', text({ users: [{ user_id: `${name} 1`, metadata: traits }] }), 202],
        ['/v1/imports', text([{ user_id: `${name} 2`, metadata: traits }]), 200],
      ] as const;
      for (const [at, [path, content, status]] of uploads.entries()) {
        const answer = await send({ path, ...shape(content) });
        expect([path, answer.status, answer.body]).toEqual([path, status, expect.anything()]);
        await site.t.ended(answer.body?.job_id ?? '');
        expect((await site.user(`${name} ${at + 1}`))?.metadata).toEqual(traits);
      }
    },
  );

  test.each(Object.entries(shapes))('a JSON request %s creates an export', async (_, shape) => {
    const answer = await send({
      path: '/api/v1/analytics/exports',
      ...shape(text({ event_type: ['users'], user_id: [7, 'seven'], company_id: 8 })),
    });
    expect([answer.status, answer.body]).toEqual([
      201,
      expect.objectContaining({ job_id: expect.any(String) }),
    ]);
  });
});

describe('an address', () => {
  test.each(['/v1/identify/', '//v1/identify', '/v1//identify', '/v1/identify?source=sdk&v=2'])(
    'the address %s is an address of identify',
    async (path) => {
      const response = await fetch(`${site.server.address}${path}`, {
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${site.t.key}` },
        body: text({ user_id: path }),
      });
      expect([response.status, (await site.user(path))?.id]).toEqual([202, path]);
    },
  );
});

describe('requests that cannot work', () => {
  test('a request with two Host headers is refused with the reason', async () => {
    const connection = await site.server.connect();
    connection.head('GET /v1/validate HTTP/1.1', 'host: x', 'Host: y');
    await connection.until(/^HTTP\/1\.1 400 [\s\S]*two Host headers/);
    connection.reset();
  });

  const countLoads = () => site.sql('select count(*) from sluice.loads');
  test.each([
    ['{}', 'empty_file', ''],
    ['{"foo":1}', 'unrecognised_columns', 'keys seen: foo'],
    ['{"data":{"list":[{"user_id":"u"}]}}', 'unrecognised_columns', 'arrays of objects seen: data.list'],
    ['\ufeff {"users":null, "Mail":"x"} \n', 'unrecognised_columns', 'keys seen: users, Mail'],
    ['{"users":[]}', 'empty_file', ''],
    ['{"user_id":', 'invalid_json', ''],
  ])(
    'an import of %s, which has nothing to load, is refused with the reason and creates no load',
    async (content, code, details) => {
      for (const headers of [json, { 'content-type': 'text/json' }]) {
        const before = await countLoads();
        const answer = await send({ path: '/v1/imports', body: content, headers });
        expect([answer.status, problemsOf(answer.body)]).toMatchObject([400, [{ error_code: code }]]);
        expect(problemsOf(answer.body)[0]?.details).toContain(details);
        expect(await countLoads()).toEqual(before);
      }
    },
  );

  test('an import of one record with an id, or with a key mapped to an id, is loaded', async () => {
    const one = await send({ path: '/v1/imports', body: text({ user_id: 31, metadata: traits }) });
    const mapped = await send({
      path: '/v1/imports?map=Kunde=user_id',
      body: text({ Kunde: 32, plan: 'x' }),
    });
    for (const { status, body } of [one, mapped]) {
      expect(status).toBe(200);
      expect(await site.t.ended(body?.job_id ?? '')).toMatchObject({ tally: { inserted: 1, rejected: 0 } });
    }
    expect((await site.user('32'))?.metadata).toEqual({ plan: 'x' });
  });
});

describe('numeric ids', () => {
  // proves: client-shapes
  test('a numeric id is the same text on every route that takes ids', async () => {
    const big = '12345678901234567890';
    await send({ body: `{"user_id":${big},"company_id":${big}}` });
    await send({ path: '/v1/companies/identify', body: `{"company_id":${big},"a":1}` });
    await send({ path: '/v1/track', body: `{"user_id":${big},"event_name":"x","company_id":${big}}` });
    const file = await send({ path: '/v1/imports', body: `{"user_id":${big},"company_id":${big},"b":2}\n` });
    await site.t.ended(file.body?.job_id ?? '');
    const bulk = await send({
      path: '/v1/users/bulk_identify',
      body: `{"users":[{"user_id":${big},"company":{"id":${big},"c":3},"c":3}]}`,
    });
    await site.t.ended(bulk.body?.job_id ?? '');
    expect(await site.user(big)).toMatchObject({ company_id: big, metadata: { b: 2, c: 3 } });
    expect((await site.company(big))?.metadata).toEqual({ a: 1, c: 3 });
    expect(await site.events(big)).toMatchObject([{ company_id: big }]);
    const deletion = await site.server.json<{ job_id: string }>('/v1/users', {
      method: 'DELETE',
      headers: json,
      body: `{"users":[${big}]}`,
    });
    expect(deletion.status).toBe(202);
    await expect.poll(() => site.user(big)).toBeNull();
  });

  test('an export by ids that JavaScript would round is refused', async () => {
    const { status, body } = await send({
      path: '/api/v1/analytics/exports',
      body: '{"user_id":[12345678901234567890]}',
    });
    expect([status, problemsOf(body)[0]?.error_code]).toEqual([400, 'invalid_field']);
  });
});
