import { describe, expect, test } from 'vitest';
import { createProfileFile } from '../../../support/files/profile-file.ts';
import { progressed, report } from '../../../support/oracles/exactness.ts';
import { type Api, callApi, onSite, queues, type Site, type Sql } from '../../../support/servers/site.ts';
import { waitFor } from '../../../support/wait-for.ts';

const goodFile = createProfileFile({ rows: 10_000, seed: 1, allValid: true });
/** A file that changes some users of `goodFile` and adds others. */
const wrongFile = createProfileFile({ rows: 10_000, seed: 2, allValid: true });
/** A file that is queued while `wrongFile` is loaded and undone. */
const nextFile = createProfileFile({ rows: 2_000, seed: 3, allValid: true });
const phases = ['begin', 'chunk', 'finish'] as const;
type Phase = (typeof phases)[number];
/** A large run also tests the queue on Redis. */
const tested = process.env['SLUICE_LARGE'] === '1' ? queues : (['postgres'] as const);

describe.concurrent.each(tested)('with the queue on %s', (queue) => {
  // proves: all-or-nothing
  test('a load that fails or is cancelled leaves no trace, despite kill -9 in each phase of it and of its undo', () =>
    onSite({ queue }, async (site) => {
      const { sql } = site;
      let api = await site.serve();
      await site.work();
      const { environmentId, key } = await site.addEnvironment('undisturbed');
      const undisturbed = callApi(api.process, api.url, key);
      for (const to of [api, undisturbed]) await ended(sql, await to.upload(goodFile.bytes));
      await ended(sql, await undisturbed.upload(nextFile.bytes));
      const contentsBefore = await contents(sql, site.environmentId);

      // The load fails because too many workers have died while they ran the same chunk.
      const failed = await uploadUndone(api);
      await progressed(sql, failed, 0.3);
      await killIn(site, failed, 'chunk');
      expect(await contents(sql, site.environmentId)).not.toBe(contentsBefore);
      await sql('update sluice.tasks set losses = 9 where lease_until is not null and job_id = $1', [failed]);
      await site.expireLeases();
      const nextJob = await api.upload(nextFile.bytes);
      api = await undoDespiteKills(site, failed, api, phases);
      await expectUndone(api, failed, 'failed');
      await ended(sql, nextJob);
      expect(await contents(sql, site.environmentId)).toBe(await contents(sql, environmentId));
      expect(await ranInOrder(sql, failed, nextJob)).toBe(true);

      // The API is killed as soon as it has answered the cancellation.
      const cancelled = await uploadUndone(api);
      await progressed(sql, cancelled, 0.6);
      await killIn(site, cancelled, 'chunk');
      await site.expireLeases();
      await site.work();
      const isMet = await waitFor('the load to be in its finish', () => stateOf(site, cancelled, 'finish'), {
        everyMs: 1,
      });
      const status = await api.post(`/v1/background_jobs/${cancelled}/cancel`);
      if (status === 409) report(`cancel in the finish, ${queue}: it was over`);
      else {
        expect([isMet, status]).toEqual([expect.any(String), 202]);
        await site.killWorkers();
        await site.expireLeases();
        api = await undoDespiteKills(site, cancelled, api, ['begin']);
        await expectUndone(api, cancelled, 'cancelled');
        expect(await contents(sql, site.environmentId)).toBe(await contents(sql, environmentId));
      }
    }));
});

async function uploadUndone(api: Api): Promise<string> {
  const response = await api.fetch('/v1/imports?on_failure=undo', {
    method: 'POST',
    headers: { 'content-type': 'text/csv' },
    body: new Uint8Array(wrongFile.bytes),
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_id: string }).job_id;
}

/** Kills the API, and a worker in each phase of the undo. Returns the API that was started last. */
async function undoDespiteKills(site: Site, jobId: string, api: Api, killed: readonly Phase[]): Promise<Api> {
  await api.process.kill('SIGKILL');
  for (const phase of killed) {
    await site.work();
    const undo = await waitFor('the undo to be queued', () => undoOf(site.sql, jobId));
    const isMet = await killIn(site, undo, phase);
    await site.expireLeases();
    report(`kill -9 in the ${phase} of an undo after a failure, ${site.queue}: ${isMet}`);
  }
  await site.work();
  return site.serve();
}

async function undoOf(sql: Sql, jobId: string): Promise<string | null> {
  const [undo] = await sql<{ job_id: string }>(
    `select u.job_id from sluice.load_undos n join sluice.loads u using (load_id)
     join sluice.loads l on l.load_id = any(n.undoes) where l.job_id = $1`,
    [jobId],
  );
  return undo?.job_id ?? null;
}

async function expectUndone(api: Api, jobId: string, status: string): Promise<void> {
  const job = await waitFor('the load to be undone', async () => {
    const response = await api.fetch(`/v1/background_jobs/${jobId}`);
    const shown = (await response.json()) as { on_failure: { state: string } };
    return shown.on_failure.state === 'undoing' || shown.on_failure.state === 'ready' ? null : shown;
  });
  expect(job).toMatchObject({ status, on_failure: { action: 'undo', state: 'undone' } });
}

/** Returns true if the next load started only after the undo had ended. */
async function ranInOrder(sql: Sql, jobId: string, nextJob: string): Promise<boolean> {
  const [order] = await sql<{ is_right: boolean }>(
    `select n.started_at >= u.ended_at as is_right
     from sluice.loads n, sluice.loads u where n.job_id = $1 and u.job_id = $2`,
    [nextJob, await undoOf(sql, jobId)],
  );
  return order?.is_right ?? false;
}

async function contents(sql: Sql, environmentId: number): Promise<string> {
  const [row] = await sql<{ digest: string }>(
    `select md5(
       (select string_agg(concat_ws(E'\\t', user_id, company_id, metadata), E'\\n' order by user_id)
        from sluice.users where environment_id = $1)
       || coalesce((select string_agg(concat_ws(E'\\t', company_id, metadata), E'\\n' order by company_id)
        from sluice.companies where environment_id = $1), '')
     ) as digest`,
    [environmentId],
  );
  return row?.digest ?? '';
}

async function ended(sql: Sql, jobId: string): Promise<void> {
  const load = await waitFor(`job ${jobId} to end`, async () => {
    const [row] = await sql<{ status: string; failure: unknown }>(
      `select status, failure_message as failure from sluice.loads
       where job_id = $1 and status not in ('queued', 'processing')`,
      [jobId],
    );
    return row ?? null;
  });
  expect(load).toEqual({ status: 'completed', failure: null });
}

/** Returns `met` if a worker is in the phase, `over` if the job has ended, and otherwise `null`. */
async function stateOf({ sql }: Site, jobId: string, phase: Phase): Promise<'met' | 'over' | null> {
  const [state] = await sql<{ works: boolean; open: boolean }>(
    `select
       exists (select from pg_stat_activity
         where datname = current_database() and application_name like $1 and state <> 'idle') as works,
       exists (select from sluice.loads where job_id = $2 and status in ('queued', 'processing')) as open`,
    [`sluice ${phase} %`, jobId],
  );
  if (state?.open === false) return 'over';
  return state?.works === true ? 'met' : null;
}

async function killIn(site: Site, jobId: string, phase: Phase): Promise<'met' | 'over'> {
  const isMet = await waitFor(`the ${phase} of the job`, () => stateOf(site, jobId, phase), { everyMs: 1 });
  await site.killWorkers();
  return isMet;
}
