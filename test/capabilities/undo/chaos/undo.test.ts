import { describe, expect, test } from 'vitest';
import { createProfileFile } from '../../../support/files/profile-file.ts';
import { report } from '../../../support/oracles/exactness.ts';
import { type Api, callApi, oneQueue, onSite, type Site, type Sql } from '../../../support/servers/site.ts';
import { waitFor } from '../../../support/wait-for.ts';

const goodFile = createProfileFile({ rows: 40_000, seed: 1, allValid: true });
/** A file that changes some users of `goodFile` and adds others. */
const wrongFile = createProfileFile({ rows: 40_000, seed: 2, allValid: true });
/** A file with users of `goodFile` and `wrongFile`. This file is loaded during the undo. */
const laterFile = createProfileFile({ rows: 4_000, seed: 3, allValid: true });
const phases = ['begin', 'chunk', 'finish'] as const;

describe.concurrent.each(oneQueue('postgres'))('a service with the queue on %s', (queue) => {
  // proves: undo, load-survives
  test('an undo is exact despite kill -9 in each phase, a second undo and new records', () =>
    onSite({ queue }, async (site) => {
      const { sql } = site;
      let api = await site.serve();
      await site.workers(2);
      const { environmentId, key } = await site.addEnvironment('undisturbed');
      const undisturbed = callApi(api.process, api.url, key);
      for (const to of [api, undisturbed]) await ended(sql, await to.upload(goodFile.bytes));
      await ended(sql, await undisturbed.upload(laterFile.bytes));
      const contentsBefore = await contents(sql, site.environmentId);
      const users = await sql<{ user_id: string }>(
        'select user_id from sluice.users where environment_id = $1 order by user_id limit $2',
        [site.environmentId, phases.length],
      );
      const wrongJob = await api.upload(wrongFile.bytes);
      await ended(sql, wrongJob);
      expect(await contents(sql, site.environmentId)).not.toBe(contentsBefore);
      await site.killWorkers();
      const startedAt = Date.now();
      const undos = await Promise.all([requestUndo(api, wrongJob), requestUndo(api, wrongJob)]);
      const lastJob = await api.upload(laterFile.bytes);
      for (const [index, phase] of phases.entries()) {
        const isKilled = await killIn(site, phase, async () => {
          await identify(api, users[index]?.user_id ?? '');
          await api.process.kill('SIGKILL');
        });
        api = await site.serve();
        report(`kill -9 in the ${phase} of an undo, ${queue}: ${isKilled ? 'met' : 'it was over'}`);
      }
      await site.workers(2);
      const counts = [await ended(sql, undos[0]), await ended(sql, undos[1])];
      // One of the two requests undoes the load. The other finds nothing to undo.
      expect(counts.filter(({ updated, removed }) => updated + removed > 0)).toHaveLength(1);
      await ended(sql, lastJob);
      report(`undo with kills, ${queue}: ${((Date.now() - startedAt) / 1_000).toFixed(1)} s`);
      expect(
        await sql(`select user_id from sluice.users where metadata ? 'single' order by user_id`),
      ).toEqual(users);
      expect(await contents(sql, site.environmentId)).toBe(await contents(sql, environmentId));
    }));
});

/** Returns a digest of the users without the property that single records write. */
async function contents(sql: Sql, environmentId: number): Promise<string> {
  const [row] = await sql<{ digest: string }>(
    `select md5(string_agg(concat_ws(E'\\t', user_id, company_id, metadata - 'single'), E'\\n' order by user_id)) as digest
     from sluice.users where environment_id = $1`,
    [environmentId],
  );
  return row?.digest ?? '';
}

async function requestUndo(api: Api, jobId: string): Promise<string> {
  const response = await api.fetch(`/v1/background_jobs/${jobId}/undo`, { method: 'POST' });
  const text = await response.text();
  expect([response.status, text]).toEqual([202, expect.anything()]);
  return (JSON.parse(text) as { job_id: string }).job_id;
}

interface Counts {
  readonly updated: number;
  readonly removed: number;
}

async function ended(sql: Sql, jobId: string): Promise<Counts> {
  const load = await waitFor(`job ${jobId} to end`, async () => {
    const [row] = await sql<Counts & { status: string; failure: unknown }>(
      `select status, failure_message as failure, rows_updated as updated, rows_removed as removed
         from sluice.loads where job_id = $1 and status not in ('queued', 'processing')`,
      [jobId],
    );
    return row ?? null;
  });
  expect(load).toMatchObject({ status: 'completed', failure: null });
  return load;
}

async function identify(api: Api, user_id: string): Promise<void> {
  const response = await api.fetch('/v1/identify', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user_id, metadata: { single: 'kept' } }),
  });
  expect(response.status).toBe(202);
}

/**
 * Starts workers, and kills them while the undo is in the given phase. Returns false if the undo
 * ended before the kill.
 */
async function killIn(
  site: Site,
  phase: (typeof phases)[number],
  meanwhile: () => Promise<void>,
): Promise<boolean> {
  await site.workers(2);
  const isMet = await waitFor(
    `the ${phase} of the job`,
    async () => {
      const [state] = await site.sql<{ works: boolean; left: boolean }>(
        `select
           exists (select from pg_stat_activity
             where datname = current_database() and application_name like $1 and state <> 'idle') as works,
           exists (select from sluice.loads where type = 'undo' and status in ('queued', 'processing')) as left`,
        [`sluice ${phase} %`],
      );
      if (state?.works === true) return 'met';
      return state?.left === false ? 'over' : null;
    },
    { everyMs: 1 },
  );
  await meanwhile();
  await site.killWorkers();
  await site.expireLeases();
  return isMet === 'met';
}
