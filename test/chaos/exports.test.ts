import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  askForExport,
  download,
  expectNoOrphans,
  type ShownExport,
  storedFor,
  type WatchedExport,
  watch,
} from '../support/oracles/watched-exports.ts';
import { type Api, oneQueue, onSite, type Site, workingSession } from '../support/servers/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/servers/tmpfs.ts';
import { waitFor } from '../support/wait-for.ts';

/** Enough rows for an export of at least a second, so that a kill can interrupt it. */
const rows = 50_000;

// proves: increments
test.concurrent.each(oneQueue('postgres'))(
  'an increment is exact although its server and worker are killed before and while it is written, and its cursor continues after its files, with the queue on %s',
  (queue) =>
    onSite({ queue }, async (site) => {
      let api = await site.serve();
      let worker = await site.work();
      const ended = async (body: object): Promise<ShownExport> => {
        const watched = await askForExport(api, { event_type: 'users', ...body });
        const end = await watched.ended('completed');
        await watched.stop();
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
      const beginAndKill = async (): Promise<WatchedExport> => {
        const watched = await begin(site, api, since);
        await watched.stop();
        await Promise.all([worker.kill('SIGKILL'), api.process.kill('SIGKILL')]);
        return watched;
      };
      let second = await beginAndKill();
      while (await hasEnded(site, second)) {
        // The export ended before the kill, so the test starts another one.
        api = await site.serve();
        worker = await site.work();
        second = await beginAndKill();
      }
      await site.sql("update sluice.users set user_id = 'late' where user_id = 'user 1'");
      api = await site.serve();
      await site.work();
      const written = watch(api, second.jobId);
      const job = await written.ended('completed');
      await written.stop();
      // The export has one more row, which reports that user 1 was removed.
      expect(job.rows).toBe(rows + 1);
      expect((await ended({ since: job.cursor, include_removed: true })).rows).toBe(0);
    }),
);

// proves: export-survives
test.concurrent('an export without room on the disk reports it, leaves nothing, and is completed once there is room', async ({
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
  const job = await patient.ended('completed');
  expect(await download(api, job)).toBe(few);
  await expectNoOrphans(site, patient.jobId, job);
  await waitFor('nothing of the failed one to be left', async () => {
    return (await storedFor(site, hopeless.jobId)).length === 0;
  });
  await Promise.all([hopeless.stop(), patient.stop()]);
}

/** Adds users whose values hardly compress, so that exporting them takes time and space. */
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

/** Starts an export. Resolves while a worker is running it. */
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
