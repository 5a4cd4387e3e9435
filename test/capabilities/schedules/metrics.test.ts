import { expect, test } from 'vitest';
import { openServer } from '../../support/servers/http.ts';
import { scrape } from '../../support/servers/metrics.ts';

const { t, server } = await openServer();

test('metrics show the runs by status, and the success of each schedule by its name', async () => {
  const { system: base, environment } = t;
  const otherEnvironment = (await t.addEnvironment('other')).environment;
  const schedule = (name: string, definition: string | null, environmentId = environment.environmentId) =>
    base.pool.query(
      `insert into schedules (environment_id, schedule_name, considered_until, definition) values ($1, $2, now(), $3)`,
      [environmentId, name, definition],
    );
  const run = (name: string, status: string, ago: string, environmentId = environment.environmentId) =>
    base.pool.query(
      `insert into schedule_runs (environment_id, schedule_name, due_at, created_at, cause, status, definition, ended_at, reason_code)
       select $1, $2, at, at, 'due', $3::text, '{}', case when $3 not in ('queued', 'waiting') then at end,
         case when $3 in ('failed', 'skipped') then 'x' end
       from (select now() - $4::interval) as run (at)`,
      [environmentId, name, status, ago],
    );
  for (const name of ['good', 'failing', 'never', 'new']) await schedule(name, '{}');
  await schedule('good', '{}', otherEnvironment.environmentId);
  await schedule('removed', null);
  await run('good', 'completed', '3 days');
  await run('good', 'unchanged', '10 min');
  await run('good', 'skipped', '1 min');
  await run('good', 'queued', '30 min');
  await run('good', 'completed', '1 hour', otherEnvironment.environmentId);
  await run('failing', 'completed_with_rejects', '2 hours');
  await run('failing', 'failed', '1 hour');
  await run('failing', 'skipped', '5 min');
  await run('failing', 'waiting', '10 s');
  await run('never', 'failed', '4 hours');
  await run('never', 'failed', '3 hours');
  await run('removed', 'failed', '30 hours');
  const { samples, page } = await scrape(server);
  const scheduleSamples = Object.fromEntries(
    [...samples].filter(([name]) => /^sluice_.*schedule/.test(name)),
  );
  expect(scheduleSamples).toEqual({
    'sluice_schedule_runs{status="queued"}': 1,
    'sluice_schedule_runs{status="running"}': 0,
    'sluice_schedule_runs{status="waiting"}': 1,
    sluice_oldest_queued_schedule_run_seconds: expect.closeTo(1_800, -2),
    'sluice_schedule_runs_last_day{status="completed"}': 1,
    'sluice_schedule_runs_last_day{status="completed_with_rejects"}': 1,
    'sluice_schedule_runs_last_day{status="unchanged"}': 1,
    'sluice_schedule_runs_last_day{status="skipped"}': 2,
    'sluice_schedule_runs_last_day{status="failed"}': 3,
    // If two environments have schedules with the same name, the metric has the higher of the two
    // values. The metric omits schedules that have no run or no definition.
    'sluice_schedule_seconds_since_success{schedule="failing"}': expect.closeTo(7_200, -2),
    'sluice_schedule_seconds_since_success{schedule="good"}': expect.closeTo(3_600, -2),
    'sluice_schedule_seconds_since_success{schedule="never"}': expect.closeTo(14_400, -2),
    'sluice_schedule_failing{schedule="failing"}': 1,
    'sluice_schedule_failing{schedule="good"}': 0,
    'sluice_schedule_failing{schedule="never"}': 1,
  });
  for (const word of [environment.name, otherEnvironment.name]) expect(page).not.toContain(word);
});
