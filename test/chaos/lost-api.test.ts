import { describe, expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { expectExact, readLoad, report } from '../support/oracles/exactness.ts';
import {
  anyQueue,
  brakeAt,
  hold,
  onSite,
  queues,
  type Site,
  workingSession,
} from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** No chunk starts before the server is killed, so the speed of the machine does not matter. */
const file = createProfileFile({ rows: 20_000, seed: 4 });
const table = oracleOf(file);
const small = createProfileFile({ rows: 1_000, seed: 9 });
/**
 * Key of the lock in src/tasks/lane-store.ts. The session that holds it decides which load starts
 * next.
 */
const laneLock = 0x4c414e45;

describe.concurrent.each(queues)('with the queue on %s', (queue) => {
  test('a load whose server is killed before it notified the queue is completed', async () => {
    await onSite({ queue }, async (site) => {
      const release = await silenceQueue(site);
      const jobId = await acceptAndKill(site);
      await release();
      expect((await readLoad(site.sql, jobId)).status).toBe('processing');
      await expectDone(site, jobId, 'killed before telling the queue');
    });
  });

  // proves: load-survives
  test('a small load that a killed server was merging is completed exactly by a worker', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const api = await site.serve();
      const release = await brakeAt(site, small.loneKey(100));
      const jobId = await api.upload(small.bytes);
      await waitFor('the server to be in the middle of the merge', () =>
        workingSession(sql, 'chunk', "wait_event_type = 'Lock'"),
      );
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
  test('a small load is completed by its server although no worker lives and the queue is away', async () => {
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
  test('a load whose server is killed before the load was started is completed', async () => {
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
});

/** Blocks all messages to the queue. Returns a function that unblocks them. */
async function silenceQueue(site: Site): Promise<() => Promise<void>> {
  const { redis } = site;
  if (redis === null) return hold(site, 'lock table bullmq.job in access exclusive mode');
  await redis.kill();
  return () => redis.start();
}

/** Uploads a file, and kills the server while the server notifies the queue of the load. */
async function acceptAndKill(site: Site): Promise<string> {
  const api = await site.serve();
  const jobId = await api.upload(file.bytes);
  await waitFor('the dispatching to be under way', async () => {
    const waiting = await site.sql(blockedByTheTest);
    const { status } = await readLoad(site.sql, jobId);
    return waiting.length > 0 || (site.redis !== null && status === 'processing');
  });
  await api.process.kill('SIGKILL');
  // Ends the sessions of the killed server. Otherwise, PostgreSQL would complete their statements,
  // and thereby notify the queue.
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
