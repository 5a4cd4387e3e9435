import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { pino } from 'pino';
import { beforeAll, expect, test } from 'vitest';
import { MAX_DELETION_LOSSES, MAX_EXPORT_LOSSES } from '../../jobs/kinds.ts';
import { MAX_CHUNK_LOSSES } from '../../jobs/load.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { superviseWorkers } from '../../src/cli/processes.ts';
import { SMALL_LOAD_BYTES } from '../../src/load/limits.ts';
import { SUSPECT_LOSSES } from '../../src/tasks/store.ts';
import { bundleOptions } from '../../tools/bundle-options.ts';
import { type Api, callApi, onSite, type Site } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = Buffer.from('user_id,name\na,Ada\nb,Bob\n');
/** A file that is too large for the server to merge, so a worker must load it. */
const large = Buffer.concat([file, Buffer.from('b,Bob\n'.repeat(SMALL_LOAD_BYTES / 6))]);
const outdir = join(packageRoot, 'dist', 'test');
const entry = join(outdir, 'poisoned-worker.js');

beforeAll(async () => {
  const entryPoints = ['test/support/servers/poisoned-worker.ts', 'src/cli/processes.ts'].map((path) =>
    join(packageRoot, path),
  );
  await build({ ...bundleOptions, entryPoints, entryNames: '[name]', sourcemap: false, outdir });
});

// proves: hung-worker
test('a load, an export and a deletion whose code never yields fail as worker_lost, and delay no other work', async () => {
  await onSite({ queue: 'postgres' }, async (site) => {
    const api = await site.serve();
    const poisoned = {
      load: await callFor(site, api, 'poisoned-load'),
      export: await callFor(site, api, 'poisoned-export'),
      deletion: await callFor(site, api, 'poisoned-deletion'),
    };
    const fleet = startWorkers(site);
    const stopHurry = shortenLeases(site);
    try {
      // The deletion below erases a user of this file. The deletion therefore removes the file, and
      // that removal hangs.
      await ended(poisoned.deletion, await poisoned.deletion.upload(file));
      const usual = await timed(async () => ended(api, await api.upload(file)));
      const jobs = {
        load: await poisoned.load.upload(large),
        export: await ask(poisoned.export, 'POST', '/api/v1/analytics/exports', {}),
        deletion: await ask(poisoned.deletion, 'DELETE', '/v1/users', { users: ['a'] }),
      };
      await waitFor('all of them to have ended a worker', async () => {
        const losses = await readLosses(site);
        return losses.load > 0 && losses.export > 0 && losses.deletion > 0;
      });
      const longest = { health: 0, load: 0 };
      const pids = new Set(fleet.pids);
      let failed: readonly Job[] = [];
      await waitFor(
        'the poisoned jobs to fail, while others are done',
        async () => {
          longest.health = Math.max(longest.health, await timed(() => api.fetch('/health/live')));
          longest.load = Math.max(longest.load, await timed(async () => ended(api, await api.upload(file))));
          for (const pid of fleet.pids) pids.add(pid);
          failed = await Promise.all([
            look(poisoned.load, jobs.load),
            look(poisoned.export, jobs.export),
            look(poisoned.deletion, jobs.deletion),
          ]);
          return failed.every(({ status }) => status === 'failed');
        },
        { everyMs: 500 },
      );
      const workerLost = expect.objectContaining({ error_code: 'worker_lost' });
      expect(failed.map(({ failure }) => failure)).toEqual([workerLost, workerLost, workerLost]);
      expect(longest.health).toBeLessThan(1_000);
      // Ending a hanging worker takes seconds. The margin is for a busy machine.
      expect(longest.load).toBeLessThan(30_000 + 20 * usual);
      // The service ended and replaced the hanging workers. After a task has cost the fleet two
      // workers, it must not cost a third one.
      expect(pids.size).toBeGreaterThan(2);
      expect(pids.size).toBeLessThanOrEqual(2 + 3 * SUSPECT_LOSSES);
      const workers = [...fleet.pids].sort();
      await ended(api, await api.upload(file));
      expect([...fleet.pids].sort()).toEqual(workers);
    } finally {
      stopHurry();
      fleet.kill();
    }
  });
});

