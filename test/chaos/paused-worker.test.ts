import { describe, expect, test } from 'vitest';
import { digestUsers, expectExact, readLoad, report } from '../support/exactness.ts';
import type { SluiceProcess } from '../support/processes.ts';
import { createProfileFile, oracleOf, type ProfileFile } from '../support/profile-file.ts';
import {
  anyQueue,
  brakeAt,
  chunkOf,
  hold,
  onSite,
  type Site,
  type Sql,
  workingSession,
} from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const recoveryMs = 15_000;
const file = createProfileFile({ rows: 50_000, seed: 3 });
const small = createProfileFile({ rows: 30_000, seed: 3 });
/** In one of the first chunks; who waits for its key holds all rows of the chunk with a lower one. */
const someRow = 6_500;

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: stale-worker
  test('a worker that is paused while it holds row locks loses its chunk within 15 s, and changes nothing when it wakes', async () => {
    await onSite({ queue }, async (site) => {
      const brake = await brakeAt(site, file.loneKey(someRow));
      const paused = await pauseInTransaction(site, file, brake);
      await expectExactWithout(site, paused, 'paused amid its rows');
    });
  });

  test('a worker that is paused between the end of its chunk and the commit holds nobody up for more than 15 s', async () => {
    await onSite({ queue }, async (site) => {
      // The row of the load is the last thing a chunk writes, and all other workers need it, too.
      const paused = await pauseInTransaction(site, small, null);
      await expectExactWithout(site, paused, 'paused before its commit');
    });
  });
});

interface Paused {
  readonly worker: SluiceProcess;
  readonly jobId: string;
  readonly file: ProfileFile;
  readonly chunkNo: number;
  readonly at: number;
}

/** One worker alone, stopped by SIGSTOP in a chunk's transaction, which is idle then and keeps its locks. */
async function pauseInTransaction(
  site: Site,
  file: ProfileFile,
  brake: (() => Promise<void>) | null,
): Promise<Paused> {
  const { sql } = site;
  const api = await site.serve();
  const jobId = await api.upload(file.bytes);
  const { load_id } = await waitFor('the load to start', async () => {
    const load = await readLoad(sql, jobId);
    return load.status === 'processing' ? load : null;
  });
  const release =
    brake ?? (await hold(site, 'select from sluice.loads where load_id = $1 for no key update', [load_id]));
  // At `info` it says that it lost its task.
  const worker = await site.work({ LOG_LEVEL: 'info' });
  const session = await waitFor('the worker to wait for the test', () =>
    workingSession(sql, 'chunk', "wait_event_type = 'Lock'"),
  );
  worker.signal('SIGSTOP');
  const at = Date.now();
  await release();
  await waitFor('the session of the paused worker to idle in its transaction', () =>
    workingSession(sql, 'chunk', "state = 'idle in transaction'"),
  );
  return { worker, jobId, file, chunkNo: await chunkOf(sql, session), at };
}

async function expectExactWithout(
  site: Site,
  { worker, jobId, file, chunkNo, at }: Paused,
  how: string,
): Promise<void> {
  const { sql } = site;
  await site.workers(2);
  const load = await expectExact(sql, jobId, file, oracleOf(file));
  const [chunk] = await sql<{ done_at: Date; losses: number }>(
    'select done_at, losses from sluice.load_chunks where load_id = $1 and chunk_no = $2',
    [load.load_id, chunkNo],
  );
  const recovery = (chunk?.done_at.getTime() ?? Number.NaN) - at;
  report(
    `worker ${how}, ${site.queue}: chunk done by another ${(recovery / 1000).toFixed(1)} s after the pause; load ${load.seconds.toFixed(1)} s`,
  );
  expect(chunk?.losses).toBe(1);
  const before = await snapshot(sql);
  worker.signal('SIGCONT');
  await worker.says(/a task is given back|another attempt owns the task/);
  expect(await snapshot(sql)).toEqual(before);
  expect(recovery).toBeLessThan(recoveryMs);
}

/** Everything that a late worker could have changed. */
async function snapshot(sql: Sql): Promise<unknown> {
  const [ledger] = await sql(
    `select max(xmin::text::bigint) as users, (select sum(xmin::text::bigint) from sluice.load_chunks) as chunks,
       (select sum(xmin::text::bigint) from sluice.loads) as loads
     from sluice.users`,
  );
  return { ledger, users: await digestUsers(sql) };
}
