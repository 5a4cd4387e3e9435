import { describe, expect, test } from 'vitest';
import type { Caller as Who } from '../../../src/access/api.ts';
import { createSignInLink, openSession, verifySession } from '../../../src/access/console-session.ts';
import { createApiKey, revokeApiKey } from '../../../src/access/key-store.ts';
import { LookupTurns, UNKNOWN_LOOKUPS_AT_A_TIME } from '../../../src/access/verify-key.ts';
import {
  type ErrorBody,
  openServer,
  serve,
  serversPerTest,
  type TestServer,
} from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const staticKey = 'a-static-key-of-the-operator';
const { t, server } = await openServer({ settings: { ADMIN_KEY: adminKey, API_KEY: staticKey } });

const sameOrigin = { 'sec-fetch-site': 'same-origin' };

const signIn = (body: object, headers: Record<string, string> = sameOrigin) =>
  server.json<Who & ErrorBody>('/v1/console/sign_in', { key: null, headers, json: body });

async function cookieOf(body: object): Promise<string> {
  const { status, headers } = await signIn(body);
  expect(status).toBe(200);
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

const ask = (path: string, cookie: string, method = 'GET', headers: Record<string, string> = sameOrigin) =>
  server.json<Who & ErrorBody>(path, { method, key: null, headers: { cookie, ...headers } });

const job = '/v1/background_jobs/01a1f879-8845-7223-9ca4-ceafb3823817';

describe('a session', () => {
  // proves: session-secret
  test('the cookie of a session is hidden from scripts and other sites, and the database has only its digest', async () => {
    const { status, body, headers } = await signIn({ key: t.key });
    expect([status, body.environment, body.is_admin]).toEqual([200, 'default', false]);
    const cookie = headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^sluice_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    const secret = /=([\w-]{43});/.exec(cookie)?.[1] ?? '';
    const { rows } = await t.system.pool.query<{ text: string }>(
      'select s::text as text from console_sessions s',
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.map(({ text }) => text).join()).not.toContain(secret);
    const behindTls = await signIn({ key: t.key }, { ...sameOrigin, 'x-forwarded-proto': 'https' });
    expect(behindTls.headers.get('set-cookie')).toMatch(/; Secure$/);
  });

  test('sessions that wait for another service hold up no other look-up', async () => {
    let answer = (): void => undefined;
    const service = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let requests = 0;
    const way = {
      holder: 'slow',
      async admit() {
        requests += 1;
        await service;
        return { scopes: ['read'], isAdmin: false } as const;
      },
    };
    const context = { ...t.system, signInWays: [way] };
    const turns = new LookupTurns();
    const opening = { environmentId: t.environment.environmentId, holder: way.holder, subject: 'anna' };
    const waiting: Promise<unknown>[] = [];
    for (let session = 0; session < UNKNOWN_LOOKUPS_AT_A_TIME; session++) {
      const { cookie } = await openSession(t.system, opening, '');
      waiting.push(verifySession(context, cookie, turns));
    }
    await waitFor('the sessions to wait', async () => requests === waiting.length);
    expect(await verifySession(context, 'unknown', turns)).toMatchObject({ refused: 'unknown' });
    answer();
    expect(await Promise.all(waiting)).toEqual(
      waiting.map(() => expect.objectContaining({ keyId: 'anna', scopes: ['read'] })),
    );
  });

  // proves: session-scope
  test('a session has exactly the scopes of its key', async () => {
    const { key } = await createApiKey(t.system.db, t.environment.environmentId, {
      label: 'x',
      scopes: ['read'],
    });
    const cookie = await cookieOf({ key });
    expect((await ask('/v1/background_jobs', cookie)).status).toBe(200);
    const refused = await ask(`${job}/cancel`, cookie, 'POST');
    expect([refused.status, refused.body.errors[0]?.details]).toEqual([
      403,
      'needed: import; the key has: read',
    ]);
  });

  // proves: session-scope
  test('a session ends with its key, and with the request to sign out', async () => {
    const { key, keyId } = await createApiKey(t.system.db, t.environment.environmentId, { label: 'x' });
    const first = await cookieOf({ key });
    const second = await cookieOf({ key });
    expect((await ask('/v1/console/session', first, 'DELETE')).status).toBe(204);
    expect((await ask('/v1/console/session', first)).status).toBe(401);
    await revokeApiKey(t.system.db, t.environment.environmentId, keyId);
    expect((await ask('/v1/console/session', second)).status).toBe(401);
  });

  // proves: other-origins
  test('a session works for the console only, not for another site or another port', async () => {
    const cookie = await cookieOf({ key: t.key });
    const { host } = new URL(server.address);
    const refused: [string, Record<string, string>][] = [
      ['POST', { 'sec-fetch-site': 'same-site' }],
      ['POST', { 'sec-fetch-site': 'cross-site' }],
      ['POST', { 'sec-fetch-site': 'none' }],
      ['POST', {}],
      ['POST', { origin: 'http://127.0.0.1:1' }],
      ['POST', { origin: 'null' }],
      ['GET', { 'sec-fetch-site': 'same-site' }],
      ['GET', { 'sec-fetch-site': 'cross-site' }],
    ];
    for (const [method, headers] of refused) {
      const path = method === 'GET' ? '/v1/background_jobs' : `${job}/retry`;
      const { status, body } = await ask(path, cookie, method, headers);
      expect([method, headers, status, body.errors[0]?.error_code]).toEqual([
        method,
        headers,
        403,
        'insufficient_scope',
      ]);
    }
    const acceptable: [string, Record<string, string>][] = [
      ['POST', sameOrigin],
      ['POST', { origin: `http://${host}` }],
      ['GET', { 'sec-fetch-site': 'none' }],
      ['GET', {}],
    ];
    for (const [method, headers] of acceptable) {
      const path = method === 'GET' ? '/v1/background_jobs' : `${job}/retry`;
      expect([method, headers, (await ask(path, cookie, method, headers)).status]).toEqual([
        method,
        headers,
        method === 'GET' ? 200 : 404,
      ]);
    }
    expect((await signIn({ key: t.key }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  });

  test('a session of ADMIN_KEY changes its environment, a page of the former one is refused, and other keys change nothing', async () => {
    await t.addEnvironment('staging');
    const cookie = await cookieOf({ key: adminKey });
    const who = (await ask('/v1/console/session', cookie)).body;
    expect([who.environment, who.environments, who.is_admin]).toEqual([
      'default',
      ['default', 'staging'],
      true,
    ]);
    const moved = await server.json<Who>('/v1/console/session', {
      method: 'PUT',
      key: null,
      headers: { cookie, ...sameOrigin },
      json: { environment: 'staging' },
    });
    expect([moved.status, moved.body.environment]).toEqual([200, 'staging']);
    const stale = await ask('/v1/background_jobs', cookie, 'GET', {
      ...sameOrigin,
      'sluice-environment': 'default',
    });
    expect([stale.status, stale.body.errors[0]?.details]).toEqual([403, 'environment: staging']);
    const key = await cookieOf({ key: t.key });
    const refused = await server.json<ErrorBody>('/v1/console/session', {
      method: 'PUT',
      key: null,
      headers: { cookie: key, ...sameOrigin },
      json: { environment: 'staging' },
    });
    expect(refused.status).toBe(403);
  });

  // proves: session-scope
  test('a session of a configured key ends when the setting changes', async () => {
    const admin = await cookieOf({ key: adminKey });
    const operator = await cookieOf({ key: staticKey });
    const changed = { ...t.config, adminKey: `${adminKey}4`, apiKey: null };
    const later = await serve({ ...t, system: { ...t.system, config: changed } });
    try {
      for (const cookie of [admin, operator]) {
        expect((await ask('/v1/console/session', cookie)).status).toBe(200);
        const { status } = await later.json('/v1/console/session', {
          key: null,
          headers: { cookie, ...sameOrigin },
        });
        expect(status).toBe(401);
      }
    } finally {
      await later.stop();
    }
  });

  // proves: session-secret
  test('a sign-in link of the command line works once, and not after it expired', async () => {
    const link = await createSignInLink(t.system, t.environment.environmentId);
    const first = await signIn({ link });
    expect([first.status, first.body.is_admin]).toEqual([200, true]);
    expect((await signIn({ link })).status).toBe(401);
    const late = await createSignInLink(t.system, t.environment.environmentId);
    await t.system.pool.query("update console_links set expires_at = now() - interval '1 s'");
    expect((await signIn({ link: late })).status).toBe(401);
  });
});

describe('signing in', () => {
  const { start } = serversPerTest();

  const guess = (fresh: TestServer, forwardedFor: string) =>
    fresh.json<ErrorBody>('/v1/console/sign_in', {
      key: null,
      headers: { 'x-forwarded-for': forwardedFor, ...sameOrigin },
      json: { key: `slk_${'0'.repeat(12)}_${'0'.repeat(40)}` },
    });

  // proves: session-secret
  test('after ten wrong keys a caller must wait, also under other made-up addresses', async () => {
    const { server: fresh } = await start();
    for (let n = 0; n < 10; n++) expect((await guess(fresh, `203.0.113.${n}`)).status).toBe(401);
    const { status, headers } = await guess(fresh, '203.0.113.99');
    expect([status, Number(headers.get('retry-after')) > 0]).toEqual([429, true]);
  });

  // proves: session-secret
  test('behind a proxy of TRUST_PROXY only the address that guesses must wait', async () => {
    const { server: fresh } = await start({ settings: { TRUST_PROXY: '10.0.0.0/8, 127.0.0.1' } });
    // A proxy appends the caller's address to this list. The caller can invent all earlier
    // addresses in the list.
    for (let n = 0; n < 10; n++)
      expect((await guess(fresh, `198.51.100.${n}, 203.0.113.1, 10.1.2.3`)).status).toBe(401);
    expect((await guess(fresh, '203.0.113.1')).status).toBe(429);
    expect((await guess(fresh, '203.0.113.2')).status).toBe(401);
  });
});

// proves: other-origins
test('the page of the console has no data, no inline script and a strict policy, and its files are cacheable for ever', async () => {
  const page = await fetch(new URL('/console/jobs?type=import', server.address));
  expect(page.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  );
  expect(page.headers.get('x-content-type-options')).toBe('nosniff');
  const html = await page.text();
  expect(html).not.toMatch(/<script[^>]*>[^<]|<style|style=|\son\w+=/);
  const [, script = ''] = /src="(\/console\/assets\/main-[^"]+)"/.exec(html) ?? [];
  const file = await fetch(new URL(script, server.address), { headers: { 'accept-encoding': 'gzip, br' } });
  expect([file.status, file.headers.get('cache-control'), file.headers.get('content-encoding')]).toEqual([
    200,
    'public, max-age=31536000, immutable',
    'br',
  ]);
  expect((await fetch(new URL('/console/assets/none.js', server.address))).status).toBe(404);
});
