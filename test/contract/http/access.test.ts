import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey, revokeApiKey } from '../../../src/access/api-keys.ts';
import { type Scope, scopes } from '../../../src/access/scopes.ts';
import { type ErrorBody, serve, type TestServer } from '../../support/http.ts';
import { openTestSystem, type TestSystem } from '../../support/system.ts';

let t: TestSystem;
let server: TestServer;
const staticKey = 'a-static-key-of-the-operator';
beforeAll(async () => {
  t = await openTestSystem({ settings: { API_KEY: staticKey } });
  server = await serve(t);
});
afterAll(async () => {
  await server?.stop();
  await t?.close();
});

const job = '/v1/background_jobs/01a1f879-8845-7223-9ca4-ceafb3823817';
/** Every route of the service, and what a key must allow. */
const routes: readonly (readonly [method: string, path: string, scope: Scope])[] = [
  ['POST', '/v1/imports', 'import'],
  ['POST', '/v1/users/bulk_identify', 'import'],
  ['POST', '/v1/companies/bulk_identify', 'import'],
  ['GET', '/v1/background_jobs', 'read'],
  ['GET', job, 'read'],
  ['GET', `${job}/rejects`, 'read'],
  ['GET', `${job}/outcomes`, 'read'],
  ['POST', `${job}/cancel`, 'import'],
  ['POST', `${job}/retry`, 'import'],
];

const unauthorized = {
  errors: [
    {
      error: 'Unauthorized',
      error_code: 'invalid_api_key',
      message: 'Unauthorized - Invalid API key',
      details: expect.any(String),
    },
  ],
};

