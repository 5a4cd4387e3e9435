import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { ensureFirstKey } from '../../src/access/acts.ts';
import { createEnvironment, listEnvironments } from '../../src/access/environment-store.ts';
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from '../../src/access/key-store.ts';
import { verifyKey } from '../../src/access/verify-key.ts';
import { scopes } from '../../src/domain/caller.ts';
import { Acts } from '../../src/postgres/acts.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

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
  test('of eight processes that start at once on a fresh database, exactly one gets the first key', async () => {
    const database = await createTestDatabase();
    const pool = createPool({ url: database.url, max: 8, applicationName: 'test' });
    const db = createDatabase(pool);
    const actions: string[] = [];
    const acts = new Acts([
      {
        acted: async (_, __, { action }) => void actions.push(action),
        refused: () => undefined,
        close: async () => undefined,
      },
    ]);
    const start = () => ensureFirstKey({ db, acts });
    const keys = await Promise.all(Array.from({ length: 8 }, start));
    expect(keys.filter((key) => key !== null)).toHaveLength(1);
    expect(await start()).toBeNull();
    expect(actions).toEqual(['environment.created', 'key.created']);
    const [environment, ...others] = await listEnvironments(db);
    expect([environment?.name, others]).toEqual(['default', []]);
    expect(await listApiKeys(db, environment?.environmentId ?? 0)).toHaveLength(1);
    await pool.end();
    await database.drop();
  });

  test.each(['', 'Default', 'a b', '-a', 'a'.repeat(64), 'é'])(
    'an environment with the name %j is refused',
    async (name) => {
      await expect(createEnvironment(t.system.db, name)).rejects.toMatchObject({ status: 400 });
    },
  );
});

describe('keys', () => {
  const environmentId = () => t.environment.environmentId;

  test('neither the table nor the list of keys has the secret of a key', async () => {
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
    'an unreadable label of a key is refused: %j',
    async (label) => {
      await expect(createApiKey(t.system.db, environmentId(), { label })).rejects.toThrow(
        /visible characters/,
      );
    },
  );

  test('rotation creates a second live key with the same label and scopes', async () => {
    const old = await createApiKey(t.system.db, environmentId(), { label: 'app', scopes: ['import'] });
    const fresh = await rotateApiKey(t.system.db, environmentId(), old.keyId);
    expect(fresh).toMatchObject({ label: 'app', scopes: ['import'], expiresAt: null });
    expect(await verify(old.key)).toMatchObject({ keyId: old.keyId });
    expect(await verify(fresh.key)).toMatchObject({ keyId: fresh.keyId, scopes: ['import'] });
  });

  test('rotation can shorten the life of the old key, but not extend it', async () => {
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

  test('keys of another environment can be neither revoked nor rotated', async () => {
    const other = await t.addEnvironment('other');
    const keyId = t.key.split('_')[1] ?? '';
    const foreign = other.environment.environmentId;
    await expect(revokeApiKey(t.system.db, foreign, keyId)).rejects.toMatchObject({ status: 404 });
    await expect(rotateApiKey(t.system.db, foreign, keyId)).rejects.toMatchObject({ status: 404 });
    expect(await verify(t.key)).toHaveProperty('environment');
  });

  test('a key with an invalid label, scope or expiry is refused', async () => {
    const create = (extra: object) => createApiKey(t.system.db, environmentId(), { label: 'x', ...extra });
    for (const extra of [{ label: '' }, { label: 'a\nb' }, { label: 'a'.repeat(101) }, { scopes: [] }]) {
      await expect(create(extra)).rejects.toMatchObject({ status: 400 });
    }
    await expect(create({ expiresAt: new Date(0) })).rejects.toMatchObject({ status: 400 });
  });
});
