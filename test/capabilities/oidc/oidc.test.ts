import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createSignInLink } from '../../../src/access/console-session.ts';
import { showSettings } from '../../../src/base/config.ts';
import { access } from '../../../src/capabilities/oidc/access.ts';
import { oidc } from '../../../src/capabilities/oidc/oidc.ts';
import { problems } from '../../../src/capabilities/oidc/problems-api.ts';
import { settingsProblem } from '../../../src/capabilities/oidc/settings.ts';
import type { ExportJob } from '../../../src/export/api.ts';
import { loadSetup, writeSetup } from '../../../src/export/import-folder.ts';
import { manifestName, setupName } from '../../../src/export/manifest.ts';
import { describedApi } from '../../support/oracles/api-document.ts';
import { apply } from '../../support/servers/definitions.ts';
import { type ErrorBody, serve, signIn } from '../../support/servers/http.ts';
import { openTestSystem, type Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { clientId, clientSecret, openProvider } from './support/provider.ts';
import { Visitor } from './support/visitor.ts';

const publicUrl = 'http://sluice.test';
const provider = await openProvider(publicUrl);
const adminKey = 'an-administrators-key-of-enough-length';
const settings = {
  ADMIN_KEY: adminKey,
  PUBLIC_URL: publicUrl,
  OIDC_ISSUER: provider.issuer,
  OIDC_CLIENT_ID: clientId,
  OIDC_CLIENT_SECRET: clientSecret,
  TRUST_PROXY: '127.0.0.1',
};
const lines: string[] = [];
const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) });
const t = await openTestSystem({ settings, log, worker: true });
const server = await serve(t);
const staging = await t.addEnvironment('staging');
const secret = await t.addEnvironment('secret');
afterAll(async () => {
  await server.stop();
  await t.close();
  await provider.stop();
});

const visitor = () => new Visitor(server, publicUrl);
const home = `${publicUrl}/console`;
const problem = (code: keyof typeof problems) => `${home}#sign-in=${code}`;

interface Session {
  readonly session_id: string;
  readonly environment: string;
  readonly environments: readonly string[];
  readonly scopes: readonly string[];
  readonly key_id: string;
  readonly is_admin: boolean;
  readonly expires_at: string;
}

const grant = (tenant: Tenant, value: string, ...scopes: string[]) =>
  apply(
    t,
    tenant,
    { access: [{ key: value, claim: 'groups', value, scopes }] as never },
    { lists: [access] },
  );

const isSignedIn = async (who: Visitor) => (await who.api('GET', '/v1/console/session')).status === 200;

/** Pretends that the provider last confirmed the session `minutes` ago. */
const age = (minutes: number) =>
  t.system.pool.query(
    `update oidc_sessions set checked_at = now() - $1 * interval '1 minute', check_until = now()`,
    [minutes],
  );

beforeEach(async () => {
  provider.forge = null;
  provider.refusesClient = false;
  provider.groups.clear();
  provider.groups.set('anna', ['data', 'people']);
  await grant(t, 'data', 'read', 'export');
  await grant(staging, 'people', 'read', 'import');
  await grant(secret, 'admins', 'read');
});

test('a person gets the scopes that the definitions give to their groups, by environment', async () => {
  const anna = visitor();
  expect(await anna.signIn('anna', '/jobs?type=load')).toBe(`${home}/jobs?type=load`);
  const { body: caller } = await anna.api<Session>('GET', '/v1/console/session');
  expect(caller).toMatchObject({
    environment: 'default',
    environments: ['default', 'staging'],
    scopes: ['export', 'read'],
    key_id: 'anna',
    is_admin: false,
    holder: 'oidc',
  });
  expect(Date.parse(caller.expires_at) - Date.now()).toBeLessThanOrEqual(12 * 3_600_000);
  expect((await anna.api('GET', '/v1/users')).status).toBe(200);
  expect((await anna.api('POST', '/v1/segments', {})).status).toBe(403);
  const moved = await anna.api<Session>('PUT', '/v1/console/session', { environment: 'staging' });
  expect(moved.body).toMatchObject({ environment: 'staging', scopes: ['import', 'read'] });
  expect((await anna.api('PUT', '/v1/console/session', { environment: 'secret' })).status).toBe(404);
  expect((await anna.api('GET', '/v1/keys')).status).toBe(403);
});

