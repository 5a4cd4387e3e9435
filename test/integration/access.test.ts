import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyKey } from '../../src/access/verify-key.ts';
import { scopes } from '../../src/domain/scope.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from '../../src/postgres/stores/api-keys.ts';
import {
  createEnvironment,
  ensureDefaultEnvironment,
  findEnvironment,
  listEnvironments,
} from '../../src/postgres/stores/environments.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
beforeAll(async () => {
  t = await openTestSystem();
});
afterAll(() => t.close());

const verify = (key: string, staticKey: string | null = null) =>
  verifyKey(t.system.db, staticKey, `Token ${key}`);
const tomorrow = () => new Date(Date.now() + 86_400_000);

async function makePast(keyId: string): Promise<void> {
  await t.system.db
    .updateTable('api_keys')
    .set({ expires_at: sql`now() - interval '1 second'` })
    .where('key_id', '=', keyId)
    .execute();
}

describe('environments', () => {
  test('of two processes that start at once on a fresh database, exactly one is told the first key', async () => {
    const database = await createTestDatabase();
    const pool = createPool({ url: database.url, max: 8, applicationName: 'test' });
    const db = createDatabase(pool);
    const made = await Promise.all(Array.from({ length: 8 }, () => ensureDefaultEnvironment(db)));
    expect(made.filter(({ key }) => key !== null)).toHaveLength(1);
    expect(new Set(made.map(({ environment }) => environment.environmentId)).size).toBe(1);
    expect((await ensureDefaultEnvironment(db)).key).toBeNull();
    const only = made[0]?.environment.environmentId ?? 0;
    expect(await listApiKeys(db, only)).toHaveLength(1);
    await pool.end();
    await database.drop();
  });

  test('a new one has an app token and is found by name and in the list', async () => {
    const made = await createEnvironment(t.system.db, 'staging');
    expect(made.appToken).toMatch(/^NX-[0-9A-Z]{8}$/);
    expect(await findEnvironment(t.system.db, 'staging')).toEqual(made);
    expect((await listEnvironments(t.system.db)).map(({ name }) => name)).toEqual(['default', 'staging']);
    expect(await findEnvironment(t.system.db, 'nowhere')).toBeNull();
  });

  test.each(['', 'Default', 'a b', '-a', 'a'.repeat(64), 'é'])('the name %j is refused', async (name) => {
    await expect(createEnvironment(t.system.db, name)).rejects.toMatchObject({ status: 400 });
  });

  test('a name that is taken is refused', async () => {
    await createEnvironment(t.system.db, 'once');
    await expect(createEnvironment(t.system.db, 'once')).rejects.toThrow(/exists/);
  });
});

