import { describe, expect, test } from 'vitest';
import { MIRROR_SLICE_PROFILES } from '../../src/domain/limits.ts';
import type { Mirrored } from '../../src/domain/mirror.ts';
import { readLoad, report } from '../support/exactness.ts';
import { type Api, hold, oneQueue, onSite, workingSession } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const before = 4 * MIRROR_SLICE_PROFILES;
const kept = 1_000;
const idOf = (at: number): string => `u${String(at).padStart(6, '0')}`;
const csv = (count: number) =>
  `user_id,plan\n${Array.from({ length: count }, (_, at) => `${idOf(at)},pro\n`).join('')}`;

async function upload(api: Api, body: string, query = ''): Promise<string> {
  const headers = { 'content-type': 'text/csv' };
  const response = await api.fetch(`/v1/imports${query}`, { method: 'POST', body, headers });
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_id: string }).job_id;
}

describe.concurrent.each(oneQueue('postgres'))('with the queue on %s', (queue) => {
  // proves: mirror, load-survives
  test('a mirror is exact although kill -9 meets it between merge and removal, and again between two slices of the removal', () =>
    onSite({ queue }, async (site) => {
      const { sql } = site;
      const api = await site.serve();
      await site.workers(2);
      const ended = (jobId: string) =>
        waitFor(`job ${jobId} to end`, async () => {
          const { status } = await readLoad(sql, jobId);
          return status === 'completed' || null;
        });
      const count = async () =>
        (await sql<{ n: number }>('select count(*)::int as n from sluice.users'))[0]?.n;
      const mirrorOf = async (jobId: string) =>
        (
          await sql<{ mirror: Mirrored | null }>(
            'select to_json(m) as mirror from sluice.loads left join sluice.load_mirrors m using (load_id) where job_id = $1',
            [jobId],
          )
        )[0]?.mirror;
      const killAt = async (statement: string, values: readonly unknown[], look: () => Promise<void>) => {
        const release = await hold(site, statement, values);
        await site.workers(2);
        await waitFor('the finish to wait', () => workingSession(sql, 'finish', "wait_event_type = 'Lock'"));
        await site.killWorkers();
        await release();
        await site.expireLeases();
        await look();
      };
      await ended(await upload(api, csv(before)));
      await site.killWorkers();
      const jobId = await upload(api, csv(kept), '?mirror=remove&max_removed=100%25');

      await killAt('lock table sluice.load_missing in exclusive mode', [], async () => {
        expect([await mirrorOf(jobId), await count()]).toEqual([null, before]);
      });
      const done = MIRROR_SLICE_PROFILES;
      await killAt(
        'select from sluice.users where user_id = $1 for update',
        [idOf(kept + done + 5)],
        async () => {
          expect(await mirrorOf(jobId)).toMatchObject({ missing: before - kept, done, kept_because: null });
          expect(await count()).toBe(before - done);
        },
      );
      const single = idOf(before - 1);
      const record = { user_id: single, metadata: { single: 'kept' } };
      const headers = { 'content-type': 'application/json' };
      const answer = await api.fetch('/v1/identify', {
        method: 'POST',
        headers,
        body: JSON.stringify(record),
      });
      expect(answer.status).toBe(202);

      await site.workers(2);
      await ended(jobId);
      expect(await mirrorOf(jobId)).toMatchObject({ missing: before - kept, done: before - kept - 1 });
      expect(await sql('select metadata from sluice.users where user_id = $1', [single])).toEqual([
        { metadata: { plan: 'pro', single: 'kept' } },
      ]);
      expect(await count()).toBe(kept + 1);
      expect(await sql('select from sluice.load_missing')).toEqual([]);
      const undo = await api.fetch(`/v1/background_jobs/${jobId}/undo`, { method: 'POST' });
      await ended(((await undo.json()) as { job_id: string }).job_id);
      expect(await count()).toBe(before);
      report(`mirror with kills, ${queue}: exact`);
    }));
});
