import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { prune } from '../../src/background-jobs/prune.ts';
import { readConfig } from '../../src/config.ts';
import { ABANDONED_FILE_MS } from '../../src/domain/limits.ts';
import { openSystem } from '../../src/open-system.ts';
import { expectExact, readLoad, report } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import {
  type Api,
  anyQueue,
  brakeAt,
  hold,
  onSite,
  queues,
  type Site,
  workingSession,
} from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** None of its chunks begins before the server is lost: nothing here depends on how long it takes. */
const file = createProfileFile({ rows: 20_000, seed: 4 });
const table = oracleOf(file);
const small = createProfileFile({ rows: 1_000, seed: 9 });
/** As in src/postgres/stores/lanes.ts: who holds it decides which load starts. */
const laneLock = 0x4c414e45;

describe.concurrent.each(queues)('with the queue on %s', (queue) => {
  test('a load whose server is killed after the start and before the queue was told is done all the same', async () => {
    await onSite({ queue }, async (site) => {
      const release = await silenceQueue(site);
      const jobId = await acceptAndKill(site);
      await release();
      expect((await readLoad(site.sql, jobId)).status).toBe('processing');
      await expectDone(site, jobId, 'killed before telling the queue');
    });
  });

  // proves: load-survives
  test('a small load that the server was merging itself when it was killed is done by a worker, nothing lost or doubled', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const api = await site.serve();
      const release = await brakeAt(site, small.loneKey(100));
      const jobId = await api.upload(small.bytes);
      await waitFor('the server to be in the middle of the merge', () =>
        workingSession(sql, 'chunk', "wait_event_type = 'Lock'"),
      );
      // There is no worker.
      expect(await sql('select from sluice.workers')).toEqual([]);
      await api.process.kill('SIGKILL');
      await release();
      await site.expireLeases();
      await site.workers(1);
      const { load_id } = await expectExact(sql, jobId, small, oracleOf(small));
      expect(await sql('select losses from sluice.load_chunks where load_id = $1', [load_id])).toEqual([
        { losses: 1 },
      ]);
    });
  });

  // proves: load-survives
  test('a small load that the server has to itself is completed although no worker lives and the queue is away', async () => {
    await onSite({ queue }, async (site) => {
      const api = await site.serve();
      const release = await silenceQueue(site);
      const jobId = await api.upload(small.bytes);
      await expectExact(site.sql, jobId, small, oracleOf(small));
      await release();
    });
  });
});

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: load-survives
  test('a load whose server is killed after the answer and before the load was started is done all the same', async () => {
    await onSite({ queue }, async (site) => {
      const release = await hold(site, 'select pg_advisory_xact_lock($1, $2)', [
        laneLock,
        site.environmentId,
      ]);
      const jobId = await acceptAndKill(site);
      await release();
      expect((await readLoad(site.sql, jobId)).status).toBe('queued');
      await expectDone(site, jobId, 'killed before the start');
    });
  });

  // proves: inspection
  test('a server that is killed in the middle of an inspection leaves nothing behind: while the file comes, before it is kept, and while it is looked at', async () => {
    await onSite({ queue }, async (site) => {
      const headers = { 'content-type': 'text/csv' };
      const inspect = (api: Api, body: RequestInit['body'], query = '') =>
        api.fetch(`/v1/imports/inspect${query}`, {
          method: 'POST',
          body,
          headers,
          duplex: 'half',
        } as RequestInit);
      const lost = (answer: Promise<Response>) =>
        answer.then(
          () => 'answered',
          () => 'lost',
        );

      const first = await site.serve();
      const coming = lost(inspect(first, neverWhole(small.bytes)));
      await waitFor('some of the file to be stored', async () => (await storedFiles(site)).length > 0);
      await killWithSessions(site, first);
      expect(await coming).toBe('lost');

      const second = await site.serve();
      const releaseUploads = await hold(site, 'lock table sluice.uploads in share mode');
      const stored = lost(inspect(second, new Uint8Array(small.bytes)));
      await killBlocked(site, second);
      expect(await stored).toBe('lost');
      await releaseUploads();

      const third = await site.serve();
      const kept = (await (await inspect(third, new Uint8Array(small.bytes))).json()) as {
        upload_id: string;
      };
      const releaseReceived = await hold(site, 'lock table sluice.received_files in share mode');
      const again = lost(inspect(third, '', `?upload_id=${kept.upload_id}`));
      await killBlocked(site, third);
      expect(await again).toBe('lost');
      await releaseReceived();

      expect(await site.sql('select upload_id from sluice.uploads')).toEqual([{ upload_id: kept.upload_id }]);
      expect(await site.sql('select from sluice.loads')).toEqual([]);
      await pruneLater(site);
      expect(await storedFiles(site)).toEqual([]);
      expect(await site.sql('select from sluice.uploads')).toEqual([]);
      expect(await site.sql('select from sluice.received_files')).toEqual([]);
    });
  });
});

