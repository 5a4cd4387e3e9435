import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { report } from '../support/exactness.ts';
import { type Api, anyQueue, oneQueue, onSite, type Site, workingSession } from '../support/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/tmpfs.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  askForExport,
  download,
  expectNoOrphans,
  type ShownExport,
  storedFor,
  type WatchedExport,
  watch,
} from '../support/watched-exports.ts';

/** With these, an export takes a second or more: it can be hit in the middle. */
const rows = 50_000;
/** Before its answer, the ledger is all that an export waits for. */
const quickMs = 3_000;

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: export-survives
  test('exports end completed, each with its files and nothing else, whatever is killed, paused, restarted or emptied', async () => {
    await onSite({ queue, privatePostgres: true }, async (site) => {
      await addUsers(site, rows);
      const api = await site.serve();
      await loseWorkers(site, api);
      await restartPostgres(site, api);
      if (site.redis !== null) await emptyQueue(site, api);
      await cancel(site, api);
    });
  });
});

// proves: increments
test.concurrent.each(oneQueue('postgres'))(
  'an increment whose server and worker are killed, once it is accepted and while it is written, is begun anew, and its cursor continues after the files that it has; the queue is on %s',
  (queue) =>
    onSite({ queue }, async (site) => {
      let [api, worker] = await Promise.all([site.serve(), site.work()]);
      const ended = async (body: object): Promise<ShownExport> => {
        const asked = await askForExport(api, { event_type: 'users', ...body });
        const end = await asked.ended('completed');
        await asked.stop();
        return end;
      };
      const { cursor } = await ended({});
      await addUsers(site, rows);
      const since = { since: cursor, include_removed: true };
      await worker.kill('SIGKILL');
      const first = await askForExport(api, { event_type: 'users', ...since });
      await first.stop();
      await api.process.kill('SIGKILL');
      api = await site.serve();
      worker = await site.work();
      const accepted = watch(api, first.jobId);
      expect((await accepted.ended('completed')).rows).toBe(rows);
      await accepted.stop();
      let second: WatchedExport;
      for (;;) {
        second = await begin(site, api, since);
        await second.stop();
        await Promise.all([worker.kill('SIGKILL'), api.process.kill('SIGKILL')]);
        if (!(await hasEnded(site, second))) break;
        // It was faster than the kill.
        [api, worker] = await Promise.all([site.serve(), site.work()]);
      }
      await site.sql("update sluice.users set user_id = 'late' where user_id = 'user 1'");
      api = await site.serve();
      await site.work();
      const written = watch(api, second.jobId);
      const done = await written.ended('completed');
      await written.stop();
      // With a row that says that user 1 is gone.
      expect(done.rows).toBe(rows + 1);
      expect((await ended({ since: done.cursor, include_removed: true })).rows).toBe(0);
    }),
);

/** One worker is paused in its export, another is killed in another; a third one does both. */
async function loseWorkers(site: Site, api: Api): Promise<void> {
  const lateWorker = await site.work({ LOG_LEVEL: 'info' });
  const paused = await begin(site, api);
  lateWorker.signal('SIGSTOP');
  const pausedAt = performance.now();
  const doomed = await site.work();
  const killed = await begin(site, api);
  await doomed.kill('SIGKILL');
  const left = await storedFor(site, killed.jobId);
  expect(left.some((name) => name.endsWith('.part'))).toBe(true);
  await site.work();

  await waitFor(
    'the session of the paused worker to end, although nobody wakes it',
    async () => (await sessionOf(site, paused, 1)) === null,
  );
  const quietMs = performance.now() - pausedAt;
  await expectComplete(site, paused);
  await expectComplete(site, killed);
  report(
    `export under a paused worker, ${site.queue}: its session gone after ${seconds(quietMs)}, both exports done by others after ${seconds(performance.now() - pausedAt)}`,
  );

  const before = await trace(site, paused);
  lateWorker.signal('SIGCONT');
  await lateWorker.says(/another attempt owns the task/);
  expect(await trace(site, paused)).toEqual(before);
  expect(await download(api, await paused.ended('completed'))).toBe(rows);
  await lateWorker.kill('SIGTERM');
  await Promise.all([paused.stop(), killed.stop()]);
}

async function restartPostgres(site: Site, api: Api): Promise<void> {
  if (site.postgres === null) throw new Error('the site has no Postgres of its own');
  const work = await begin(site, api);
  await site.postgres.stopImmediately();
  await site.postgres.start();
  const backAt = performance.now();
  await expectComplete(site, work);
  await work.stop();
  report(
    `Postgres stopped in an export, ${site.queue}: done ${seconds(performance.now() - backAt)} after its return`,
  );
}

/** Redis loses everything in the middle of one export, and is away when another is asked for. */
async function emptyQueue(site: Site, api: Api): Promise<void> {
  const { redis } = site;
  if (redis === null) throw new Error('the site has no Redis');
  const running = await begin(site, api);
  await redis.flush();
  const waiting = await askForExport(api, { event_type: 'users' });
  await redis.kill();
  const unheard = await askForExport(api, { event_type: 'users' });
  expect(unheard.acceptedMs).toBeLessThan(quickMs);
  await expectComplete(site, running);
  await redis.start();
  for (const work of [waiting, unheard]) {
    await expectComplete(site, work);
    await work.stop();
  }
  await running.stop();
}

