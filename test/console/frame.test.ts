import Fastify from 'fastify';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createSignInLink } from '../../src/access/console-session.ts';
import { readConfig } from '../../src/config.ts';
import { addLoadShedding } from '../../src/http/plugins/limits.ts';
import { showConsole } from '../../src/http/routes/service.ts';
import { consoleStage, expectAccessible, expectGoodInEveryLook, phone } from '../support/console.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage();

test('the page to sign in can be read by everybody, says what is wrong with a key, and then shows the address that was asked for', async () => {
  await expectGoodInEveryLook({ open: stage.openSignedOut }, 'sign-in', '/', (page) =>
    page.getByLabel('Key').waitFor(),
  );
  const page = await stage.openSignedOut('/jobs?status=failed', { width: phone });
  for (const key of [`slk_${'0'.repeat(12)}_${'0'.repeat(40)}`, stage.t.key]) {
    await page.getByLabel('Key').fill(key);
    await page.keyboard.press('Enter');
    if (key !== stage.t.key)
      await page.getByRole('alert').getByText('Unauthorized - Invalid API key').waitFor();
  }
  await page.getByText('No job matches').waitFor();
  expect(page.url()).toContain('/console/jobs?status=failed');
});

test('a one-time link signs in, and leaves no token in the address; used again, the page says so and how to get another', async () => {
  const token = await createSignInLink(stage.t.system.db, stage.t.environment.environmentId);
  const page = await stage.openSignedOut(`/jobs#link=${token}`);
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(page.url()).not.toContain(token);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Key').waitFor();
  const again = await stage.openSignedOut(`/jobs#link=${token}`, { width: phone });
  await again.getByRole('alert').getByText('This link was used already, or has expired').waitFor();
  expect(await again.getByRole('alert').innerText()).toContain('sluice console link');
  expect(again.url()).not.toContain(token);
  await expectAccessible(again);
});

test('until the server says who is signed in the page says what it waits for; of an overloaded server it says so, and asks again', async () => {
  const page = await stage.open('/jobs');
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  await page.route('**/v1/console/session', async (route) => {
    if (asked++ > 0) return route.continue();
    await held;
    await route.fulfill({
      status: 503,
      json: { errors: [{ error_code: 'unavailable', message: 'The service is overloaded', details: '' }] },
    });
  });
  await page.reload();
  await page.getByText('Checking your session').waitFor();
  await expectAccessible(page);
  await page.getByRole('alert').getByText('The server has not answered yet').waitFor();
  release();
  await page.getByRole('alert').getByText('The service is overloaded').waitFor();
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
});

test('an overloaded server still sends the page and its files', async () => {
  const app = Fastify();
  const config = readConfig({});
  addLoadShedding(app, { config, log: pino({ level: 'silent' }) }, 1);
  app.get('/other', () => 'served');
  showConsole(app, stage.t.system);
  try {
    await waitFor('a refusal', async () => (await app.inject('/other')).statusCode === 503);
    const page = await app.inject('/console/jobs');
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    for (const [, file = ''] of page.body.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g))
      expect([file, (await app.inject(file)).statusCode]).toEqual([file, 200]);
  } finally {
    await app.close();
  }
});

// proves: console-keyboard
test('from signing in to the page of a job by keyboard alone', async () => {
  const jobId = await stage.load('user_id,name\nu1,Ada\n', 'by-keyboard.csv');
  await stage.t.ended(jobId);
  const page = await stage.openSignedOut('/jobs');
  await page.getByLabel('Key').waitFor();
  await page.keyboard.type(stage.t.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('next and previous row').waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('by-keyboard.csv').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('keyboard');
  await page.keyboard.press('Enter');
  await page.waitForURL(/filename=keyboard/);
  // Out of the filter; then to the first row, wherever the focus is.
  await page.keyboard.press('Tab');
  await page.keyboard.press('j');
  await page.waitForURL(new RegExp(`row=${jobId}`));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'by-keyboard.csv' }).waitFor();
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
});

// proves: first-screen
test('the first screen is less than 60 kB, compressed', async () => {
  const page = await stage.open('/jobs');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  const sizes = (await page.evaluate(
    `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/console/')).map(({ encodedBodySize }) => encodedBodySize)`,
  )) as readonly number[];
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  expect(sizes.length).toBeGreaterThan(3);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(60_000);
});
