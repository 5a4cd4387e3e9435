import { describe, expect, test } from 'vitest';
import { digestUsers, ended, expectExact, progressed, report } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { anyQueue, onSite, type Sql, workingSession } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 60_000, seed: 8 });
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
