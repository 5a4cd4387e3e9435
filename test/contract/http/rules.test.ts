import { describe, expect, test } from 'vitest';
import type { RulesRecord } from '../../../src/api/rules.ts';
import { type ErrorBody, openServer } from '../../support/http.ts';
import { endedLoad, readProfiles } from '../../support/load-file.ts';

const { t, server } = await openServer({ worker: true });

const apply = async (file: string, key = t.key) => {
  const { status, body } = await server.json<RulesRecord & ErrorBody>('/v1/rules', {
    method: 'PUT',
    json: { file },
    key,
  });
  expect([status, body.errors]).toEqual([200, undefined]);
  return body;
};

interface Tenant {
  readonly key: string;
  readonly environment: { readonly environmentId: number };
}

/** Sends users in one way; returns the ids of those that are refused. */
type Way = (tenant: Tenant, users: readonly Record<string, unknown>[]) => Promise<string[]>;

const post = (path: string, key: string, body: string, type: string) =>
  server.json<{ job_id: string } & ErrorBody>(path, {
    method: 'POST',
    body,
    headers: { 'content-type': type },
    key,
  });

async function load(
  path: string,
  { key, environment }: Tenant,
  body: string,
  type: string,
): Promise<string[]> {
  const { body: answer } = await post(path, key, body, type);
  expect(answer.errors).toBeUndefined();
  await endedLoad(t.system, environment.environmentId, answer.job_id);
  const { body: rejects } = await server.json<{ data: { raw: string; error_code: string }[] }>(
    `/v1/background_jobs/${answer.job_id}/rejects`,
    { key },
  );
  expect(rejects.data.every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
  return rejects.data.map(({ raw }) => /u\d+/.exec(raw)?.[0] ?? raw);
}

const cell = (value: unknown) =>
  `"${(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll('"', '""')}"`;

const ways: Readonly<Record<string, Way>> = {
  csv: (tenant, users) => {
    const names = [...new Set(users.flatMap((user) => Object.keys(user)))];
    const lines = users.map((user) =>
      names.map((name) => (user[name] == null ? '' : cell(user[name]))).join(),
    );
    return load('/v1/imports?format=csv', tenant, `${[names.join(), ...lines].join('\n')}\n`, 'text/csv');
  },
  ndjson: (tenant, users) =>
    load(
      '/v1/imports?format=ndjson',
      tenant,
      users.map((user) => `${JSON.stringify(user)}\n`).join(''),
      'application/x-ndjson',
    ),
  bulk: (tenant, users) =>
    load('/v1/users/bulk_identify', tenant, JSON.stringify({ users }), 'application/json'),
  single: async ({ key }, users) => {
    const refused: string[] = [];
    for (const user of users) {
      const { status, body } = await server.json<ErrorBody | null>('/v1/identify', { json: user, key });
      if (status === 202) continue;
      expect(body?.errors.every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
      refused.push(String(user['user_id']));
    }
    return refused;
  },
  batch: async ({ key }, users) => {
    const batch = users.map((user) => ({ type: 'identify', ...user }));
    const { body } = await server.json<{ rejected: { index: number; error_code: string }[] }>('/v1/batch', {
      json: { batch },
      key,
    });
    expect(body.rejected.every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
    return body.rejected.map(({ index }) => String(users[index]?.['user_id']));
  },
  segment: async ({ key }, users) => {
    const batch = users.map(({ user_id, ...traits }) => ({ type: 'identify', userId: user_id, traits }));
    const { body } = await server.json<{ rejected: { index: number }[] }>('/v1/batch', {
      json: { batch },
      key,
    });
    return body.rejected.map(({ index }) => String(users[index]?.['user_id']));
  },
};

describe('rules', () => {
  for (const [name, send] of Object.entries(ways)) {
    test(`are kept to by records that come as ${name}`, async () => {
      const tenant = await t.addEnvironment(`rules-${name}`);
      await apply(
        `users:
  properties:
    email: { pattern: '^[^@]+@[^@]+$', otherwise: refuse }
    plan: { enum: [free, pro], otherwise: strip }
    seats: { type: integer, maximum: 10 }
    active: { type: boolean }
  unknown: strip
`,
        tenant.key,
      );
      const refused = await send(tenant, [
        { user_id: 'u1', email: 'a@b', plan: 'pro', seats: '7', active: 'TRUE' },
        { user_id: 'u2', email: 'none', plan: 'pro' },
        { user_id: 'u3', email: 'c@d', plan: 'gold', seats: '12', color: 'red' },
      ]);
      expect(refused).toEqual(['u2']);
      const { users } = await readProfiles(t.system, tenant.environment.environmentId);
      expect(Object.entries(users).map(([id, { metadata }]) => [id, metadata])).toEqual([
        ['u1', { email: 'a@b', plan: 'pro', seats: 7, active: true }],
        ['u3', { email: 'c@d', seats: 12 }],
      ]);
    });
  }

  test('are shown as they were applied, by version, and the same rules again are no new version', async () => {
    const { key } = await t.addEnvironment('rules-shown');
    const none = (await server.json<RulesRecord>('/v1/rules', { key })).body;
    expect(none).toMatchObject({ version: 0, applied_at: null, applied_by: null, document: {} });
    const file = 'users:\n  unknown: report\n';
    const first = await apply(file, key);
    expect(first).toMatchObject({ version: 1, file, document: { users: { unknown: 'report' } } });
    expect(first.applied_by).toEqual(expect.any(String));
    expect(await apply(file, key)).toEqual(first);
    expect((await apply('users: {}\n', key)).version).toBe(2);
  });
});