test('acts and jobs of a person have their name, and not the id of a key', async () => {
  await grant(t, 'data', 'read', 'export');
  const anna = visitor();
  await anna.signIn('anna');
  const asked = await anna.api<{ job_id: string }>('POST', '/api/v1/analytics/exports', {
    event_type: 'users',
  });
  expect(asked.status).toBe(201);
  const job = await anna.api('GET', `/v1/background_jobs/${asked.body.job_id}`);
  expect(job.body).toMatchObject({ origin: { kind: 'person', name: 'anna' } });
  const { rows } = await t.system.pool.query(`
    select distinct action, actor_kind
    from audit_entries
    where actor_name = 'anna' and action in ('export.requested', 'session.started')
    order by action`);
  expect(rows).toEqual([
    { action: 'export.requested', actor_kind: 'person' },
    { action: 'session.started', actor_kind: 'person' },
  ]);
});

test('downloads of a person have their name, and links to files end with their session', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  const path = '/api/v1/analytics/exports';
  const { job_id } = (await anna.api<{ job_id: string }>('POST', path, { event_type: 'users' })).body;
  const address = await waitFor('a link', async () => {
    const { body } = await anna.api<ExportJob>('GET', `${path}/jobs/${job_id}`);
    return body.presigned_urls[0]?.url;
  });
  const download = () => fetch(address.replace(publicUrl, new URL(server.address).origin));
  expect((await download()).status).toBe(200);
  const { rows } = await t.system.pool.query(
    `select actor_kind, actor_name from audit_entries where action = 'file.downloaded'`,
  );
  expect(rows).toEqual([{ actor_kind: 'person', actor_name: 'anna' }]);
  await anna.api('POST', '/v1/console/oidc/sign_out');
  expect((await download()).status).toBe(410);
});

test('a person without a group that has access gets no session, and learns why on the same page', async () => {
  const bob = visitor();
  expect(await bob.signIn('bob')).toBe(problem('access'));
  expect(bob.cookie('sluice_session')).toBeUndefined();
  expect(await bob.signIn('bob', '/jobs?type=load')).toBe(`${home}/jobs?type=load#sign-in=access`);
});

test('the log of a person without access has the names of the claims and the list of access', async () => {
  provider.groups.set('bob', ['a-group-of-bob']);
  await apply(
    t,
    staging,
    { access: [{ key: 'eve', claim: 'email', value: 'eve@example.com', scopes: ['read'] }] as never },
    { lists: [access] },
  );
  expect(await visitor().signIn('bob')).toBe(problem('access'));
  const line = JSON.parse(lines.findLast((each) => each.includes('OpenID Connect failed')) ?? '{}') as object;
  expect(line).toMatchObject({
    reason: 'access',
    claims: expect.arrayContaining(['groups', 'sub']),
    access: ['groups=data', 'groups=admins', 'email'],
  });
  expect(JSON.stringify(line)).not.toMatch(/bob|eve@/);
});

test('a client that the provider refuses is a problem of the settings', async () => {
  provider.refusesClient = true;
  expect(await visitor().signIn('anna')).toBe(problem('client'));
});

test('a provider that has another name than OIDC_ISSUER is refused before anybody signs in', async () => {
  const oidcIssuer = provider.issuer.replace('127.0.0.1', 'localhost');
  const misled = await serve({ ...t, system: { ...t.system, config: { ...t.config, oidcIssuer } } });
  onTestFinished(() => misled.stop());
  const step = await new Visitor(misled, publicUrl).api('POST', '/v1/console/oidc/sign_in', {});
  expect(step).toEqual({ status: 200, body: { url: null, problem: problems.issuer } });
});

