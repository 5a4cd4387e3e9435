import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';
import { form } from '../support/http.ts';

const stage = consoleStage();

test('the list of jobs shows what ran, can be read by everybody, and its filters stand in the address', async () => {
  const csv = [
    'user_id,email,plan',
    ...Array.from({ length: 500 }, (_, n) => `u${n},u${n}@example.com,pro`),
  ].join('\n');
  const send = async (text: string, filename: string) => {
    const body = form(text, { filename });
    const { body: job } = await stage.server.json<{ job_id: string }>('/v1/imports', {
      method: 'POST',
      body,
    });
    return stage.t.ended(job.job_id);
  };
  await send(csv, 'users-2026-11-22.csv');
  await send('user_id,email\n,nobody\nu1,u1@example.com\n', '<img src=x onerror=alert(1)>.csv');
  await stage.server.fetch('/api/v1/analytics/exports', { method: 'POST' });
  await expectGoodInEveryLook(stage, 'jobs', '/jobs', (page) =>
    page.getByText('users-2026-11-22.csv').waitFor(),
  );
  const page = await stage.open('/jobs');
  await page.getByLabel('Type').selectOption('import');
  await page.waitForURL(/type=import/);
  await page.getByText('2 jobs').waitFor();
  expect(await page.locator('tbody tr').count()).toBe(2);
});
