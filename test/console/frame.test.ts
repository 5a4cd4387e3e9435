import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { createSignInLink } from '../../src/access/console-session.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import {
  consoleStage,
  expectAccessible,
  expectGoodInEveryLook,
  hurryTo,
  phone,
} from '../support/browsers/console.ts';
import { screenPaths } from '../support/browsers/console-screens.ts';
import { serve } from '../support/servers/http.ts';
import { startPostgresProxy } from '../support/servers/postgres-proxy.ts';

const stage = consoleStage();
const alertOf = (page: Page, text: string) => page.getByRole('alert').getByText(text);

test('the sign-in page names the fault of a key, and then shows the requested page', async () => {
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

test('a one-time link signs in once, and leaves no token in the address', async () => {
  const token = await createSignInLink(stage.t.system, stage.t.environment.environmentId);
  const page = await stage.openSignedOut(`/jobs#link=${token}`);
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(page.url()).not.toContain(token);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Key').waitFor();
  const second = await stage.openSignedOut(`/jobs#link=${token}`, { width: phone });
  await second.getByRole('alert').getByText('This link was used already, or has expired').waitFor();
  expect(await second.getByRole('alert').innerText()).toContain('sluice console link');
  expect(second.url()).not.toContain(token);
  await expectAccessible(second);
});

test('a page names what it waits for, and retries while the server is overloaded', async () => {
  const page = await stage.open('/jobs', { clock: true });
  let release = (): void => undefined;
  const answerReady = new Promise<void>((resolve) => {
    release = resolve;
  });
  let requests = 0;
  await page.route('**/v1/console/session', async (route) => {
    if (requests++ > 0) return route.continue();
    await answerReady;
    await route.fulfill({
      status: 503,
      json: { errors: [{ error_code: 'unavailable', message: 'The service is overloaded', details: '' }] },
    });
  });
  await page.reload();
  await page.getByText('Checking your session').waitFor();
  await expectAccessible(page);
  await hurryTo(page, alertOf(page, 'The server has not answered yet'));
  release();
  await alertOf(page, 'The service is overloaded').waitFor();
  await hurryTo(page, page.getByRole('heading', { name: 'Jobs' }));
});

// proves: console-outage
test('without the database pages keep their input, show the outage, and recover', async () => {
  const jobId = await stage.load(
    'event_type,user_id,event_name,inserted_at\ntrack,,opened,2026-01-02T03:04:05Z\n',
    'e.csv',
  );
  await stage.t.ended(jobId);
  const proxy = await startPostgresProxy(stage.t.databaseUrl);
  const system = stage.t.openAnother({ databaseUrl: proxy.url });
  const server = await serve({ ...stage.t, system });
  try {
    const origin = server.address;
    const page = await stage.open(`/jobs/${jobId}/refused`, { origin, clock: true });
    const list = await stage.open('/jobs', { origin, clock: true });
    await list.getByText('e.csv').waitFor();
    await page.getByLabel('user_id, row 1').fill('u1');

    proxy.mute();
    const away = 'The service has been without its database since';
    await hurryTo(page, alertOf(page, away));
    expect(await page.getByRole('alert').count()).toBe(1);
    await expectGoodInEveryLook({ open: async () => list }, 'outage', '/jobs', async () => {
      await hurryTo(list, alertOf(list, away));
      await list.getByText('e.csv').waitFor();
    });
    const newPage = await page.context().newPage();
    await newPage.goto(new URL('/console/people', origin).href);
    await hurryTo(newPage, alertOf(newPage, away));
    await expectAccessible(newPage);

    proxy.cut();
    await hurryTo(newPage, newPage.getByRole('heading', { name: 'Users' }));
    await hurryTo(page, alertOf(page, away), { isGone: true });
    expect(await page.getByLabel('user_id, row 1').inputValue()).toBe('u1');
    await page.getByRole('button', { name: 'Send 1 record' }).click();
    await page.getByText('1 record sent').waitFor();
  } finally {
    proxy.cut();
    await server.stop();
    await system.close();
    await proxy.close();
  }
});

// proves: console-outage
test('an overloaded service opens the console, which shows the overload to its end', async () => {
  const { system } = stage.t;
  await stage.t.ended(await stage.load('user_id\nu1\n', 'before-the-overload.csv'));
  const config = { ...system.config, maxEventLoopDelayMs: 50 };
  const server = await serve({ ...stage.t, system: { ...system, config } });
  let isBusy = true;
  try {
    const page = await stage.open('/schedules/-/new', { origin: server.address, clock: true });
    await page.getByLabel('Name').fill('typed-before');
    const block = (): void => {
      // Blocks the event loop without using the processor.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      if (isBusy) setTimeout(block, 0);
    };
    block();
    const overloaded = 'The service has been overloaded since';
    await hurryTo(page, alertOf(page, overloaded));
    const newPage = await page.context().newPage();
    await newPage.goto(new URL('/console/jobs', server.address).href);
    await newPage.getByRole('heading', { name: 'Jobs' }).waitFor();
    await hurryTo(newPage, alertOf(newPage, overloaded));

    isBusy = false;
    await hurryTo(page, alertOf(page, overloaded), { isGone: true });
    expect(await page.getByLabel('Name').inputValue()).toBe('typed-before');
    await newPage.getByText('before-the-overload.csv').waitFor();
  } finally {
    isBusy = false;
    await server.stop();
  }
});

test('a screen that fails or does not arrive leaves the frame and a way to another', async () => {
  const page = await stage.open('/jobs');
  await page.route(/\/v1\/users(\?|$)/, (route) => route.fulfill({ json: { data: [null], metadata: {} } }));
  await page.route('**/assets/schedules-*.js', (route) => route.abort());
  await page.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('heading', { name: 'This page failed' }).waitFor();
  await expectAccessible(page);
  await page.locator('#main').getByRole('link', { name: 'Overview' }).click();
  await page.locator('#main').getByRole('heading', { name: 'Overview' }).waitFor();
  await page.getByRole('link', { name: 'Schedules' }).click();
  await page.getByText('The service has been updated since').waitFor();
  await page.unroute('**/assets/schedules-*.js');
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('heading', { name: 'Schedules' }).waitFor();
});

test('an answer from outside the API is an error that keeps the input for a retry', async () => {
  const page = await stage.open('/jobs');
  const alert = alertOf(page, 'The page failed');
  const isProxied = () => page.route('**/v1/rules', (route) => route.fulfill({ body: '<!doctype html>' }));
  await isProxied();
  await page.getByRole('link', { name: 'Rules' }).click();
  await alert.waitFor();
  await page.unroute('**/v1/rules');
  await page.getByRole('button', { name: 'Try again' }).click();
  await alert.waitFor({ state: 'detached' });
  await page.getByLabel('As YAML').fill('no: rules');
  await isProxied();
  await page.getByRole('button', { name: 'Apply' }).click();
  await alert.waitFor();
  await page.unroute('**/v1/rules');
  await page.getByRole('button', { name: 'Apply' }).click();
  await alert.waitFor({ state: 'detached' });
  expect(await page.getByLabel('As YAML').inputValue()).toBe('no: rules');
});

// proves: console-keyboard
test('the console can be used from sign-in to the page of a job by keyboard alone', async () => {
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
  // Escape leaves the filter. Then `j` opens the first row, regardless of the focus.
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.waitForURL(new RegExp(`row=${jobId}`));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'by-keyboard.csv' }).waitFor();
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
});

