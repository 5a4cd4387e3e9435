import { describe, expect, test } from 'vitest';
import { digestUsers, expectExact, report } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { anyQueue, brakeAt, chunkOf, onSite, type Sql, workingSession } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const recoveryMs = 15_000;
const file = createProfileFile({ rows: 50_000, seed: 3 });
/** In one of the first chunks; who waits for its key holds all rows of the chunk with a lower one. */
const someRow = 6_500;

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: stale-worker
  test('a worker that is paused while it holds row locks loses its chunk within 15 s, and changes nothing when it wakes', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const release = await brakeAt(site, file.loneKey(someRow));
      const api = await site.serve();
      const jobId = await api.upload(file.bytes);
      // At `info` it says that it lost its task.
      const worker = await site.work({ LOG_LEVEL: 'info' });
      const session = await waitFor('the worker to wait for the test', () =>
        workingSession(sql, 'chunk', "wait_event_type = 'Lock'"),
      );
      // In a chunk's transaction, which is idle then and keeps its locks.
      worker.signal('SIGSTOP');
      const pausedAt = Date.now();
      await release();
      await waitFor('the session of the paused worker to idle in its transaction', () =>
        workingSession(sql, 'chunk', "state = 'idle in transaction'"),
      );
      const chunkNo = await chunkOf(sql, session);
      await site.workers(2);
      const load = await expectExact(sql, jobId, file, oracleOf(file));
      const [chunk] = await sql<{ done_at: Date; losses: number }>(
        'select done_at, losses from sluice.load_chunks where load_id = $1 and chunk_no = $2',
        [load.load_id, chunkNo],
      );
      const recovery = (chunk?.done_at.getTime() ?? Number.NaN) - pausedAt;
      report(
        `worker paused amid its rows, ${queue}: chunk done by another ${(recovery / 1000).toFixed(1)} s after the pause; load ${load.seconds.toFixed(1)} s`,
      );
      expect(chunk?.losses).toBe(1);
      const before = await snapshot(sql);
      worker.signal('SIGCONT');
      await worker.says(/a task is given back|another attempt owns the task/);
      expect(await snapshot(sql)).toEqual(before);
      expect(recovery).toBeLessThan(recoveryMs);
    });
  });
});

/** Everything that a late worker could have changed. */
async function snapshot(sql: Sql): Promise<unknown> {
  const [ledger] = await sql(
    `select max(xmin::text::bigint) as users, (select sum(xmin::text::bigint) from sluice.load_chunks) as chunks,
       (select sum(xmin::text::bigint) from sluice.loads) as loads
     from sluice.users`,
  );
  return { ledger, users: await digestUsers(sql) };
}