test('an answer of the provider is good once, for the browser and the sign-in that it belongs to', async () => {
  const anna = visitor();
  const answer = await anna.answer(await anna.begin(), 'anna');
  const attempt = anna.cookie('sluice_sign_in') ?? '';
  const thief = visitor();
  expect(await thief.come(answer)).toBe(problem('expired'));
  await thief.begin();
  expect(await thief.come(answer)).toBe(problem('state'));
  expect(await anna.come(answer)).toBe(home);
  anna.cookies.get(publicUrl)?.set('sluice_sign_in', attempt);
  expect(await anna.come(answer)).toBe(problem('replayed'));
  anna.cookies.get(publicUrl)?.set('sluice_sign_in', `${attempt.slice(0, -2)}AA`);
  expect(await anna.come(answer)).toBe(problem('expired'));
  const other = visitor();
  const code = new URL(await other.answer(await other.begin(), 'anna'));
  code.searchParams.set('iss', 'http://127.0.0.1:1');
  expect(await other.come(code.href)).toBe(problem('issuer'));
});

test('forged ID tokens are refused', async () => {
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const past = (seconds: number) => Math.floor(Date.now() / 1_000) - seconds;
  const { sign, signWith, publicPem } = provider;
  const forgeries: Readonly<
    Record<string, readonly [keyof typeof problems, NonNullable<typeof provider.forge>]>
  > = {
    'without a signature': ['token', (payload) => signWith(payload, { alg: 'none' }, '')],
    'signed with the client secret': [
      'token',
      (payload) => signWith(payload, { alg: 'HS256' }, clientSecret),
    ],
    'signed with the public key as a secret': [
      'token',
      (payload) => signWith(payload, { alg: 'HS256' }, publicPem),
    ],
    'signed with another key': ['token', (payload) => signWith(payload, {}, stranger)],
    'with an unknown key': ['token', (payload) => signWith(payload, { kid: 'two' }, stranger)],
    'of another issuer': ['issuer', (payload) => sign({ ...payload, iss: 'https://evil.example.com' })],
    'for another client': ['token', (payload) => sign({ ...payload, aud: 'another' })],
    'for another sign-in': ['token', (payload) => sign({ ...payload, nonce: 'another' })],
    'without a nonce': ['token', ({ nonce: _, ...payload }) => sign(payload)],
    'of another person': ['token', (payload) => sign({ ...payload, sub: 'root' })],
    'that has expired': ['clock', (payload) => sign({ ...payload, iat: past(900), exp: past(600) })],
    'from the future': ['clock', (payload) => sign({ ...payload, iat: past(-600), exp: past(-900) })],
  };
  for (const [name, [code, forge]] of Object.entries(forgeries)) {
    provider.forge = forge;
    const anna = visitor();
    expect([name, await anna.signIn('anna')]).toEqual([name, problem(code)]);
    expect([name, anna.cookie('sluice_session')]).toEqual([name, undefined]);
  }
});

test('a group that is removed at the provider loses its access within a minute, with a reason', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  provider.groups.set('anna', ['people']);
  expect(await isSignedIn(anna)).toBe(true);
  await age(2);
  const { status, body } = await anna.api<ErrorBody>('GET', '/v1/users');
  expect([status, body.errors[0]?.message]).toEqual([
    401,
    'None of your groups has access to the environment default any more. Sign in again.',
  ]);
  expect(await anna.signIn('anna')).toBe(home);
  expect((await anna.api<Session>('GET', '/v1/console/session')).body.environment).toBe('staging');
});

test('the session of a person who has left the provider ends within a minute, and the log says so', async () => {
  const dora = visitor();
  provider.groups.set('dora', ['data']);
  await dora.signIn('dora');
  const { session_id: id } = (await dora.api<Session>('GET', '/v1/console/session')).body;
  provider.left.add('dora');
  await age(2);
  expect(await isSignedIn(dora)).toBe(false);
  const { rows } = await t.system.pool.query(
    `select actor_kind from audit_entries where action = 'session.ended' and thing = $1`,
    [id],
  );
  expect(rows).toEqual([{ actor_kind: 'service' }]);
});

