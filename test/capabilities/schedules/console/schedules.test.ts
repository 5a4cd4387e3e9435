import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import type { Schedule } from '../../../../src/capabilities/schedules/api.ts';
import { endWaitingRuns } from '../../../../src/capabilities/schedules/end-run.ts';
import { saveSchedule } from '../../../../src/capabilities/schedules/schedule-store.ts';
import { consoleStage, expectAccessible, expectGoodInEveryLook } from '../../../support/browsers/console.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { doNext, readSchedule, scheduleContext } from '../support/schedules.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-console-schedules-'));
const stage = consoleStage({
  worker: true,
  settings: {
    SCHEDULES_LOCAL_ROOTS: folder,
    SCHEDULES_VARIABLES: 'default:SCHEDULE_TOKEN',
  },
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const scheduleOf = async (name: string) => (await stage.server.json<Schedule>(`/v1/schedules/${name}`)).body;

async function countClicks(page: Page): Promise<() => Promise<number>> {
  // A click on a label also triggers a click on its input. The click on the input is not counted.
  const isCounted = '({ isTrusted, target }) => isTrusted && target.type !== "file"';
  await page.evaluate(`clicks = 0; addEventListener("click", (e) => (${isCounted})(e) && clicks++, true)`);
  return () => page.evaluate<number>('clicks');
}

test('the overview loads a file in 3 clicks, explains failures in 1, exports in 2', async () => {
  mkdirSync(join(folder, 'default'), { recursive: true });
  writeFileSync(join(folder, 'default', 'crm.csv'), 'Contact,Name\n101,Ada\n');
  const definition = { cron: '0 3 * * *', load: { files: { pattern: 'crm.csv' } } };
  for (const name of ['crm-a', 'crm-b']) {
    const body = JSON.stringify(definition);
    const headers = { 'content-type': 'application/json' };
    await stage.server.json(`/v1/schedules/${name}`, { method: 'PUT', body, headers });
    await stage.post(`/v1/schedules/${name}/runs`);
  }
  const context = scheduleContext(stage.t);
  await waitFor('the end of the runs', async () => !(await doNext(context)));
  await endWaitingRuns(context);
  const begin = async () => {
    const page = await stage.open('/');
    return { page, clicks: await countClicks(page) };
  };

  const night = await begin();
  await night.page
    .getByRole('listitem')
    .filter({ hasText: /2 schedules fail: crm-[ab], crm-[ab]/ })
    .getByRole('link', { name: 'See why' })
    .click();
  const why = /^The header names no user_id or company_id column.*columns seen: Contact, Name/;
  await expect.poll(() => night.page.getByText(why).count()).toBe(2);
  expect(await night.clicks()).toBe(1);
  await night.page.getByRole('link', { name: 'crm-a' }).click();
  await night.page.getByText(why).waitFor();
  expect(await night.page.getByText(why).count()).toBe(1);

  const load = await begin();
  await load.page.getByRole('link', { name: 'Load a file' }).first().click();
  const chooser = load.page.waitForEvent('filechooser');
  await load.page.getByText('Choose files').click();
  const buffer = Buffer.from('user_id,name\ng1,Ada\ng2,Grace\n');
  await (await chooser).setFiles({ name: 'good.csv', mimeType: 'text/csv', buffer });
  await load.page.getByRole('button', { name: 'Load 2 records' }).click();
  await load.page.getByText('2 users stored in').waitFor();
  expect(await load.clicks()).toBe(3);

  const request = { event_type: ['users'], format: 'csv', exclusions: 'user:g2' };
  const { job_id } = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', request);
  const repeated = await begin();
  await repeated.page.getByRole('link', { name: 'Export', exact: true }).click();
  await expectAccessible(repeated.page);
  const row = repeated.page.getByRole('row', { name: /exclusions user:g2/ });
  await row.getByRole('button', { name: 'Export again' }).click();
  await repeated.page.getByText(/^1 row exported in/).waitFor();
  expect(await repeated.clicks()).toBe(2);
  expect(repeated.page.url()).not.toContain(job_id);
});

// proves: console-schedule
test('a finished load is repeated every night after at most four clicks', async () => {
  const jobId = await stage.load('Kunde;name\nu1;Ada\n', 'customers.csv', {
    map: JSON.stringify({ Kunde: 'user_id' }),
    max_errors: '3',
  });
  await stage.t.ended(jobId);
  const page = await stage.open(`/jobs/${jobId}`);
  const clicks = await countClicks(page);
  await page.locator('.menu > summary').click();
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  expect(await clicks()).toBeLessThanOrEqual(4);
  const { definition, time_zone } = await scheduleOf('nightly-customers');
  expect(time_zone).toBe('Europe/Berlin');
  expect(definition).toMatchObject({
    cron: '0 3 * * *',
    load: {
      http: {
        url: 'https://partner.example.com/customers.csv',
        headers: { Authorization: `Bearer \${env:SCHEDULE_TOKEN}` },
      },
      map: { Kunde: 'user_id' },
      max_errors: 3,
    },
  });
});

// proves: console-schedule
test('a finished export is repeated every night after at most four clicks', async () => {
  const { job_id } = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', {
    event_type: ['users'],
    format: 'csv',
  });
  const page = await stage.open(`/jobs/${job_id}`);
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  const clicks = await countClicks(page);
  await page.locator('.menu > summary').click();
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  expect([1, 2, 3, 4]).toContain(await clicks());
  expect((await scheduleOf('nightly-export')).definition).toMatchObject({
    export: { range: 'yesterday', event_type: ['users'], format: 'csv' },
  });
});

