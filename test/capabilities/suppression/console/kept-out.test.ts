import { expect, test } from 'vitest';
import { consoleStage, expectAccessible } from '../../../support/browsers/console.ts';

const stage = consoleStage();

test('a person without stored records is suppressed by a deletion, and readmitted', async () => {
  const page = await stage.open('/people/u9');
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByText('Nothing is stored under this id.').waitFor();
  expect(await page.getByRole('button', { name: 'Delete this user' }).isDisabled()).toBe(true);
  await page.getByLabel(/Keep this person out/).check();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Delete this user, and keep them out' }).click();
  await page.waitForURL(/\/jobs\//);
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  const record = { user_id: 'u9' };
  expect(await stage.post('/v1/identify', record)).toMatchObject({ errors: [{ error_code: 'suppressed' }] });
  await page.goto(stage.address('/people/u9'));
  await page.getByRole('button', { name: 'Look for its events' }).click();
  await page.getByText('Records of this id are refused').waitFor();
  await page.getByRole('button', { name: 'Let in again …' }).click();
  await page.getByRole('button', { name: 'Let them in again' }).click();
  await page.getByText('Records of this id are refused').waitFor({ state: 'detached' });
  expect((await stage.post('/v1/identify', record)) ?? null).toBeNull();
});