/** A body of which the end never comes. */
function neverWhole(bytes: Buffer): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(new Uint8Array(bytes)),
  });
}

async function storedFiles({ dataDir }: Site): Promise<string[]> {
  const found = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** kill -9, once a session of it waits for the test. */
async function killBlocked(site: Site, api: Api): Promise<void> {
  await waitFor('a session to wait', async () => (await site.sql(blockedByTheTest)).length > 0);
  await killWithSessions(site, api);
}

/** What its sessions had under way ends with it, and not after it. */
async function killWithSessions(site: Site, api: Api): Promise<void> {
  await api.process.kill('SIGKILL');
  await site.sql(`select pg_terminate_backend(pid) from (${blockedByTheTest}) blocked`);
  await waitFor('its sessions to end', async () => (await site.sql(blockedByTheTest)).length === 0);
}

/** What is removed once all that there is has grown old. */
async function pruneLater(site: Site): Promise<void> {
  const old = new Date(Date.now() - 2 * ABANDONED_FILE_MS);
  for (const path of await storedFiles(site)) await utimes(path, old, old);
  await site.sql('update sluice.received_files set received_at = $1', [old]);
  await site.sql('update sluice.uploads set expires_at = $1', [old]);
  const config = readConfig({ DATABASE_URL: site.databaseUrl, DATA_DIR: site.dataDir });
  const log = pino({ level: 'silent' });
  const system = openSystem({ config, databaseUrl: site.databaseUrl, log, role: 'work', poolSize: 2 });
  await prune(system);
  await system.close();
}

/** No ring gets through until released. */
async function silenceQueue(site: Site): Promise<() => Promise<void>> {
  const { redis } = site;
  if (redis === null) return hold(site, 'lock table bullmq.job in access exclusive mode');
  await redis.kill();
  return () => redis.start();
}

/** kill -9 while the server dispatches what it has just acknowledged. */
async function acceptAndKill(site: Site): Promise<string> {
  const api = await site.serve();
  const jobId = await api.upload(file.bytes);
  await waitFor('the dispatching to be under way', async () => {
    const waiting = await site.sql(blockedByTheTest);
    const { status } = await readLoad(site.sql, jobId);
    return waiting.length > 0 || (site.redis !== null && status === 'processing');
  });
  await api.process.kill('SIGKILL');
  // The server's session would otherwise end its statement after its process is gone, and ring after all.
  await site.sql(`select pg_terminate_backend(pid) from (${blockedByTheTest}) blocked`);
  await waitFor('its sessions to end', async () => (await site.sql(blockedByTheTest)).length === 0);
  return jobId;
}

const blockedByTheTest = `
  select pid from pg_stat_activity
  where datname = current_database() and exists (
    select from pg_stat_activity test
    where test.application_name = 'test brake' and test.pid = any (pg_blocking_pids(pg_stat_activity.pid))
  )`;

async function expectDone(site: Site, jobId: string, how: string): Promise<void> {
  const startedAt = performance.now();
  await site.workers(2);
  const load = await expectExact(site.sql, jobId, file, table);
  report(
    `API ${how}, ${site.queue}: load done ${((performance.now() - startedAt) / 1000).toFixed(1)} s after the workers came (${load.seconds.toFixed(1)} s in all)`,
  );
}
