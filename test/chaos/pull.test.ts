import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ScheduleRun } from '../../src/api/source.ts';
import { PULL_LAG_MS } from '../../src/domain/limits.ts';
import { productKey, productSecret, startProducts } from '../support/products.ts';
import { onSite } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const dayMs = 86_400_000;
const eventsOfDay = 500;
/** The last four that are over, the newest first, as they are asked for. */
const days = [1, 2, 3, 4].map((ago) =>
  new Date(Date.now() - PULL_LAG_MS - ago * dayMs).toISOString().slice(0, 10),
);

// proves: pull-days, pull-partial
test('a pull whose worker is killed in the middle of a day goes on with that day, and stores every event once', async () => {
  const products = await startProducts();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-pull-'));
  const file = join(folder, 'schedules.json');
  const source = { user: '${env:SCHEDULE_KEY}', secret: '${env:SCHEDULE_SECRET}', project_id: '7' };
  const reach = { host: products.url, allow_http: true, allow_private: true };
  const load = { mixpanel: { from: days[3], overlap_days: 0, ...source, ...reach } };
  await writeFile(file, JSON.stringify({ schedules: [{ name: 'pull', cron: '0 0 1 1 *', load }] }));
  for (const day of days) {
    for (let n = 0; n < eventsOfDay; n++)
      products.events.push({ id: `${day} ${n}`, user: `u${n}`, at: `${day}T10:00:00.000Z` });
  }
  const keys = { SCHEDULE_KEY: productKey, SCHEDULE_SECRET: productSecret };
  const settings = { SCHEDULES_FILE: file, SCHEDULES_ALLOW_PRIVATE: 'true', ...keys };
  try {
    await onSite({ queue: 'postgres', settings }, async (site) => {
      const api = await site.serve();
      // Of the second day half a line comes, and then nothing.
      products.instead.push(
        null,
        (_, response) => void response.writeHead(200).write('{"event":"Paid","prop'),
      );
      const doomed = await site.work();
      const path = '/v1/schedules/pull/runs';
      const body = JSON.stringify({});
      const asked = await api.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      expect(asked.status).toBe(202);
      await waitFor('the half of a day', () => products.instead.length === 0);
      expect(products.asked).toEqual(days.slice(0, 1));
      await doomed.kill('SIGKILL');
      await site.expireLeases();
      await site.work();
      const run = await waitFor('the run to end', async () => {
        const runs = (await (await api.fetch(path)).json()) as ScheduleRun[];
        return runs[0]?.ended_at == null ? null : runs[0];
      });
      expect(run).toMatchObject({ status: 'completed', attempts: 2 });
      expect(products.asked).toEqual(days);
      const rows = await site.sql<{ day: string; events: number }>(
        `select to_char(inserted_at at time zone 'UTC', 'YYYY-MM-DD') as day, count(*)::integer as events
        from sluice.events group by 1 order by 1 desc`,
      );
      expect(rows).toEqual(days.map((day) => ({ day, events: eventsOfDay })));
    });
  } finally {
    await products.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
