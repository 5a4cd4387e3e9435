import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { ended, expectExact, progressed, report } from '../support/oracles/exactness.ts';
import { expectEachOnce } from '../support/oracles/records-exactness.ts';
import { askForExport, download } from '../support/oracles/watched-exports.ts';
import { startLoadBalancer } from '../support/servers/load-balancer.ts';
import { RecordSender } from '../support/servers/record-sender.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { startS3, type TestS3 } from '../support/servers/s3.ts';
import { type Api, callApi, onSite, type Site } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

let s3: TestS3;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

/**
 * How long a stopping server still accepts requests, in milliseconds. The load balancer probes it
 * every 50 ms, so most of this time is a margin for a busy machine.
 */
const drainMs = 3_000;

describe.skipIf(!redisAvailable)('on machines that share a database, a queue and a bucket', () => {
  // proves: machines
  test('loads and exports are exact although a server and a worker are lost, and others join', async () => {
    await onMachines(async (site, machine) => {
      const [first, second, [doomed]] = await Promise.all([
        site.serve(machine()),
        site.serve(machine()),
        Promise.all([1, 2].map(() => site.work(machine()))),
      ]);
      const files = [30_000, 6_000, 4_000].map((rows, seed) => createProfileFile({ rows, seed }));
      const [large, middle, small] = files as [(typeof files)[0], (typeof files)[0], (typeof files)[0]];
      const jobs = [await first.upload(large.bytes), await second.upload(middle.bytes)] as const;
      const { status } = await second.fetch(`/v1/background_jobs/${jobs[0]}`);
      expect(status).toBe(200);
      const early = await askForExport(second, { format: 'csv' });

      await progressed(site.sql, jobs[0], 0.2);
      await expectConnections(site, { servers: 2, workers: 2 });
      await Promise.all([loseDuringUpload(first, site.key, small.bytes), doomed?.kill('SIGKILL')]);
      const [third] = await Promise.all([
        site.serve({ ...machine(), STORAGE_PRESIGN: 'false' }),
        site.work(machine()),
      ]);
      const last = await third.upload(small.bytes);

      for (const job of jobs) expect(await ended(site.sql, job)).toMatchObject({ status: 'completed' });
      const table = oracleOf(...files);
      const load = await expectExact(site.sql, last, small, table, { fresh: false });
      await early.ended('completed');
      await early.stop();
      const late = await askForExport(third, { event_type: ['users'] });
      const shown = await late.ended('completed');
      await late.stop();
      // Since all files are in the bucket, a link from one server must work on another server.
      expect(await download(second, shown)).toBe(table.size);
      expect(await filesOn(site)).toEqual([]);
      report(
        `two servers and two workers, one of each lost: done ${load.seconds.toFixed(1)} s after the last upload`,
      );
    });
  });

  // proves: machines
  test('a restart of each server and each worker in turn loses nothing, refuses nothing and costs no attempt', async () => {
    await onMachines(async (site, machine) => {
      const serve = () => site.serve({ ...machine(), DRAIN_MS: String(drainMs) });
      const balancer = await startLoadBalancer();
      try {
        const [servers, workers] = await Promise.all([
          Promise.all([serve(), serve()]),
          Promise.all([1, 2].map(() => site.work(machine()))),
        ]);
        await Promise.all(servers.map(({ url }) => balancer.add(url)));
        const records = new RecordSender(balancer.url, site.key, 2);
        const uploads = startUploads(callApi(servers[0].process, balancer.url, site.key), records);

        for (const [index, server] of servers.entries()) {
          await records.untilAccepted(50);
          await server.process.kill('SIGTERM');
          expect(server.process.ending).toBe('exit code 0');
          expect(balancer.saidGoodbye(server.url)).toBe(true);
          await balancer.add((await serve()).url);
          await uploads.untilAccepted(1);
          await workers[index]?.kill('SIGTERM');
          expect(workers[index]?.ending).toBe('exit code 0');
          await site.work(machine());
        }
        await uploads.untilAccepted(1);
        const jobs = await uploads.stop();
        await records.stop();
        records.close();
        expect(balancer.faults).toEqual([]);
        for (const job of jobs) expect(await ended(site.sql, job)).toMatchObject({ status: 'completed' });
        const counts = await expectEachOnce(site.sql, records);
        expect(counts).toMatchObject({ refused: 0, unanswered: 0 });
        const spent = await site.sql(
          'select load_id, chunk_no, attempts, losses from sluice.load_chunks where attempts <> 1 or losses > 0',
        );
        expect(spent).toEqual([]);
        report(`rolling restart: ${jobs.length} uploads, ${counts.accepted} records and rows`);
      } finally {
        await balancer.close();
      }
    });
  });
});

