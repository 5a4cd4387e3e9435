import { describe, expect, test } from 'vitest';
import { expectExact, progressed, readLoad, report, summary } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { type Api, onSite, queues, type Sql } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const first = createProfileFile({ rows: 36_000 });
const second = createProfileFile({ rows: 12_000, seed: 2 });
/** Well below what a caller would wait: an outage is told, not sat out. */
const refusedMs = 5_000;
const recoveryMs = 10_000;

describe.concurrent.each(queues)('with the queue on %s', (queue) => {
  // proves: load-survives
  test('loads are exact although Postgres is stopped the hard way three times; what was acknowledged is there', async () => {
    await onSite({ queue, privatePostgres: true }, async (site) => {
      const { sql, postgres } = site;
      if (postgres === null) throw new Error('the site has no Postgres of its own');
      const [api] = await Promise.all([site.serve(), site.workers(2)]);
      const jobId = await api.upload(first.bytes);
      await progressed(sql, jobId, 0.2);
      await postgres.stopImmediately();
      await expectRefused(api, jobId);
      await postgres.start();
      const resumed = [await untilResumed(sql)];

      await progressed(sql, jobId, 0.5);
      const laterJobId = await api.upload(second.bytes);
      await postgres.stopImmediately();
      await postgres.start();
      resumed.push(await untilResumed(sql));
      expect((await readLoad(sql, laterJobId)).total_rows).toBe(second.rows);

      await progressed(sql, jobId, 0.9);
      await postgres.stopImmediately();
      await postgres.start();
      const startedAt = performance.now();
      resumed.push(await untilResumed(sql));
      const later = await expectExact(sql, laterJobId, second, oracleOf(first, second), { fresh: false });
      const earlier = await readLoad(sql, jobId);
      expect(earlier).toMatchObject({ status: 'completed', read: first.rows, inserted: first.keys });
      report(
        `Postgres stopped three times, ${queue}: next chunk done ${summary(resumed)} after its start; both loads done ${seconds(startedAt)} s after the last start; loads ${earlier.seconds.toFixed(1)} s and ${later.seconds.toFixed(1)} s`,
      );
      expect(Math.max(...resumed)).toBeLessThan(recoveryMs);
    });
  });
});

/** Milliseconds until a chunk gets done. */
async function untilResumed(sql: Sql): Promise<number> {
  const startedAt = new Date();
  const [chunk] = await waitFor('a chunk to be done after the restart', async () => {
    const rows = await sql<{ done_at: Date }>(
      'select min(done_at) as done_at from sluice.load_chunks where done_at > $1 having count(*) > 0',
      [startedAt],
    );
    return rows.length === 0 ? null : rows;
  });
  if (chunk === undefined) throw new Error('no chunk');
  return chunk.done_at.getTime() - startedAt.getTime();
}

async function expectRefused(api: Api, jobId: string): Promise<void> {
  const requests = [
    () => api.fetch(`/v1/background_jobs/${jobId}`),
    () => api.fetch('/v1/background_jobs'),
    () =>
      api.fetch('/v1/imports', {
        method: 'POST',
        body: new Uint8Array(second.bytes),
        headers: { 'content-type': 'text/csv' },
      }),
  ];
  for (const request of requests) {
    const sentAt = performance.now();
    const response = await request();
    expect(await response.json()).toMatchObject({ errors: [{ error_code: 'unavailable' }] });
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(performance.now() - sentAt).toBeLessThan(refusedMs);
  }
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}
