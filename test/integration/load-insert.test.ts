import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { cancelLoad } from '../../src/load/end.ts';
import { KeyHash } from '../../src/load/map/key-table.ts';
import { retryLoad } from '../../src/load/retry.ts';
import { collidingTexts } from '../support/files/colliding-hashes.ts';
import {
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

const header = 'user_id,company_id,plan';
const csv = (...lines: readonly string[]): string => `${[header, ...lines].join('\n')}\n`;

describe('a load into an environment without users', () => {
  test('a first load inserts until it meets a known key, then merges, and writes nothing twice', async () => {
    const environment = await newEnvironment(t.system);
    const load = await startManually(
      t.system,
      environment,
      csv('a,acme,free', 'b,,pro', 'a,zeta,', 'c,acme,pro'),
      { chunkBytes: 1 },
    );
    const memory = t.system.memory.of(load.loadId);
    await load.chunk(0);
    expect(memory.users).toBe('new');
    await load.chunk(1);
    expect(memory.users).toBe('new');
    await load.chunk(2);
    expect(memory.users).toBe('known');
    await load.chunk(3);
    const ended = await load.finish();
    expect(ended.status).toBe('completed');
    expect(ended.tally).toEqual({
      read: 4,
      inserted: 3,
      updated: 0,
      unchanged: 0,
      removed: 0,
      superseded: 1,
      rejected: 0,
    });
    expect(await readProfiles(t.system, environment)).toEqual({
      users: {
        a: { company: 'zeta', metadata: { plan: 'free' } },
        b: { company: null, metadata: { plan: 'pro' } },
        c: { company: 'acme', metadata: { plan: 'pro' } },
      },
      companies: { acme: { metadata: {} }, zeta: { metadata: {} } },
    });
  });

  test('a first load creates the companies of a chunk whose commit failed', async () => {
    const environment = await newEnvironment(t.system);
    const load = await startManually(t.system, environment, csv('a,acme,free', 'b,acme,free'), {
      chunkBytes: 1,
    });
    await t.system.pool.query(`
      create function fail_commit() returns trigger language plpgsql as $$
      begin
        raise exception using errcode = 'object_not_in_prerequisite_state';
      end $$`);
    await t.system.pool.query(`
      create constraint trigger fail_commit after insert on users deferrable initially deferred
      for each row execute function fail_commit()`);
    try {
      await load.chunk(0);
      expect(await readProfiles(t.system, environment)).toEqual({ users: {}, companies: {} });
    } finally {
      await t.system.pool.query('drop trigger fail_commit on users');
    }
    await load.chunk(1);
    expect(await readProfiles(t.system, environment)).toMatchObject({ companies: { acme: {} } });
  });

  test('a first load that is retried creates the companies that were removed since', async () => {
    const environment = await newEnvironment(t.system);
    const load = await startManually(t.system, environment, csv('a,acme,free', 'b,acme,free'), {
      chunkBytes: 1,
    });
    await load.chunk(0);
    await cancelLoad(withoutQueue(t.system), environment, load.jobId);
    await t.system.pool.query('delete from companies where environment_id = $1', [environment]);
    await retryLoad(withoutQueue(t.system), environment, load.jobId);
    await load.chunk(1);
    expect(await readProfiles(t.system, environment)).toMatchObject({
      users: { b: { company: 'acme' } },
      companies: { acme: {} },
    });
  });
});

test('ids whose stored hashes are equal are stored like any others, in any order of chunks', async () => {
  const [a = '', b = '', c = ''] = collidingTexts(3);
  const { rows } = await sql`
    select distinct hashtextextended(id, 0)::text from unnest(${[a, b, c]}::text[]) id`.execute(t.system.db);
  expect(rows).toHaveLength(1);
  const line = (id: string, x: number) => `${JSON.stringify({ user_id: id, metadata: { x } })}\n`;
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [2, 0, 3, 1],
    [1, 3, 0, 2],
  ]) {
    const environment = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environment, line(a, 1)));
    const file = line(a, 2) + line(b, 1) + line(a, 1) + line(c, 1);
    const load = await startManually(t.system, environment, file, { chunkBytes: 1 });
    expect(await runManually(load, order)).toMatchObject({ status: 'completed', tally: { read: 4 } });
    const { users } = await readProfiles(t.system, environment);
    const one = { company: null, metadata: { x: 1 } };
    expect(users, `order ${order}`).toEqual({ [a]: one, [b]: one, [c]: one });
  }
});

test('the hash of a key is the hash that the server computes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 60 }), async (key) => {
      fc.pre(!key.includes('\0') && key.isWellFormed());
      const bytes = Buffer.from(key);
      const hash = new KeyHash();
      hash.update(bytes, 0, bytes.length);
      const ours = BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low >>> 0));
      const { rows } = await sql<{ theirs: string }>`
        select hashtextextended(${key}::text collate "C", 0)::text as theirs`.execute(t.system.db);
      expect(String(ours)).toBe(rows[0]?.theirs);
    }),
    { numRuns: runs(300) },
  );
});
