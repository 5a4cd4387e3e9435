import { describe, expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { expectExact, progressed, report, summary } from '../support/oracles/exactness.ts';
import { oneQueue, onSite, type Sql } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Maximum milliseconds until the lost chunks are completed. The time starts when new workers have
 * started, because the last kill leaves no workers.
 */
const recoveryMs = 15_000;

/** `running` contains the running chunks, with the ends of their leases. */
interface Kill {
  readonly at: number;
  readonly running: ReadonlyMap<string, number>;
}

/**
 * How much of the load is done when workers are killed. Each kill ends one worker, except for the
 * last kill, which ends all workers.
 */
const kills = [0.1, 0.5];

describe.concurrent.each(oneQueue('postgres'))('with the queue on %s', (queue) => {
  // proves: load-survives
  test('a load is exact although its workers are killed repeatedly, and their chunks are completed within 15 s', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const [api, workers] = await Promise.all([site.serve(), site.workers(2)]);
      const file = createProfileFile({ rows: 60_000 });
      const jobId = await api.upload(file.bytes);
      const observed: Kill[] = [];
      let startMs = 0;
      for (const [index, share] of kills.entries()) {
        await progressed(sql, jobId, share);
        // Workers may already have completed the last chunk.
        const isUnderWay = async (): Promise<boolean> =>
          (await runningChunks(sql, jobId)).size > 0 || (await hasNoTasks(sql, jobId));
        await waitFor('a chunk to be under way', isUnderWay, { everyMs: 1 });
        const at = Date.now();
        const victims = workers.splice(0, index === kills.length - 1 ? workers.length : 1);
        await Promise.all(victims.map((worker) => worker.kill('SIGKILL')));
        observed.push({ at, running: await runningChunks(sql, jobId) });
        workers.push(...(await site.workers(victims.length)));
        startMs = Date.now() - at;
      }
      const load = await expectExact(sql, jobId, file, oracleOf(file));
      const recoveries = await measureRecoveries(sql, jobId, observed);
      expect(recoveries.length, 'chunks that lost their worker').toBeGreaterThan(0);
      report(
        `killed workers, ${queue}: ${kills.length} kills, ${recoveries.length} chunks lost, done after ${summary(recoveries)}; load ${load.seconds.toFixed(1)} s`,
      );
      expect(Math.max(...recoveries)).toBeLessThan(recoveryMs + startMs);
    });
  });
});

async function runningChunks(sql: Sql, jobId: string): Promise<Map<string, number>> {
  const rows = await sql<{ chunk_no: number; losses: number; lease_until: Date }>(
    `select part as chunk_no, losses, lease_until from sluice.tasks
     where job_id = $1 and kind = 'chunk' and lease_until is not null`,
    [jobId],
  );
  return new Map(rows.map((row) => [loss(row.chunk_no, row.losses), row.lease_until.getTime()]));
}

async function hasNoTasks(sql: Sql, jobId: string): Promise<boolean> {
  return (await sql('select 1 from sluice.tasks where job_id = $1', [jobId])).length === 0;
}

function loss(chunkNo: number, lossesBefore: number): string {
  return `${chunkNo}:${lossesBefore}`;
}

/**
 * For each lost chunk, returns the milliseconds from the kill of its worker to the completion of
 * the chunk. If its worker may have died in one of several kills, assumes the first kill after
 * which the lease was not renewed. Assuming an earlier kill only makes the result larger.
 */
async function measureRecoveries(sql: Sql, jobId: string, kills: readonly Kill[]): Promise<number[]> {
  const lost = await sql<{ chunk_no: number; losses: number; done_at: Date }>(
    `select chunk_no, losses, done_at from sluice.load_chunks join sluice.loads using (load_id)
     where job_id = $1 and losses > 0`,
    [jobId],
  );
  return lost.map(({ chunk_no, losses, done_at }) => {
    const name = loss(chunk_no, losses - 1);
    const lastLease = kills.findLast(({ running }) => running.has(name))?.running.get(name);
    const kill = kills.find(({ running }) => lastLease !== undefined && running.get(name) === lastLease);
    if (kill === undefined) throw new Error(`chunk ${chunk_no} was lost ${losses} times, at no kill`);
    return done_at.getTime() - kill.at;
  });
}