test('a process that was paused for longer than its limit lives on, and ends once its event loop hangs', async () => {
  const script = `
    const { startWatchdog } = await import(${JSON.stringify(pathToFileURL(join(outdir, 'processes.js')))});
    startWatchdog('test', 1000);
    process.on('SIGUSR2', () => { for (;;); });
    setInterval(() => console.log('alive'), 50);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
  const exited = once(child, 'exit');
  const alive = (): Promise<unknown> => once(child.stdout, 'data');
  try {
    await alive();
    child.kill('SIGSTOP');
    // The wait has a fixed length. There is no event to wait for, because the process must not end.
    await sleep(2_500);
    child.kill('SIGCONT');
    for (let count = 0; count < 30; count++) await alive();
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    child.kill('SIGUSR2');
    expect(await exited).toEqual([null, 'SIGKILL']);
  } finally {
    child.kill('SIGKILL');
  }
});

interface Job {
  readonly status: string;
  readonly failure: { readonly error_code: string } | null;
}

async function callFor(site: Site, api: Api, name: string): Promise<Api> {
  const { key } = await site.addEnvironment(name);
  return callApi(api.process, api.url, key);
}

function startWorkers(site: Site) {
  return superviseWorkers({
    size: 2,
    entry,
    processEnv: {
      PATH: process.env['PATH'],
      DATABASE_URL: site.databaseUrl,
      DATA_DIR: site.dataDir,
      LOG_LEVEL: 'silent',
    },
    log: pino({ level: 'silent' }),
  });
}

/**
 * Shortens waits of minutes to seconds, until the returned function is called. Ends leases that
 * were not renewed for 4 s. If a task has lost SUSPECT_LOSSES workers, sets its losses to one below
 * the limit at which it fails. The skipped losses would have no other effect, because the task
 * already runs alone.
 */
function shortenLeases({ sql }: Site): () => void {
  const soon = `now() + interval '4 seconds'`;
  const shorten = async (): Promise<void> => {
    for (const [kind, limit] of [
      ['chunk', MAX_CHUNK_LOSSES],
      ['deletion', MAX_DELETION_LOSSES],
      ['export', MAX_EXPORT_LOSSES],
    ] as const) {
      await sql(
        `update sluice.tasks set
           losses = case when losses = $3 and lease_until is null then $1 else losses end,
           lease_until = case when lease_until < ${soon} then now() - interval '1 second' else lease_until end
         where kind = $2 and (lease_until < ${soon} or (losses = $3 and lease_until is null))`,
        [limit - 1, kind, SUSPECT_LOSSES],
      );
    }
  };
  const timer = setInterval(() => void shorten().catch(() => undefined), 200);
  return () => clearInterval(timer);
}

async function readLosses({ sql }: Site): Promise<{ load: number; export: number; deletion: number }> {
  const [losses] = await sql<{ load: number; export: number; deletion: number }>(
    `select coalesce(max(losses) filter (where kind = 'chunk'), 0) as load,
       coalesce(max(losses) filter (where kind = 'export'), 0) as export,
       coalesce(max(losses) filter (where kind = 'deletion'), 0) as deletion
     from sluice.tasks`,
  );
  return losses ?? { load: 0, export: 0, deletion: 0 };
}

async function ask(api: Api, method: string, path: string, body: object): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const response = await api.fetch(path, { method, body: JSON.stringify(body), headers });
  const { job_id: jobId } = (await response.json()) as { job_id?: string };
  if (jobId === undefined) throw new Error(`${path} was answered ${response.status}`);
  return jobId;
}

async function look(api: Api, jobId: string): Promise<Job> {
  return (await (await api.fetch(`/v1/background_jobs/${jobId}`)).json()) as Job;
}

async function ended(api: Api, jobId: string): Promise<void> {
  await waitFor('the load to be completed', async () => (await look(api, jobId)).status === 'completed');
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
