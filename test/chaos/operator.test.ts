import { describe, expect, test } from 'vitest';
import { MAX_CHUNK_LOSSES } from '../../src/domain/limits.ts';
import { digestUsers, ended, expectExact, progressed, report } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { anyQueue, brakeAt, chunkOf, onSite, queues, type Sql, workingSession } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 36_000, seed: 8 });
const table = oracleOf(file);

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  test('a load that is cancelled under full work changes nothing after the answer, and is exact when it is tried again', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const [api] = await Promise.all([site.serve(), site.workers(3)]);
      const jobId = await api.upload(file.bytes);
      await progressed(sql, jobId, 0.3);
      expect(await api.post(`/v1/background_jobs/${jobId}/cancel`)).toBe(202);
      const atAnswer = await state(sql, jobId);
      await waitFor('the chunks under way to end', async () => (await workingSession(sql, 'chunk')) === null);
      expect(await state(sql, jobId)).toEqual(atAnswer);
      const load = await ended(sql, jobId);
      expect(load.status).toBe('cancelled');
      expect(load.chunks_done).toBeLessThan(load.chunk_count);
      const [late] = await sql<{ count: number }>(
        `select count(*) from sluice.load_chunks c join sluice.loads l using (load_id)
         where job_id = $1 and done_at > ended_at`,
        [jobId],
      );
      expect(late).toEqual({ count: 0 });

      expect(await api.post(`/v1/background_jobs/${jobId}/retry`)).toBe(202);
      const again = await expectExact(sql, jobId, file, table);
      report(
        `cancelled at ${load.chunks_done} of ${load.chunk_count} chunks and retried, ${queue}: ${again.seconds.toFixed(1)} s in all`,
      );
    });
  });
});

describe.concurrent.each(queues)('with the queue on %s', (queue) => {
  test('a worker that is asked to stop in the middle of a load gives nothing up for lost', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const [api, workers] = await Promise.all([site.serve(), site.workers(3)]);
      const jobId = await api.upload(file.bytes);
      const took: number[] = [];
      for (const [index, share] of [0.2, 0.4].entries()) {
        await progressed(sql, jobId, share);
        const askedAt = performance.now();
        await workers[index]?.kill('SIGTERM');
        took.push(performance.now() - askedAt);
        expect(workers[index]?.ending).toBe('exit code 0');
      }
      const load = await expectExact(sql, jobId, file, table);
      const [spent] = await sql(
        'select sum(losses)::int as losses, max(attempts) as attempts from sluice.load_chunks',
      );
      // One attempt each: nothing failed either.
      expect(spent).toEqual({ losses: 0, attempts: 1 });
      report(
        `workers asked to stop, ${queue}: gone after ${took.map((ms) => ms.toFixed(0)).join(' and ')} ms; load ${load.seconds.toFixed(1)} s`,
      );
    });
  });
});

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  test('a chunk that kills every worker fails its load with the reason, and the load is exact once the cause is gone', async () => {
    const small = createProfileFile({ rows: 10_000, seed: 9 });
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const api = await site.serve();
      const release = await brakeAt(site, small.loneKey(2_500));
      const jobId = await api.upload(small.bytes);
      // As if it had killed its workers all day; the last three the test kills itself, whenever one comes to it.
      const deaths = 3;
      await waitFor('the chunks', async () => {
        const rows = await sql(
          "update sluice.tasks set losses = $1 where kind = 'chunk' and part = 1 returning 1",
          [MAX_CHUNK_LOSSES - deaths],
        );
        return rows.length > 0;
      });
      for (let death = 0; death < deaths; death++) {
        await site.work();
        const session = await waitFor('a worker to come to the chunk', () =>
          workingSession(sql, 'chunk', "wait_event_type = 'Lock'"),
        );
        expect(await chunkOf(sql, session)).toBe(1);
        await site.killWorkers();
        await site.expireLeases();
        await waitFor('its session to end', async () => {
          await sql(
            'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and datname = current_database()',
            [session],
          );
          return (await workingSession(sql, 'chunk')) === null;
        });
      }
      await site.work();
      const failed = await ended(sql, jobId);
      expect(failed).toMatchObject({
        status: 'failed',
        failure: expect.stringContaining(`chunk 1 lost its worker ${MAX_CHUNK_LOSSES} times`),
      });
      await release();
      expect(await api.post(`/v1/background_jobs/${jobId}/retry`)).toBe(202);
      await expectExact(sql, jobId, small, oracleOf(small));
    });
  });
});

/** All that a chunk could change. */
async function state(sql: Sql, jobId: string): Promise<unknown> {
  const ledger = await sql(
    `select status, ended_at, chunks_done, rows_read, rows_inserted, rows_superseded, rows_rejected,
       (select count(*) from sluice.load_rejects) as rejects
     from sluice.loads where job_id = $1`,
    [jobId],
  );
  return { ledger, users: await digestUsers(sql) };
}
