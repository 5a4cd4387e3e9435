import { describe, expect, test } from 'vitest';
import { createApiKey, revokeApiKey } from '../../../src/access/key-store.ts';
import { scopes } from '../../../src/domain/caller.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { type ErrorBody, openServer, refusalOf, serve } from '../../support/servers/http.ts';
import { openTestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { log, lines } = collectLog();
const staticKey = 'a-static-key-of-the-operator';
const { t, server } = await openServer({ settings: { API_KEY: staticKey }, log });

const job = '/v1/background_jobs/01a1f879-8845-7223-9ca4-ceafb3823817';

describe('a path that is also a pattern', () => {
  test.each(['/v1/companies/identify', '/v1/companies/bulk_identify', '/v1/users/bulk_identify'])(
    'GET %s is 405 while no profile has that id',
    async (path) => {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await server.fetch(path, { method });
        expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST']);
      }
    },
  );
});

describe('an answer of the interface', () => {
  test.each(['/v1/background_jobs', '//v1//validate', '/v1/nowhere'])(
    'an answer to %s is kept by no browser and no proxy',
    async (path) => {
      const options = { headers: { authorization: `Token ${t.key}` } };
      const { headers } = await fetch(`${server.address}${path}`, options);
      expect(headers.get('cache-control')).toBe('no-store');
    },
  );
});

describe('a key', () => {
  test('a refused key: the caller learns the fault of the header, and the log which key it was and why', async () => {
    const { system, environment } = t;
    // This test starts its own server, because the shared server has refused so many requests that
    // it no longer logs each refusal.
    const server = await serve(t);
    const make = () => createApiKey(system.db, environment.environmentId, { label: 'x' });
    const [revoked, expired, valid] = await Promise.all([make(), make(), make()]);
    await revokeApiKey(system.db, environment.environmentId, revoked.keyId);
    await system.pool.query(`update api_keys set expires_at = now() - interval '1 s' where key_id = $1`, [
      expired.keyId,
    ]);
    const unknown = `slk_${'0'.repeat(12)}_${'0'.repeat(40)}`;
    const guessed = valid.key.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const vague = 'the key is unknown, revoked or expired';
    const cases = [
      [{}, /is missing$/, 'missing', null],
      [{ authorization: 'Basic YTpi' }, /^not of the form/, 'malformed', null],
      [{ authorization: 'Token nonsense' }, /^not of the form/, 'malformed', null],
      [{ authorization: `Token ${unknown}` }, vague, 'unknown', '000000000000'],
      [{ authorization: `Token ${guessed}` }, vague, 'unknown', valid.keyId],
      [{ authorization: `Token ${revoked.key}` }, vague, 'revoked', revoked.keyId],
      [{ authorization: `Token ${expired.key}` }, vague, 'expired', expired.keyId],
    ] as const;
    // The shared server also logs how many lines it has suppressed.
    const refusals = () => lines.filter(({ msg }) => msg === 'request refused');
    for (const [headers, details, why, keyId] of cases) {
      const before = refusals().length;
      const { status, body } = await server.json<ErrorBody>('/v1/background_jobs', {
        key: null,
        headers: headers as Record<string, string>,
      });
      expect([status, body.errors[0]?.message]).toEqual([401, 'Unauthorized - Invalid API key']);
      expect(body.errors[0]?.details).toEqual(
        typeof details === 'string' ? details : expect.stringMatching(details),
      );
      // The line is logged after the response has been sent, so it may not exist yet.
      const line = await waitFor('the line of the log', () => refusals()[before]);
      expect(line).toMatchObject({ status: 401, key: why, key_id: keyId });
      expect(JSON.stringify(lines)).not.toMatch(/slk_|YTpi|nonsense/);
    }
    await server.stop();
  });

  const status = async (authorization: string) => {
    const answers = [];
    for (const path of ['/v1/background_jobs', '/v1/validate'])
      answers.push((await server.fetch(path, { key: null, headers: { authorization } })).status);
    const record = { method: 'POST', body: '{"user_id":"u"}', key: null, headers: { authorization } };
    answers.push((await server.fetch('/v1/identify', record)).status);
    return answers;
  };
  const basic = (user: string) => `Basic ${Buffer.from(user).toString('base64')}`;

  test('a key may follow Token or Bearer in any case, be alone, or be the user name of Basic', async () => {
    for (const key of [t.key, staticKey]) {
      for (const scheme of ['token ', 'TOKEN ', 'Token  ', 'Bearer ', 'bearer ', 'BEARER   ', '', '  '])
        expect([scheme, await status(`${scheme}${key}`)]).toEqual([scheme, [200, 200, 202]]);
      for (const user of [`${key}:`, `${key}:ignored`, key, `${key}::`])
        expect(await status(basic(user))).toEqual([200, 200, 202]);
    }
  });

  test.each([
    () => `Token${t.key}`,
    () => `Digest ${t.key}`,
    () => `Bearer Token ${t.key}`,
    () => basic(`:${t.key}`),
    () => basic(`user:${t.key}`),
    () => `Basic ${t.key}`,
  ])('a key in any other form is refused, and the answer names the expected form: %s', async (form) => {
    expect(await status(form())).toEqual([401, 401, 401]);
    const { body } = await server.json<ErrorBody>('/v1/validate', {
      key: null,
      headers: { authorization: form() },
    });
    expect(body.errors[0]?.details).toContain('Authorization: Token <API_KEY>');
  });
});