// proves: first-screen
test('the first screen of every page has less than 50 kB, compressed', async () => {
  const paths = screenPaths();
  expect(paths.length).toBeGreaterThanOrEqual(15);
  const jobId = await stage.load('user_id,name\nu1,Ada\n', 'sizes.csv');
  await stage.t.ended(jobId);
  const ids: Readonly<Record<string, string>> = { ':job': jobId, ':id': 'u1' };
  const page = await stage.open('/');
  for (const path of paths) {
    await page.goto(stage.address(path.replace(/:\w+/, (name) => ids[name] ?? 'none')));
    await page.locator('#main h1').first().waitFor();
    const names = (await page.evaluate(
      `performance.getEntriesByType('resource').map(({ name }) => /console\\/assets\\/(.+)/.exec(name)?.[1]).filter(Boolean)`,
    )) as readonly string[];
    const files = await Promise.all(
      [...new Set(names)].map((name) => stat(join(packageRoot, 'dist/console', `${name}.gz`))),
    );
    const bytes = files.reduce(
      (sum, { size }) => sum + size,
      Buffer.byteLength(await (await fetch(page.url())).text()),
    );
    expect([path, files.length > 5, bytes > 20_000, bytes < 50_000, bytes]).toEqual([
      path,
      true,
      true,
      true,
      bytes,
    ]);
  }
});