test('an export whose lists are cut on its page cannot become a schedule', async () => {
  const { job_id } = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', {
    user_id: Array.from({ length: 101 }, (_, at) => `cut${at}`),
  });
  const page = await stage.open(`/jobs/${job_id}`);
  await page.getByText(/^0 rows exported in/).waitFor();
  await page.getByRole('link', { name: 'manifest.json' }).waitFor();
  expect(await page.getByRole('link', { name: 'Schedule …' }).count()).toBe(0);
});

test('a schedule is written in the page, marked, run, paused, changed and deleted', async () => {
  const look = (page: Page) => page.getByRole('button', { name: 'Create the schedule' }).waitFor();
  await expectGoodInEveryLook(stage, 'new-schedule', '/schedules/-/new', look);
  const page = await stage.open('/schedules');
  await page.getByRole('link', { name: 'New schedule' }).click();
  await page.getByLabel('Name').fill('drop');
  const text = (pattern: string, cron = '0 3 * * *') =>
    `cron: "${cron}"\ntimezone: UTC\nload:\n  files: { pattern: "${pattern}" }\n`;
  const editor = page.getByLabel('As YAML');
  await editor.fill(text('/etc/passwd'));
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('must not begin with /').waitFor();
  expect(await page.locator('.editor-lines [data-marked]').count()).toBe(1);
  await editor.fill(text('*.csv'));
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  await page.getByText('Next due:').waitFor();
  await page.getByRole('button', { name: /Run now/ }).click();
  await page.getByText('queued', { exact: true }).first().waitFor();
  await page.getByRole('button', { name: /Pause/ }).click();
  await page.getByText('It is not due.').waitFor();
  await page.getByRole('button', { name: /Resume/ }).click();
  await page.getByText('Next due:').waitFor();
  await editor.fill(text('*.csv', '15 4 * * *'));
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(async () => (await scheduleOf('drop')).cron).toBe('15 4 * * *');
  await page.goto(new URL('/console/schedules/-/new', page.url()).href);
  await page.getByLabel('Name').fill('drop');
  await page.getByText('There is a schedule drop').waitFor();
  expect(await page.getByRole('button', { name: 'Create the schedule' }).isDisabled()).toBe(true);
  await page.goto(new URL('/console/schedules/drop', page.url()).href);
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('heading', { name: 'Schedules' }).waitFor();
  expect((await stage.server.fetch('/v1/schedules/drop')).status).toBe(404);
});

const script = '<img src=x onerror=alert(1)>';
const schedules = [
  {
    name: 'nightly-users',
    cron: '0 2 * * *',
    timezone: 'Europe/Berlin',
    load: { files: { pattern: 'nightly/users-*.csv' } },
  },
  {
    name: 'hourly-crm',
    cron: '*/15 * * * *',
    enabled: false,
    load: { http: { url: 'https://crm.example.com/users.ndjson' } },
  },
  { name: 'weekly-export', cron: '30 5 * * 1', export: { range: 'last_7_days', format: 'parquet' } },
];

test('schedules show past and next runs, are paused, and repeat a failed run', async () => {
  const { pool } = stage.t.system;
  const { environmentId } = stage.t.environment;
  for (const schedule of schedules) {
    await saveSchedule(stage.t.system.db, environmentId, readSchedule(schedule), new Date());
  }
  await pool.query(
    `insert into schedule_runs (environment_id, schedule_name, due_at, cause, status, definition, started_at, ended_at, reason_code, reason)
    select $1, 'nightly-users', date_trunc('day', now()) - make_interval(days => 8 - at::int, hours => -1), 'due', status,
      '{"timeZone":"UTC","work":{"kind":"load"}}', now() - interval '1 min', now(),
      case when status in ('failed', 'skipped') then 'source_unreachable' end, case when status in ('failed', 'skipped') then $2 end
    from regexp_split_to_table('completed completed completed_with_rejects unchanged skipped completed failed', ' ')
      with ordinality _ (status, at)`,
    [stage.t.environment.environmentId, `no answer ${script}`],
  );
  const page = await expectGoodInEveryLook(stage, 'schedules', '/schedules', (each) =>
    each.getByText('nightly-users').first().waitFor(),
  );
  await page.getByRole('button', { name: 'Pause nightly-users' }).click();
  await page.getByText('paused', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Resume nightly-users' }).click();
  await page.getByRole('button', { name: 'Pause nightly-users' }).waitFor();
  await page.getByRole('link', { name: 'nightly-users' }).first().click();
  await page.getByText(`no answer ${script}`).first().waitFor();
  await expectGoodInEveryLook(stage, 'schedule', '/schedules/nightly-users', (each) =>
    each.getByText('completed with rejects').waitFor(),
  );
  const repeatButtons = page.getByRole('button', { name: 'Run again' });
  const countBefore = await repeatButtons.count();
  await repeatButtons.first().click();
  await waitFor('the run that is due again', async () => (await repeatButtons.count()) < countBefore);
});