test('a changed list of access acts on sessions at once', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  await grant(t, 'data', 'read');
  expect((await anna.api<Session>('GET', '/v1/console/session')).body.scopes).toEqual(['read']);
  await grant(t, 'others', 'read');
  expect(await isSignedIn(anna)).toBe(false);
});

test('without the provider nobody can sign in, and sessions last five more minutes', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  const answer = await anna.answer(await anna.begin(), 'anna');
  await provider.stop();
  try {
    expect(await anna.come(answer)).toBe(problem('away'));
    await age(2);
    expect(await isSignedIn(anna)).toBe(true);
    await age(6);
    const { body } = await anna.api<ErrorBody>('GET', '/v1/users');
    expect(body.errors[0]?.message).toMatch(/^The provider has not confirmed your sign-in/);
  } finally {
    await provider.start();
  }
  await age(6);
  expect(await isSignedIn(anna)).toBe(true);
});

test('a sign-out ends the session here and at the provider, and only the console can ask for it', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  const foreign = { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } };
  expect((await anna.send(`${publicUrl}/v1/console/oidc/sign_out`, foreign)).status).toBe(403);
  const stolen = anna.cookie('sluice_session') ?? '';
  const { body } = await anna.api<{ url: string }>('POST', '/v1/console/oidc/sign_out');
  const end = new URL(body.url);
  expect(end.origin).toBe(provider.issuer);
  expect(end.searchParams.get('post_logout_redirect_uri')).toBe(home);
  expect((await anna.send(body.url)).status).toBe(200);
  anna.cookies.get(publicUrl)?.set('sluice_session', stolen);
  expect(await isSignedIn(anna)).toBe(false);
});

test('pruning removes the claims and tokens of ended and expired sessions, and of no other', async () => {
  const people = ['ada', 'bert', 'carl'];
  const visitors = new Map(people.map((name) => [name, visitor()]));
  for (const [name, who] of visitors) {
    provider.groups.set(name, ['data']);
    await who.signIn(name);
  }
  await visitors.get('ada')?.api('POST', '/v1/console/oidc/sign_out');
  await t.system.pool.query(`update console_sessions set expires_at = now() where subject = 'carl'`);
  await oidc.maintain?.(t.system);
  const { rows } = await t.system.pool.query(
    'select subject from oidc_sessions join console_sessions using (session_id) where subject = any($1)',
    [people],
  );
  expect(rows).toEqual([{ subject: 'bert' }]);
});

test('a sign-in gives the browser a new session, and leads only to the console', async () => {
  const mallory = visitor();
  await mallory.api('POST', '/v1/console/sign_in', { key: t.key });
  const planted = mallory.cookie('sluice_session') ?? '';
  expect(planted).toHaveLength(43);
  const anna = visitor();
  for (const cookie of ['A'.repeat(43), planted]) {
    anna.cookies.set(publicUrl, new Map([['sluice_session', cookie]]));
    await anna.signIn('anna');
    expect(anna.cookie('sluice_session')).not.toBe(cookie);
    expect((await anna.api<Session>('GET', '/v1/console/session')).body.key_id).toBe('anna');
  }
  expect((await mallory.api<Session>('GET', '/v1/console/session')).body.key_id).toBe(t.key.split('_')[1]);
  for (const path of [
    '//evil.example.com',
    '/\\evil.example.com',
    '.evil.example.com',
    '@evil.example.com',
    '/a\r\nb',
  ])
    await expect(anna.begin(path)).rejects.toThrow();
});

