import { describe, expect, test } from 'vitest';
import { createProfileFile, oracleOf, type ProfileFile } from '../support/files/profile-file.ts';
import { ended, expectExact, readLoad } from '../support/oracles/exactness.ts';
import type { SluiceProcess } from '../support/servers/processes.ts';
import { type ChunkAttempt, defeatFence, forgetReplays } from '../support/servers/safeguards.ts';
import { anyQueue, holdChunk, onSite, type Site, workingSession } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Each test turns off one safeguard, causes a fault, and proves that the usual check then fails.
 * With the safeguard, the same fault must do no harm. The first test below proves this for the
 * fence, finish.test.ts for the replay, and lost-api.test.ts for the reconciler.
 */
const file = createProfileFile({ rows: 30_000, seed: 7 });
const table = oracleOf(file);

/**
 * Tests of the check itself. These tests prove no promise, so only `npm run test:all` runs them.
 */
const testOfCheck = test.skipIf(process.env['SLUICE_TEST_SHORT'] === '1');

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: stale-worker
  test('a worker that wakes late behind the fence changes nothing', async () => {
    await onSite({ queue, settings: { CHUNK_BYTES: '512k' } }, async (site) => {
      const { jobId, late } = await wakeLate(site, file);
      await expectExact(site.sql, jobId, file, table);
      // The owner of the chunk has already stored the same rejects. For the late worker, this is
      // not an error.
      expect(late.output).not.toContain('a task failed');
    });
  });

  testOfCheck(
    'without the fence a worker that wakes late is noticed: its chunk counts twice and the load fails',
    async () => {
      await onSite({ queue, settings: { CHUNK_BYTES: '512k' } }, async (site) => {
        // The file has no rejects. Otherwise, both attempts would store rejects with the same row
        // numbers. The second attempt would fail on that conflict even without a fence, and the
        // test would prove nothing.
        const allValid = createProfileFile({ rows: 30_000, allValid: true });
        const { jobId } = await wakeLate(site, allValid, (chunk) => defeatFence(site.sql, chunk));
        const load = await ended(site.sql, jobId);
        expect(load).toMatchObject({
          status: 'failed',
          failure: expect.stringMatching(/does not balance|loads_chunks_done_check/),
        });
      });
    },
  );

  testOfCheck(
    'without the replay a first chunk that came last is noticed: older values replace newer ones',
    async () => {
      await onSite({ queue }, async (site) => {
        const api = await site.serve();
        const jobId = await api.upload(file.bytes);
        const release = await holdChunk(site, jobId, 0);
        await forgetReplays(site.sql);
        await site.work();
        const areOthersDone = async (): Promise<boolean> => {
          const load = await readLoad(site.sql, jobId);
          return load.chunks_done === load.chunk_count - 1;
        };
        await waitFor('all chunks but the first to be done', areOthersDone);
        await release();
        await expect(expectExact(site.sql, jobId, file, table)).rejects.toThrow(
          'differs from the serial oracle',
        );
      });
    },
  );
});

/**
 * Pauses a worker that has claimed a chunk. Another worker merges this chunk and all others except
 * the last, which the test blocks. Then wakes the paused worker and releases the last chunk.
 */
async function wakeLate(
  site: Site,
  { bytes }: ProfileFile,
  beforeWaking: (chunk: ChunkAttempt) => Promise<void> = async () => undefined,
): Promise<{ readonly jobId: string; readonly late: SluiceProcess }> {
  const { sql } = site;
  const api = await site.serve();
  const jobId = await api.upload(bytes);
  const { load_id, chunk_count } = await readLoad(sql, jobId);
  const release = await holdChunk(site, jobId, chunk_count - 1);
  const late = await site.work({ LOG_LEVEL: 'debug' });
  const chunk = await pauseAfterClaim(site, late, load_id);
  await site.expireLeases();
  await site.work();
  await waitFor('another to do the chunk of the paused worker and all but the last', async () => {
    const load = await readLoad(sql, jobId);
    return load.chunks_done === chunk_count - 1;
  });
  await beforeWaking(chunk);
  late.signal('SIGCONT');
  await waitFor(`the late worker to come to the end of chunk ${chunk.chunkNo}`, async () => {
    const { chunks_done } = await readLoad(sql, jobId);
    return chunks_done === chunk_count || /another attempt owns the task|a task failed/.test(late.output);
  }).catch((error: unknown) => {
    throw new Error(`the late worker said\n${late.output}`, { cause: error });
  });
  await release();
  return { jobId, late };
}

/**
 * Stops a worker between its claim and its transaction, while it reads and parses its chunk.
 * Reading and parsing take long enough for a poll to occur in that time.
 */
async function pauseAfterClaim(site: Site, worker: SluiceProcess, loadId: number): Promise<ChunkAttempt> {
  const { sql } = site;
  return waitFor(
    'a worker to be met between claim and transaction',
    async () => {
      const [chunk] = await sql<ChunkAttempt>(
        `select task_id as "taskId", subject_id as "loadId", part as "chunkNo", attempt
         from sluice.tasks where kind = 'chunk' and subject_id = $1 and lease_until is not null`,
        [loadId],
      );
      if (chunk === undefined) return null;
      worker.signal('SIGSTOP');
      if ((await workingSession(sql, 'chunk')) === null) return chunk;
      worker.signal('SIGCONT');
      return null;
    },
    { everyMs: 1 },
  );
}
