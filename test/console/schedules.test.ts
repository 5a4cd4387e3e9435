import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import type { Schedule } from '../../src/api/source.ts';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-console-schedules-'));
writeFileSync(join(folder, 'schedules.yaml'), 'schedules: [{ name: of-file, cron: "@daily", export: {} }]');
const stage = consoleStage({
  worker: true,
  settings: {
    SCHEDULES_FILE: join(folder, 'schedules.yaml'),
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
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('textbox', { name: 'Address' }).click();
  await page.keyboard.type('https://partner.example.com/customers.csv');
  await page.keyboard.press('Tab');
  await page.keyboard.type(`Bearer \${env:SCHEDULE_TOKEN}`);
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
  await page.getByRole('link', { name: 'Schedule …' }).click();
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  expect([1, 2, 3, 4]).toContain(clicks());
  expect((await scheduleOf('nightly-export')).definition).toMatchObject({
    export: { range: 'yesterday', event_type: ['users'], format: 'csv' },
  });
});

test('a schedule made in the page runs, is changed and is deleted; one of the file is only shown', async () => {
  await mkdir(join(folder, 'default'));
  await writeFile(join(folder, 'default/a.csv'), 'user_id\na\n');
  const look = (page: Page) => page.getByRole('button', { name: 'Create the schedule' }).waitFor();
  await expectGoodInEveryLook(stage, 'new-schedule', '/schedules/-/new', look);
  const page = await stage.open('/schedules');
  await page.getByRole('link', { name: 'New schedule' }).click();
  await page.getByLabel('Source').selectOption('files');
  await page.getByLabel('Path in the folder').fill('/etc/passwd');
  await page.getByLabel('Name').fill('drop');
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('must not begin with /').waitFor();
  await page.getByLabel('Path in the folder').fill('*.csv');
  await page.getByRole('button', { name: 'Create the schedule' }).click();
  await page.getByText('It has not run yet').waitFor();
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Other').check();
  await page.getByLabel('Cron expression').fill('15 4 * * *');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  expect((await scheduleOf('drop')).definition).toMatchObject({
    cron: '15 4 * * *',
    load: { files: { pattern: '*.csv' } },
  });
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('link', { name: 'of-file' }).first().click();
  await page.getByText('from the schedules file').waitFor();
  expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0);
  expect((await stage.server.fetch('/v1/schedules/drop')).status).toBe(404);
});
