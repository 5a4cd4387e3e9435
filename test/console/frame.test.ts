import { expect, test } from 'vitest';
import { createSignInLink } from '../../src/access/console-session.ts';
import {
  consoleStage,
  desktop,
  expectAccessible,
  expectNoSideScroll,
  phone,
  picture,
  themes,
} from '../support/console.ts';
import { form } from '../support/http.ts';

const stage = consoleStage();

test('the page to sign in can be read by everybody, says what is wrong with a key, and then shows the address that was asked for', async () => {
  for (const width of [desktop, phone] as const) {
    const page = await stage.openSignedOut('/jobs?status=failed', { width });
    await page.getByLabel('Key').waitFor();
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      await expectAccessible(page);
      await expectNoSideScroll(page);
      await picture(page, 'sign-in', { width, theme });
    }
    await page.getByLabel('Key').fill(`slk_${'0'.repeat(12)}_${'0'.repeat(40)}`);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Unauthorized - Invalid API key').waitFor();
    await page.getByLabel('Key').fill(stage.t.key);
    await page.keyboard.press('Enter');
    await page.getByText('No job matches').waitFor();
    expect(page.url()).toContain('/console/jobs?status=failed');
  }
});

test('a one-time link signs in, and leaves no token in the address', async () => {
  const token = await createSignInLink(stage.t.system.db, stage.t.environment.environmentId);
  const page = await stage.openSignedOut(`/jobs#link=${token}`);
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(page.url()).not.toContain(token);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Key').waitFor();
});

test('from signing in to the page of a job by keyboard alone', async () => {
  const body = form('user_id,name\nu1,Ada\n', { filename: 'by-keyboard.csv' });
  const { body: job } = await stage.server.json<{ job_id: string }>('/v1/imports', { method: 'POST', body });
  await stage.t.ended(job.job_id);
  const page = await stage.openSignedOut('/jobs');
  await page.getByLabel('Key').waitFor();
  await page.keyboard.type(stage.t.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('next and previous row').waitFor();
  const keys = await page.getByRole('dialog').locator('dt').allInnerTexts();
  expect(new Set(keys).size).toBe(keys.length);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('by-keyboard.csv').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('keyboard');
  await page.keyboard.press('Enter');
  await page.waitForURL(/filename=keyboard/);
  // To the first row.
  for (let presses = 0; presses < 15; presses++) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate('document.activeElement.className')) === 'row-open') break;
  }
  await page.waitForURL(new RegExp(`row=${job.job_id}`));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'by-keyboard.csv' }).waitFor();
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
});

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