test('no row, log line, setting or answer has a token or the client secret in clear', async () => {
  const anna = visitor();
  await anna.signIn('anna');
  provider.forge = (payload) => provider.sign({ ...payload, aud: 'another' });
  expect(await visitor().signIn('anna')).toBe(problem('token'));
  provider.forge = null;
  provider.refusesClient = true;
  expect(await visitor().signIn('anna')).toBe(problem('client'));
  const { rows } = await t.system.pool.query<{ text: string }>(
    `select (s.*)::text || coalesce((o.*)::text, '') || encode(o.tokens, 'escape') as text
    from console_sessions s left join oidc_sessions o using (session_id)`,
  );
  const stored = rows.map(({ text }) => text).join('\n');
  const answers = await readEverything();
  const logged = lines.join('');
  expect(logged).toContain('a sign-in by OpenID Connect failed');
  for (const text of [stored, logged]) expect(text).not.toMatch(/eyJ|access_token|accessToken|[?&]code=/);
  const shown = JSON.stringify(showSettings(settings, {}));
  expect(shown).toContain('OIDC_CLIENT_SECRET');
  for (const text of [stored, logged, shown, ...answers]) {
    expect(text).not.toContain(anna.cookie('sluice_session'));
    expect(text).not.toContain(clientSecret);
  }
});

/**
 * As an administrator, sends a GET request to every route that needs no id. Returns the responses.
 */
async function readEverything(): Promise<string[]> {
  const admin = await signIn(server, adminKey);
  const { paths } = (await describedApi()).document;
  const isRead = (path: string) => paths[path]?.['get'] !== undefined && !path.includes('{');
  const reads = Object.keys(paths).filter(
    (path) => isRead(path) && /^\/(v1|health|metrics|openapi)/.test(path),
  );
  expect(reads).toEqual(
    expect.arrayContaining(['/health/ready', '/metrics', '/openapi.json', '/v1/audit', '/v1/console/oidc']),
  );
  const answers: string[] = [];
  for (const path of reads) {
    const response = await server.fetch(path, { ...admin, redirect: 'manual' });
    expect([path, response.status]).not.toEqual([path, 401]);
    answers.push(JSON.stringify([path, ...response.headers]), await response.text());
  }
  return answers;
}

test('an export of a whole environment omits the list of access, and an import refuses it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-setup-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, manifestName), '{}');
  const { environmentId } = t.environment;
  await writeSetup(t.system, environmentId, folder);
  const text = await readFile(join(folder, setupName), 'utf8');
  expect(text).toContain('segments:');
  expect(text).not.toContain('access');
  const setup = [{ filename: setupName, bytes: 0, sha256: '' }] as const;
  expect(await loadSetup(t.system, environmentId, folder, setup)).toEqual({ definitions: 'unchanged' });
  await writeFile(join(folder, setupName), 'access: [{ key: all, value: all, scopes: [read] }]');
  await expect(loadSetup(t.system, environmentId, folder, setup)).rejects.toThrow(/access is unknown/);
});

test('with a provider, a one-time link works only on the machine of the service', async () => {
  const link = await createSignInLink(t.system, t.environment.environmentId);
  const request = (headers: Record<string, string>) =>
    fetch(new URL('/v1/console/sign_in', server.address), {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ link }),
    });
  expect((await request({ 'x-forwarded-for': '203.0.113.7' })).status).toBe(403);
  expect((await request({ forwarded: 'for=127.0.0.1' })).status).toBe(403);
  expect((await request({})).status).toBe(200);
});

test('incomplete or wrong settings of the provider are refused with the setting at fault', () => {
  const none = {
    oidcIssuer: null,
    oidcClientId: null,
    oidcClientSecret: '',
    oidcScopes: 'openid',
    publicUrl: null,
  };
  const all = { ...none, oidcIssuer: 'https://a.example.com', oidcClientId: 'a', oidcClientSecret: 'b' };
  expect(settingsProblem(none)).toBeNull();
  expect(settingsProblem({ ...none, oidcIssuer: 'https://a.example.com' })).toMatch(
    /^OIDC_CLIENT_ID and OIDC_CLIENT_SECRET/,
  );
  expect(settingsProblem(all)).toMatch(/^PUBLIC_URL/);
  const whole = { ...all, publicUrl };
  expect(settingsProblem(whole)).toBeNull();
  expect(settingsProblem({ ...whole, oidcIssuer: 'http://a.example.com' })).toMatch(/^OIDC_ISSUER/);
  expect(settingsProblem({ ...whole, oidcScopes: 'email' })).toMatch(/^OIDC_SCOPES/);
});