async function cancel(site: Site, api: Api): Promise<void> {
  const work = await begin(site, api);
  const at = performance.now();
  expect(await api.post(`/v1/background_jobs/${work.jobId}/cancel`)).toBe(202);
  await waitFor('the statement of a cancelled export to be gone', async () => {
    return (await workingSession(site.sql, 'export')) === null;
  });
  expect(performance.now() - at).toBeLessThan(2_000);
  await work.ended('cancelled');
  await waitFor('its files to be gone', async () => {
    return (await storedFor(site, work.jobId)).every((name) => !name.includes('/'));
  });
  await work.stop();
}

// proves: export-survives
test.concurrent('an export for which the disk has no room says so, leaves nothing behind, and is done once there is room', async ({
  skip,
}) => {
  const disk = await mountSmallDisk(mebibyte);
  if (typeof disk === 'string') return skip(disk);
  try {
    await onSite({ queue: 'postgres', settings: { DATA_DIR: disk.path } }, (site) => fillDisk(site, disk));
  } finally {
    await disk.remove();
  }
});

const mebibyte = 1024 * 1024;

async function fillDisk(site: Site, disk: SmallDisk): Promise<void> {
  const few = 20_000;
  await addUsers(site, few);
  const [api] = await Promise.all([site.serve(), site.work()]);
  const hopeless = await askForExport(api, { event_type: 'users' });
  await waitFor('it to be tried again', async () => (await failuresOf(site, hopeless)).failures >= 2);
  const patient = await askForExport(api, { event_type: 'users' });
  const failed = await hopeless.ended('failed');
  expect(failed.failure).toEqual({
    error_code: 'export_failed',
    message: 'disk full while writing a file (ENOSPC)',
  });
  await waitFor('the other to be tried as well', async () => (await failuresOf(site, patient)).failures > 0);
  expect((await failuresOf(site, patient)).last_error).toContain('disk full');
  await disk.grow(64 * mebibyte);
  const done = await patient.ended('completed');
  expect(await download(api, done)).toBe(few);
  await expectNoOrphans(site, patient.jobId, done);
  await waitFor('nothing of the failed one to be left', async () => {
    return (await storedFor(site, hopeless.jobId)).length === 0;
  });
  await Promise.all([hopeless.stop(), patient.stop()]);
}

/** Users whose export does not compress well: that takes time, and room. */
async function addUsers({ sql, environmentId }: Site, count: number): Promise<void> {
  await sql(
    `insert into sluice.users (environment_id, user_id, metadata)
     select $1, 'user ' || i, jsonb_build_object('text', md5(i::text) || md5((-i)::text) || md5('a' || i) || md5('b' || i))
     from generate_series(1, $2::int) i`,
    [environmentId, count],
  );
}

async function hasEnded({ sql }: Site, { jobId }: WatchedExport): Promise<boolean> {
  const open = await sql(
    "select from sluice.exports where job_id = $1 and status in ('queued', 'processing')",
    [jobId],
  );
  return open.length === 0;
}

/** An export that a worker is in the middle of. */
async function begin(site: Site, api: Api, body: object = {}): Promise<WatchedExport> {
  const work = await askForExport(api, { event_type: 'users', ...body });
  const isMet = await waitFor(
    'the export to be under way',
    async () => {
      if (await hasEnded(site, work)) return 'missed';
      const [part] = (await storedFor(site, work.jobId)).filter((name) => name.endsWith('.part'));
      if (part === undefined) return false;
      const { size } = await stat(join(site.dataDir, 'files', 'exports', work.jobId, part));
      return size > 256 * 1024 && 'met';
    },
    { everyMs: 5 },
  );
  if (isMet === 'missed') {
    await work.stop();
    return begin(site, api, body);
  }
  expect(await workingSession(site.sql, 'export')).not.toBeNull();
  return work;
}

async function expectComplete(site: Site, work: WatchedExport): Promise<void> {
  const done = await work.ended('completed');
  expect(done.rows).toBe(rows);
  await expectNoOrphans(site, work.jobId, done);
}

async function sessionOf({ sql }: Site, { jobId }: WatchedExport, attempt: number): Promise<string | null> {
  const [row] = await sql<{ task_id: number }>('select task_id from sluice.tasks where job_id = $1', [jobId]);
  return workingSession(sql, 'export', `application_name = 'sluice export ${row?.task_id}:${attempt}'`);
}

async function failuresOf(
  { sql }: Site,
  { jobId }: WatchedExport,
): Promise<{ failures: number; last_error: string }> {
  const [row] = await sql<{ failures: number; last_error: string }>(
    'select failures, last_error from sluice.tasks where job_id = $1',
    [jobId],
  );
  if (row === undefined) throw new Error('there is no such export');
  return row;
}

/** Everything that a late worker could have changed. */
async function trace({ sql, dataDir }: Site, { jobId }: WatchedExport): Promise<unknown> {
  const ledger = await sql(
    `select e.xmin::text, (select array_agg(f.xmin::text order by filename) from sluice.export_files f where f.export_id = e.export_id) as files
     from sluice.exports e where job_id = $1`,
    [jobId],
  );
  const folder = join(dataDir, 'files', 'exports', jobId);
  const names = (await readdir(folder, { recursive: true })).sort();
  const files = await Promise.all(
    names.map(async (name) => {
      const { size, mtimeMs, ino } = await stat(join(folder, name));
      return { name, size, mtimeMs, ino };
    }),
  );
  return { ledger, files };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
