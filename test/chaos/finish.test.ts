import { describe, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { expectExact, readLoad, report } from '../support/oracles/exactness.ts';
import { anyQueue, hold, holdChunk, onSite, workingSession } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 50_000, seed: 6 });
const table = oracleOf(file);

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: load-survives
  test('a load is exact although its first chunk came last, and kill -9 hit its replay and its completion', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const api = await site.serve();
      const jobId = await api.upload(file.bytes);
      const release = await holdChunk(site, jobId, 0);
      await site.workers(2);
      const { load_id } = await waitFor('all chunks but the first to be done', async () => {
        const load = await readLoad(sql, jobId);
        return load.chunks_done === load.chunk_count - 1 ? load : null;
      });
      await release();
      await waitFor('the replay to be under way', () => workingSession(sql, 'finish'), { everyMs: 1 });
      await site.killWorkers();
      await site.expireLeases();

      // The transaction that completes the load deletes these rows at its end. It now waits there,
      // because the test has locked the rows.
      const hindrance = await hold(site, 'select from sluice.load_chunk_keys where load_id = $1 for update', [
        load_id,
      ]);
      await site.workers(2);
      await waitFor('the completion to be under way', () =>
        workingSession(sql, 'finish', "wait_event_type = 'Lock'"),
      );
      await site.killWorkers();
      await hindrance();
      await site.expireLeases();

      await site.workers(2);
      const load = await expectExact(sql, jobId, file, table);
      report(`killed in replay and in completion, ${queue}: load ${load.seconds.toFixed(1)} s`);
    });
  });
});