describe.each(routes)('%s %s', (method, path, scope) => {
  const key = async (allowed: readonly Scope[]) =>
    (await createApiKey(t.system.db, t.environment.environmentId, { label: 'x', scopes: allowed })).key;

  test('without a key that is valid is 401', async () => {
    const headers = [{}, { authorization: `Bearer ${t.key}` }, { authorization: 'Token nonsense' }];
    for (const each of headers) {
      const {
        status,
        body,
        headers: answered,
      } = await server.json<ErrorBody>(path, {
        method,
        key: null,
        headers: each as Record<string, string>,
      });
      expect(status).toBe(401);
      expect(body).toEqual(unauthorized);
      expect(answered.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  test(`needs the scope ${scope}, and no other`, async () => {
    const without = await server.json<ErrorBody>(path, {
      method,
      key: await key(scopes.filter((each) => each !== scope)),
    });
    expect([without.status, without.body.errors[0]?.error_code]).toEqual([403, 'insufficient_scope']);
    expect(without.body.errors[0]?.details).toContain(scope);
    const withIt = await server.fetch(path, { method, key: await key([scope]) });
    expect([401, 403]).not.toContain(withIt.status);
  });

  test('by another method is 405, and says which there are', async () => {
    for (const other of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', method === 'GET' ? 'POST' : 'GET']) {
      const { status, body, headers } = await server.json<ErrorBody>(path, { method: other });
      expect([other, status, body.errors[0]?.error_code]).toEqual([other, 405, 'method_not_allowed']);
      expect(headers.get('allow')).toBe(method === 'GET' ? 'GET, HEAD' : 'POST');
    }
  });
});

describe('a key', () => {
  test('is refused from the moment it is revoked', async () => {
    const { key, keyId } = await createApiKey(t.system.db, t.environment.environmentId, { label: 'x' });
    expect((await server.fetch('/v1/background_jobs', { key })).status).toBe(200);
    await revokeApiKey(t.system.db, t.environment.environmentId, keyId);
    expect((await server.fetch('/v1/background_jobs', { key })).status).toBe(401);
  });

  test('may be the one of the configuration', async () => {
    expect((await server.fetch('/v1/background_jobs', { key: staticKey })).status).toBe(200);
    expect((await server.fetch('/v1/background_jobs', { key: `${staticKey}.` })).status).toBe(401);
  });

  test('may follow a scheme in any case', async () => {
    for (const scheme of ['token', 'TOKEN', 'Token']) {
      const headers = { authorization: `${scheme} ${t.key}` };
      expect((await server.fetch('/v1/background_jobs', { key: null, headers })).status).toBe(200);
    }
  });
});

describe('addresses', () => {
  test.each(['/', '/v1', '/v2/imports', '/v1/imports/x', `${job}/unknown`, '/v1//imports'])(
    '%s is 404',
    async (path) => {
      for (const method of ['GET', 'POST']) {
        const { status, body } = await server.json<ErrorBody>(path, { method });
        expect([status, body.errors[0]?.error_code]).toEqual([404, 'route_not_found']);
      }
    },
  );

  test('that are no proper URL are 400', async () => {
    const { status, body } = await server.json<ErrorBody>('/v1/background_jobs/%zz');
    expect([status, body.errors[0]?.error_code]).toEqual([400, 'invalid_field']);
  });

  test('may end in a slash, also where they are refused', async () => {
    const { headers } = await server.json<ErrorBody>('/v1/imports/', { method: 'DELETE' });
    expect(headers.get('allow')).toBe('POST');
    expect((await server.fetch(`${job}/`)).status).toBe(404);
  });
});

describe('headers', () => {
  test('x-request-id comes back if it is sane, and else there is a new one', async () => {
    const id = async (given?: string) => {
      const headers: Record<string, string> = given === undefined ? {} : { 'x-request-id': given };
      return (await server.fetch('/v1/background_jobs', { headers })).headers.get('x-request-id');
    };
    expect(await id('trace-123/abc')).toBe('trace-123/abc');
    const uuid = /^[0-9a-f-]{36}$/;
    expect(await id()).toMatch(uuid);
    for (const bad of ['with blank', 'a'.repeat(129), 'ü']) expect(await id(bad)).toMatch(uuid);
  });

  test('x-request-id is on refusals too', async () => {
    for (const path of ['/nowhere', '/v1/background_jobs/%zz']) {
      const response = await server.fetch(path, { headers: { 'x-request-id': 'mine' } });
      expect(response.headers.get('x-request-id')).toBe('mine');
    }
    expect(
      (await server.fetch('/v1/imports', { key: null, method: 'POST' })).headers.get('x-request-id'),
    ).toBeTruthy();
  });

  test('that are unknown are accepted', async () => {
    const headers = { 'x-api-version': '2026-01', 'x-whatever': '1' };
    expect((await server.fetch('/v1/background_jobs', { headers })).status).toBe(200);
  });

  test.each([
    ['sluice.example.com', 'http://sluice.example.com'],
    ['Sluice.Example.com:8443', 'http://sluice.example.com:8443'],
    ['[::1]:80', 'http://[::1]:80'],
    ['evil.com/path?x=', null],
    ['user@evil.com', null],
    ['a b', null],
    ['"><script>', null],
  ])('Host: %s leads to links below %s', async (host, base) => {
    const connection = await server.connect();
    const body = 'user_id\nu\n';
    connection.head(
      'POST /v1/imports?dry_run=true HTTP/1.1',
      `host: ${host}`,
      `authorization: Token ${t.key}`,
      'content-type: text/csv',
      `content-length: ${body.length}`,
    );
    await connection.write(body);
    const [, link] = await connection.until(/"links":"([^"]+)\/v1\/background_jobs/);
    expect(link).toBe(base ?? server.address);
    connection.reset();
  });

  test('what is not HTTP is answered with the error record, and the connection is closed', async () => {
    const connection = await server.connect();
    await connection.write('hello\r\n\r\n');
    await connection.until(/^HTTP\/1.1 400 .*connection: close.*\{"errors":\[\{/s);
    await connection.untilEnded();
  });
});

test('PUBLIC_URL is what links start with, whatever the host', async () => {
  const other = await openTestSystem({ settings: { PUBLIC_URL: 'https://data.example.com/sluice/' } });
  const there = await serve(other);
  try {
    const post = () =>
      there.json<{ job_id: string; links: string }>('/v1/imports', {
        method: 'POST',
        body: 'user_id\nu\n',
        headers: { 'content-type': 'text/csv' },
      });
    const { body } = await post();
    expect(body.links).toBe(`https://data.example.com/sluice/v1/background_jobs/${body.job_id}`);
    await post();
    const { headers } = await there.json('/v1/background_jobs?limit=1');
    expect(headers.get('link')).toMatch(/^<https:\/\/data\.example\.com\/sluice\/v1\/background_jobs\?/);
  } finally {
    await there.stop();
    await other.close();
  }
});