describe('keys', () => {
  const environmentId = () => t.environment.environmentId;

  test('a key opens its environment with its scopes', async () => {
    const { key, keyId } = await createApiKey(t.system.db, environmentId(), {
      label: 'ci',
      scopes: ['read', 'import'],
    });
    expect(key).toMatch(/^slk_[0-9a-z]{12}_[0-9a-z]{40}$/);
    expect(await verify(key)).toEqual({ environment: t.environment, scopes: ['import', 'read'], keyId });
  });

  test('neither the table nor the list holds the key', async () => {
    const { key, keyId } = await createApiKey(t.system.db, environmentId(), { label: 'secret' });
    const secret = key.split('_')[2] ?? '';
    const rows = await sql<{ row: string }>`select k::text as row from sluice.api_keys k`.execute(
      t.system.db,
    );
    expect(rows.rows.map(({ row }) => row).join()).not.toContain(secret);
    const listed = (await listApiKeys(t.system.db, environmentId())).find((each) => each.keyId === keyId);
    expect(listed).toMatchObject({ label: 'secret', scopes, expiresAt: null, revokedAt: null });
    expect(JSON.stringify(listed)).not.toContain(secret);
  });

  test('a key may stand behind Token, Bearer or Basic, in any case, or alone; another scheme and nothing are refused', async () => {
    const { db } = t.system;
    const basic = Buffer.from(`${t.key}:`).toString('base64');
    const good = [
      `Token ${t.key}`,
      `token ${t.key}`,
      `TOKEN  ${t.key}`,
      `Bearer ${t.key}`,
      `basic ${basic}`,
      t.key,
    ];
    for (const header of good) {
      expect(await verifyKey(db, null, header)).toHaveProperty('environment');
    }
    const bad = [undefined, '', 'Token', 'Token ', `Digest ${t.key}`, `Basic ${t.key}`, `Token ${t.key} x`];
    for (const header of bad) expect(await verifyKey(db, null, header)).toHaveProperty('refused');
  });

  test('a wrong secret, an unknown id and garbage are refused', async () => {
    const flipped = `${t.key.slice(0, -1)}${t.key.endsWith('0') ? '1' : '0'}`;
    const unknown = `slk_${'0'.repeat(12)}_${'0'.repeat(40)}`;
    for (const key of [flipped, unknown, `${t.key}0`, 'slk_x_y', 'x'.repeat(5000)]) {
      expect(await verify(key)).toHaveProperty('refused');
    }
  });

  test('a revoked key is refused from then on, and revoking again changes nothing', async () => {
    const { key, keyId } = await createApiKey(t.system.db, environmentId(), { label: 'leaked' });
    expect(await verify(key)).toHaveProperty('environment');
    await revokeApiKey(t.system.db, environmentId(), keyId);
    expect(await verify(key)).toHaveProperty('refused');
    const at = async () =>
      (await listApiKeys(t.system.db, environmentId())).find((each) => each.keyId === keyId)?.revokedAt;
    const first = await at();
    await revokeApiKey(t.system.db, environmentId(), keyId);
    expect(await at()).toEqual(first);
  });

  test('a key works until its expiry and not after', async () => {
    const { key, keyId } = await createApiKey(t.system.db, environmentId(), {
      label: 'trial',
      expiresAt: tomorrow(),
    });
    expect(await verify(key)).toHaveProperty('environment');
    await makePast(keyId);
    expect(await verify(key)).toHaveProperty('refused');
  });

  test.each(['', ' ', 'x'.repeat(201), 'a\u202egnp', 'a\u0007', 'a\u200bb', '\ufeffci', 'a\nb'])(
    'a label that people cannot read as it is, is refused: %j',
    async (label) => {
      await expect(createApiKey(t.system.db, environmentId(), { label })).rejects.toThrow(
        /visible characters/,
      );
    },
  );

  test('rotating gives a second live key with the same label and scopes', async () => {
    const old = await createApiKey(t.system.db, environmentId(), { label: 'app', scopes: ['import'] });
    const fresh = await rotateApiKey(t.system.db, environmentId(), old.keyId);
    expect(fresh).toMatchObject({ label: 'app', scopes: ['import'], expiresAt: null });
    expect(await verify(old.key)).toMatchObject({ keyId: old.keyId });
    expect(await verify(fresh.key)).toMatchObject({ keyId: fresh.keyId, scopes: ['import'] });
  });

  test('rotating can give the old key an end, but never a longer life', async () => {
    const { db } = t.system;
    const soon = tomorrow();
    const old = await createApiKey(db, environmentId(), { label: 'app', expiresAt: soon });
    const later = new Date(soon.getTime() + 86_400_000);
    await rotateApiKey(db, environmentId(), old.keyId, { oldExpiresAt: later });
    const expiry = async () =>
      (await listApiKeys(db, environmentId())).find((each) => each.keyId === old.keyId)?.expiresAt;
    expect(await expiry()).toEqual(soon);
    const sooner = new Date(soon.getTime() - 3_600_000);
    await rotateApiKey(db, environmentId(), old.keyId, { oldExpiresAt: sooner });
    expect(await expiry()).toEqual(sooner);
  });

  test('a revoked key cannot be rotated', async () => {
    const { keyId } = await createApiKey(t.system.db, environmentId(), { label: 'gone' });
    await revokeApiKey(t.system.db, environmentId(), keyId);
    await expect(rotateApiKey(t.system.db, environmentId(), keyId)).rejects.toMatchObject({ status: 404 });
  });

  test("another environment's keys can be neither revoked nor rotated", async () => {
    const other = await t.addEnvironment('other');
    const keyId = t.key.split('_')[1] ?? '';
    const foreign = other.environment.environmentId;
    await expect(revokeApiKey(t.system.db, foreign, keyId)).rejects.toMatchObject({ status: 404 });
    await expect(rotateApiKey(t.system.db, foreign, keyId)).rejects.toMatchObject({ status: 404 });
    expect(await verify(t.key)).toHaveProperty('environment');
  });

  test('labels, scopes and expiries that make no sense are refused', async () => {
    const create = (extra: object) => createApiKey(t.system.db, environmentId(), { label: 'x', ...extra });
    for (const extra of [{ label: '' }, { label: 'a\nb' }, { label: 'a'.repeat(101) }, { scopes: [] }]) {
      await expect(create(extra)).rejects.toMatchObject({ status: 400 });
    }
    await expect(create({ expiresAt: new Date(0) })).rejects.toMatchObject({ status: 400 });
  });

  test('API_KEY opens the environment `default` with every scope, and nothing near it does', async () => {
    const staticKey = 'a key that has no blanks in it'.replaceAll(' ', '-');
    const caller = await verify(staticKey, staticKey);
    expect(caller).toEqual({ environment: t.environment, scopes, keyId: 'API_KEY' });
    expect(await verify(`${staticKey}x`, staticKey)).toHaveProperty('refused');
    expect(await verify(staticKey, null)).toEqual({ refused: 'malformed', keyId: null });
    expect(await verify(t.key, staticKey)).toHaveProperty('environment');
  });
});