describe('GET /v1/validate', () => {
  test.each(scopes)(
    'GET /v1/validate is 200 and an empty object for a key with the scope %s alone',
    async (scope) => {
      const { key } = await createApiKey(t.system.db, t.environment.environmentId, {
        label: 'x',
        scopes: [scope],
      });
      for (const path of ['/v1/validate', '/v1/validate/', '/v1//validate']) {
        const { status, body, headers } = await server.json(path, { key });
        expect([status, body, headers.get('cache-control')]).toEqual([200, {}, 'no-store']);
      }
    },
  );
});

describe('addresses', () => {
  test.each(['/v1', '/v2/imports', '/v1/imports/x', `${job}/unknown`, '/v1/imports/validate'])(
    'the address %s is 404',
    async (path) => {
      for (const method of ['GET', 'POST']) {
        const { status, body } = await server.json<ErrorBody>(path, { method });
        expect([status, body.errors[0]?.error_code]).toEqual([404, 'route_not_found']);
        expect(body.errors[0]?.message).toContain('/docs');
      }
    },
  );

  test('the address / describes the service, and its links work', async () => {
    const { body } = await server.json<{ links: Record<string, string> }>('/', { key: null });
    expect(body).toMatchObject({ service: 'sluice', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    for (const link of Object.values(body.links))
      expect([link, (await fetch(link)).status]).toEqual([link, 200]);
    expect((await server.fetch('/', { method: 'POST', key: null })).status).toBe(405);
  });

  test('an address that is not a proper URL is 400', async () => {
    expect(await refusalOf(server, '/v1/background_jobs/%zz')).toEqual([400, ['invalid_field']]);
  });
});

describe('headers', () => {
  test('a sane x-request-id is returned, and any other is replaced', async () => {
    const id = async (requestId?: string) => {
      const headers: Record<string, string> = requestId === undefined ? {} : { 'x-request-id': requestId };
      return (await server.fetch('/v1/background_jobs', { headers })).headers.get('x-request-id');
    };
    expect(await id('trace-123/abc')).toBe('trace-123/abc');
    const uuid = /^[0-9a-f-]{36}$/;
    expect(await id()).toMatch(uuid);
    for (const bad of ['with blank', 'a'.repeat(129), 'ü']) expect(await id(bad)).toMatch(uuid);
  });

  test.each([
    ['sluice.example.com', 'http://sluice.example.com'],
    ['Sluice.Example.com:8443', 'http://sluice.example.com:8443'],
    ['evil.com/path?x=', null],
    ['"><script>', null],
  ])('links for Host: %s begin with %s', async (host, base) => {
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

  test('bytes that are not HTTP are answered with the error record, and the connection is closed', async () => {
    const connection = await server.connect();
    await connection.write('hello\r\n\r\n');
    await connection.until(/^HTTP\/1.1 400 .*connection: close.*\{"errors":\[\{/s);
    await connection.untilEnded();
  });
});

test('links begin with PUBLIC_URL instead of the host', async () => {
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
    const document = await there.json<{ servers: object[] }>('/openapi.json');
    expect(document.body.servers).toEqual([{ url: 'https://data.example.com/sluice' }]);
  } finally {
    await there.stop();
    await other.close();
  }
});
