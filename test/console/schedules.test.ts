import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import type { Schedule } from '../../src/api/source.ts';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';

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

/** Counts the presses of buttons, links and fields from now on. */
async function countClicks(page: Page): Promise<() => number> {
  let clicks = 0;
  await page.exposeFunction('clicked', () => clicks++);
  await page.evaluate('addEventListener("click", ({ isTrusted }) => isTrusted && clicked(), true)');
  return () => clicks;
}

// proves: console-schedule
test('a finished load is repeated every night after at most four clicks', async () => {
  const jobId = await stage.load('Kunde;name\nu1;Ada\n', 'customers.csv', {
    map: JSON.stringify({ Kunde: 'user_id' }),
    max_errors: '3',
  });
  const page = await stage.open(`/jobs/${jobId}`);
  const clicks = await countClicks(page);
  await page.locator('.menu > summary').click();
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  expect(clicks()).toBeLessThanOrEqual(4);
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
  const clicks = await countClicks(page);
  await page.locator('.menu > summary').click();
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  expect([1, 2, 3, 4]).toContain(clicks());
  expect((await scheduleOf('nightly-export')).definition).toMatchObject({
    export: { range: 'yesterday', event_type: ['users'], format: 'csv' },
  });
});

test('a schedule written in the page is marked where it is wrong, shows its next due times, runs, pauses, changes and is deleted', async () => {
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
