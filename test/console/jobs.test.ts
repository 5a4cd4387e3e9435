import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/browsers/console.ts';

const stage = consoleStage();

test('the list of jobs shows results and owners, and its filters are in the address', async () => {
  const csv = [
    'user_id,email,plan',
    ...Array.from({ length: 500 }, (_, n) => `u${n},u${n}@example.com,pro`),
  ].join('\n');
  await stage.t.ended(await stage.load(csv, 'users-2026-11-22.csv'));
  const script = '<img src=x onerror=alert(1)>.csv';
  await stage.t.ended(await stage.load('user_id,email\n,nobody\nu1,u1@example.com\n', script));
  const parent = await stage.load('user_id,email\nm1,a\n,b\n', 'half-refused.csv');
  await stage.t.ended(parent);
  await stage.server.fetch('/api/v1/analytics/exports', { method: 'POST' });
  const page = await expectGoodInEveryLook(stage, 'jobs', '/jobs', (each) =>
    each.getByText('users-2026-11-22.csv').waitFor(),
  );
  const row = page.locator('tr', { hasText: 'half-refused.csv' });
  await row.getByText(/^API key /).waitFor();
  expect(await row.getByRole('img').getAttribute('aria-label')).toBe('1 new, 1 rejected');
  expect(await row.count()).toBe(1);
  await row.getByText('File', { exact: true }).waitFor();
  await page.getByLabel('State').selectOption('completed');
  await page.waitForURL(/status=completed$/);
  await page.getByText('4 jobs').waitFor();
  await page.getByLabel('State').selectOption('with refused records');
  await page.waitForURL(/has_rejects=true$/);
  await page.getByText('2 jobs').waitFor();
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.getByText('4 jobs').waitFor();
  const labels = await page.locator('.filters .field-label').all();
  const tops = await Promise.all(labels.map(async (label) => (await label.boundingBox())?.y));
  expect(new Set(tops).size).toBe(1);
  await page.getByLabel('Type').selectOption('File');
  await page.waitForURL(/type=import$/);
  await page.getByText('3 jobs').waitFor();
  expect(await page.locator('tbody tr').count()).toBe(3);
});