/** Returns the settings of an additional machine, which has its own data directory. */
type Machine = () => Readonly<Record<string, string>>;

async function onMachines(run: (site: Site, machine: Machine) => Promise<void>): Promise<void> {
  await onSite({ queue: 'redis', settings: s3.variables }, async (site) => {
    let count = 0;
    await run(site, () => ({ DATA_DIR: join(site.dataDir, `machine ${++count}`) }));
  });
}

/**
 * Expects the numbers of connections that follow from the formula in docs/scaling.md for default
 * pool sizes.
 */
async function expectConnections(
  { sql, redis }: Site,
  { servers, workers }: { readonly servers: number; readonly workers: number },
): Promise<void> {
  const [toPostgres] = await sql<{ count: number }>(
    `select count(*)::int from pg_stat_activity
     where datname = current_database() and application_name like 'sluice%'`,
  );
  expect(toPostgres?.count).toBeLessThanOrEqual(servers * 12 + workers * 5);
  const client = new Redis(redis?.url ?? '');
  const toRedis =
    String(await client.client('LIST'))
      .trim()
      .split('\n').length - 1;
  client.disconnect();
  // A queue connects when it first notifies a worker.
  expect(toRedis).toBeGreaterThanOrEqual(workers * 4);
  expect(toRedis).toBeLessThanOrEqual(servers * 3 + workers * 7);
}

async function filesOn(site: Site): Promise<string[]> {
  const entries = await readdir(site.dataDir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Kills the server after it has received half of the file. */
async function loseDuringUpload({ process, url }: Api, key: string, bytes: Buffer): Promise<void> {
  const headers = {
    authorization: `Token ${key}`,
    'content-type': 'text/csv',
    'content-length': bytes.length,
  };
  const sending = request(new URL('/v1/imports', url), { method: 'POST', headers });
  const lost = once(sending, 'response').then(
    () => 'answered',
    () => 'lost',
  );
  await new Promise((resolve) => sending.write(bytes.subarray(0, bytes.length / 2), resolve));
  await process.kill('SIGKILL');
  expect(await lost).toBe('lost');
}

/**
 * Uploads one file of new users after another, and follows each load to its end. Adds the users to
 * `records`, so that the final check includes them.
 */
function startUploads(api: Api, records: RecordSender) {
  const rows = 3_000;
  const jobs: string[] = [];
  let isStopped = false;
  let failure: unknown = null;
  const running = (async () => {
    while (!isStopped) {
      const ids = Array.from({ length: rows }, (_, row) => `user-uploaded-${jobs.length}-${row}`);
      const csv = ['user_id,id,note', ...ids.map((id) => `${id},${id},${'x'.repeat(20)}`), ''].join('\n');
      // Adds the ids before the upload, because the users may be stored before the response is
      // read.
      for (const id of ids) records.answers.set(id, 202);
      jobs.push(await api.upload(Buffer.from(csv)));
      await follow(api, jobs.at(-1) ?? '', () => isStopped);
    }
  })().catch((error: unknown) => {
    failure = error;
  });
  const check = (): void => {
    if (failure !== null) throw failure;
  };
  return {
    async untilAccepted(more: number): Promise<void> {
      const wanted = jobs.length + more;
      await waitFor(`${more} more uploads`, () => {
        if (failure !== null) return true;
        return jobs.length >= wanted;
      });
      check();
    },
    async stop(): Promise<readonly string[]> {
      isStopped = true;
      await running;
      check();
      return jobs;
    },
  };
}

async function follow(api: Api, jobId: string, enough: () => boolean): Promise<void> {
  await waitFor(
    `job ${jobId} to end`,
    async () => {
      const response = await api.fetch(`/v1/background_jobs/${jobId}`);
      const job = (await response.json()) as { readonly status: string };
      expect(response.status).toBe(200);
      return enough() || job.status === 'completed';
    },
    { everyMs: 50 },
  );
}
