import { beforeEach, expect, test } from 'vitest';
import type { Act, Actor, RefusedAttempt } from '../../../src/domain/act.ts';
import { Acts } from '../../../src/postgres/acts.ts';
import { serve, signIn } from '../../support/servers/http.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const adminKey = 'an-administrators-key-of-enough-length';
const t = await systemOfFile({ settings: { ADMIN_KEY: adminKey } });
const reports: (Act & { readonly actor: Actor })[] = [];
const refusals: RefusedAttempt[] = [];
let problem: Error | null = null;
const acts = new Acts([
  {
    async acted(_, actor, act) {
      reports.push({ ...act, actor });
      if (problem !== null) throw problem;
    },
    refused: (attempt) => void refusals.push(attempt),
    close: async () => undefined,
  },
]);
const server = await serve({ ...t, system: { ...t.system, acts } });

beforeEach(() => {
  problem = null;
  reports.length = 0;
  refusals.length = 0;
});

const keys = async (admin: object) =>
  (await server.json<readonly { key_id: string }[]>('/v1/keys', admin)).body.map(({ key_id }) => key_id);

test('an act is reported once, with its actor, session and address', async () => {
  const admin = await signIn(server, adminKey);
  const { body } = await server.json<{ key_id: string }>('/v1/keys', {
    ...admin,
    json: { label: 'nightly' },
  });
  const address = expect.stringMatching(/127\.0\.0\.1|::1/);
  const actor = { kind: 'api_key', name: 'ADMIN_KEY', sessionId: expect.any(String), address };
  expect(reports).toMatchObject([
    { action: 'session.started', actor },
    { action: 'key.created', actor, environmentId: t.environment.environmentId, thing: body.key_id },
  ]);
});

test('an act is rolled back if its report fails', async () => {
  const admin = await signIn(server, adminKey);
  const before = await keys(admin);
  problem = new Error('the report cannot be written');
  const { status } = await server.json('/v1/keys', { ...admin, json: { label: 'lost' } });
  const load = await server.fetch('/v1/imports', { method: 'POST', body: 'user_id\nu1\n' });
  expect([status, load.status, reports.map(({ action }) => action)]).toEqual([
    500,
    500,
    ['session.started', 'key.created', 'load.accepted'],
  ]);
  problem = null;
  expect(await keys(admin)).toEqual(before);
  expect((await server.json('/v1/background_jobs')).body).toEqual([]);
});

test('a refused request reports no act, and single records report none', async () => {
  await server.fetch('/v1/identify', { json: { user_id: 'u1' } });
  await server.fetch('/v1/keys', { json: { label: 'not by a key' } });
  await server.fetch('/v1/background_jobs/01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42/cancel', { method: 'POST' });
  expect(reports).toEqual([]);
});

test('a wrong key is reported as refused, and a missing key is not', async () => {
  await server.fetch('/v1/users', { key: null });
  await server.fetch('/v1/users', { key: `slk_${'0'.repeat(12)}_${'0'.repeat(40)}` });
  await server.fetch('/v1/users', { key: 'not a key' });
  const sameOrigin = { 'sec-fetch-site': 'same-origin' };
  await server.fetch('/v1/console/sign_in', { json: { key: 'wrong' }, key: null, headers: sameOrigin });
  expect(refusals.map(({ action, reason }) => `${action} ${reason}`)).toEqual([
    'key.refused unknown',
    'key.refused malformed',
    'sign_in.refused key',
  ]);
  expect(JSON.stringify(refusals)).not.toMatch(/slk_|wrong/);
});
