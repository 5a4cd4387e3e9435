import { describe, expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { ended, expectExact, progressed } from '../support/oracles/exactness.ts';
import { type Api, oneQueue, onSite, type Site } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** One record in five lacks its id. */
const file = createProfileFile({ rows: 24_000, seed: 15, keylessEvery: 5 });

describe.concurrent.each(oneQueue('redis'))('with the queue on %s', (queue) => {
  // proves: plan-once
  test('a plan and its application are exact although all workers and the server are killed in each', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      let api = await site.serve();
      await site.workers(2);

      const jobId = await send(api, 'plan=true');
      api = await killAll(site, api, jobId, [0.4]);
      const planned = await ended(sql, jobId);
      expect(planned).toMatchObject({ status: 'completed', failure: null, rejected: file.refused.length });
      expect(await sql('select from sluice.users')).toEqual([]);
      expect(await sql('select from sluice.companies')).toEqual([]);
      const rows = await (await api.fetch(`/v1/background_jobs/${jobId}/plan?format=ndjson`)).text();
      const ids = rows
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { entity: string; id: string });
      const users = ids.filter(({ entity }) => entity === 'users').map(({ id }) => id);
      expect(users.length).toBe(file.keys);
      expect(new Set(users)).toEqual(new Set(oracleOf(file).keys()));

      expect(await api.post(`/v1/background_jobs/${jobId}/apply`)).toBe(202);
      api = await killAll(site, api, jobId, [0.2, 0.6]);
      await expectExact(sql, jobId, file, oracleOf(file));
    });
  });
});

describe.concurrent.each(oneQueue('postgres'))('with the queue on %s', (queue) => {
  // proves: guard-holds, guard-released
  test('a load is held, stays held and is loaded exactly once it is released, although all processes are killed in each phase', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      let api = await site.serve();
      await site.workers(2);
      const jobId = await send(api, 'guard=rows=..10');
      api = await killAll(site, api, jobId, [0.4]);
      await waitFor('the load to be held', async () => {
        const [load] = await sql<{ status: string }>('select status from sluice.loads where job_id = $1', [
          jobId,
        ]);
        return load?.status === 'held';
      });
      api = await killAll(site, api, jobId, [0]);
      expect(await sql('select status, rows_rejected from sluice.loads')).toEqual([
        { status: 'held', rows_rejected: file.refused.length },
      ]);
      expect(await sql('select from sluice.users')).toEqual([]);
      const path = `/v1/background_jobs/${jobId}/apply`;
      expect(await Promise.all([api.post(path), api.post(path)])).toEqual([202, 202]);
      await killAll(site, api, jobId, [0.2, 0.6]);
      await expectExact(sql, jobId, file, oracleOf(file));
    });
  });
});

async function send(api: Api, option: string): Promise<string> {
  const response = await api.fetch(`/v1/imports?${option}`, {
    method: 'POST',
    body: new Uint8Array(file.bytes),
    headers: { 'content-type': 'text/csv' },
  });
  const { job_id: jobId } = (await response.json()) as { job_id: string };
  return jobId;
}

/**
 * Waits until the job reaches the next of `shares`, then kills every process and starts new ones.
 * Repeats this for all shares. Returns the last server.
 */
async function killAll(site: Site, before: Api, jobId: string, shares: readonly number[]): Promise<Api> {
  let api = before;
  for (const share of shares) {
    await progressed(site.sql, jobId, share);
    await Promise.all([site.killWorkers(), api.process.kill('SIGKILL')]);
    await waitFor('the sessions of what was killed to be gone', async () => {
      const sessions = await site.sql(
        "select from pg_stat_activity where datname = current_database() and application_name <> 'test' and state = 'active'",
      );
      return sessions.length === 0;
    });
    await site.expireLeases();
    [api] = await Promise.all([site.serve(), site.workers(2)]);
  }
  return api;
}
