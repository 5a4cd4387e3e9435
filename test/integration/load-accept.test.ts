import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environment-store.ts';
import type { System } from '../../src/context.ts';
import { sweep } from '../../src/jobs/prune.ts';
import type { LoadContext } from '../../src/load/context.ts';
import { startLane } from '../../src/load/end.ts';
import { requireLoad } from '../../src/load/read-store.ts';
import { TemporaryCopies } from '../../src/load/receive/unpack.ts';
import { receivingStore } from '../../src/load/received.ts';
import {
  acceptFile,
  manualLoad,
  newEnvironment,
  nextEnvironmentName,
  runManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { closedGate } from '../support/servers/gate.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/servers/postgres-proxy.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();
let environmentId: number;
beforeAll(async () => {
  ({ environmentId } = await createEnvironment(t.system.db, nextEnvironmentName()));
});

const content = 'user_id,plan\na,free\n';

/**
 * Returns a context whose next transaction loses its connection, before or after the server
 * commits. With `away`, later connections also fail.
 */
function losingConnection(when: 'before' | 'after', away = false): LoadContext {
  const context = withoutQueue(t.system);
  const pool = Object.create(context.pool) as typeof context.pool;
  const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  let isLost = false;
  pool.connect = (async () => {
    if (isLost && away) throw lost;
    if (isLost) return context.pool.connect();
    const client = await context.pool.connect();
    const query = client.query.bind(client);
    client.query = (async (...args: Parameters<typeof query>) => {
      if ((args as unknown[])[0] !== 'commit') return query(...args);
      client.query = query;
      await query(when === 'after' ? 'commit' : 'rollback');
      isLost = true;
      throw lost;
    }) as unknown as typeof client.query;
    return client;
  }) as typeof pool.connect;
  return { ...context, pool };
}

test('an upload whose connection is lost after its commit is accepted, with its file', async () => {
  const jobId = await acceptFile(losingConnection('after'), environmentId, content);
  expect(await requireLoad(t.system, environmentId, jobId)).toMatchObject({ totalRows: 1, failure: null });
  expect(await t.storedFiles()).toHaveLength(1);
});

test('an upload with an unknown outcome keeps its file', async () => {
  const before = await t.storedFiles();
  const accepting = acceptFile(losingConnection('after', true), environmentId, content);
  await expect(accepting).rejects.toThrow('ECONNRESET');
  expect(await t.storedFiles()).toHaveLength(before.length + 1);
});

describe('a COMMIT on a breaking connection', () => {
  let proxy: PostgresProxy;
  let through: System;
  beforeAll(async () => {
    proxy = await startPostgresProxy(t.databaseUrl);
    through = t.openAnother({ databaseUrl: proxy.url });
  });
  afterAll(async () => {
    await through.close();
    await proxy.close();
  });
  let freshEnvironmentId: number;
  beforeEach(async () => {
    freshEnvironmentId = await newEnvironment(t.system);
  });
  const accept = (idempotencyKey: string) =>
    acceptFile(withoutQueue(through), freshEnvironmentId, content, { idempotencyKey });

  // proves: late-commit
  test('an upload whose COMMIT arrives a second after its connection broke is accepted, with its file', async () => {
    const before = await t.storedFiles();
    proxy.delayNextCommit(1_000);
    const jobId = await accept('late');
    expect(await accept('late'), 'the repeated request').toBe(jobId);
    expect(await t.storedFiles()).toHaveLength(before.length + 1);
    await startLane(withoutQueue(through), freshEnvironmentId);
    const load = await runManually(await manualLoad(t.system, freshEnvironmentId, jobId));
    expect(load).toMatchObject({ status: 'completed', failure: null, tally: { read: 1, inserted: 1 } });
  });

  // proves: late-commit
  test('an upload whose COMMIT never arrives is refused, its file is removed, and the repeated request is accepted', async () => {
    const before = await t.storedFiles();
    proxy.delayNextCommit(null);
    await expect(accept('never')).rejects.toThrow('Connection terminated');
    expect(await t.storedFiles()).toEqual(before);
    await accept('never');
    expect(await t.storedFiles()).toHaveLength(before.length + 1);
  });
});

/** Returns a context whose transactions wait at a gate, as in a killed or paused process. */
function pausedContext() {
  const gate = closedGate();
  const context = withoutQueue(t.system);
  const pool = Object.create(context.pool) as typeof context.pool;
  pool.connect = (async () => {
    await gate.pass();
    return context.pool.connect();
  }) as typeof pool.connect;
  return { ...gate, context: { ...context, pool } as LoadContext };
}

const receivedLongAgo = () =>
  sql`update received_files set received_at = now() - interval '61 minutes'`.execute(t.system.db);

test('the file of an upload that is killed before its acceptance is removed later, and then no load takes it', async () => {
  const before = await t.storedFiles();
  const paused = pausedContext();
  const accepting = acceptFile(paused.context, environmentId, content);
  await paused.arrived;
  expect(await sweep(t.system), 'too early').toBe(0);
  await receivedLongAgo();
  expect(await sweep(t.system)).toBe(1);
  expect(await t.storedFiles()).toEqual(before);
  paused.open();
  await expect(accepting).rejects.toThrow('waited too long');
  const jobs = await t.system.db
    .selectFrom('loads')
    .select('job_id')
    .where('file_ref', 'is not', null)
    .execute();
  expect(jobs).toHaveLength(before.length);
});

test('bytes set aside of an upload are not swept while they are read, and are removed at its end', async () => {
  const before = await t.storedFiles();
  const temporaryCopies = new TemporaryCopies(receivingStore(t.system), 10);
  async function* sent() {
    yield Buffer.from('kept aside');
  }
  const aside = await temporaryCopies.keep(sent());
  await receivedLongAgo();
  await waitFor('the file to be touched', async () => {
    const { rows } = await sql`
      select from received_files where received_at > now() - interval '1 minute'`.execute(t.system.db);
    return rows.length === 1;
  });
  expect(await sweep(t.system)).toBe(0);
  expect((await aside.read(5, 10)).toString()).toBe('aside');
  await temporaryCopies.removeAll();
  expect(await t.storedFiles()).toEqual(before);
});

test('an upload that finds the database away leaves no file', async () => {
  const before = await t.storedFiles();
  const away = new URL(t.databaseUrl);
  away.port = '1';
  const system = t.openAnother({ databaseUrl: away.href });
  await expect(acceptFile(withoutQueue(system), environmentId, content)).rejects.toThrow('ECONNREFUSED');
  await system.close();
  expect(await t.storedFiles()).toEqual(before);
});
