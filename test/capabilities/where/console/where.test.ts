import { expect, test } from 'vitest';
import { consoleStage, expectAccessible } from '../../../support/browsers/console.ts';

const stage = consoleStage();

test('the export form has a condition, shows its mistake, and exports the users that meet it', async () => {
  for (const [user_id, plan] of [
    ['w1', 'where'],
    ['w2', 'where'],
    ['w3', 'other'],
  ]) {
    await stage.post('/v1/identify', { user_id, metadata: { plan } });
  }
  const page = await stage.open('/export?kinds=users');
  await page.getByLabel('Add a filter').selectOption('Condition on users');
  const condition = page.getByRole('textbox', { name: 'Condition on users' });
  await condition.fill('{property: plan}');
  await condition.press('Enter');
  await page.getByText('where has no operator').first().waitFor();
  await expectAccessible(page);
  await condition.fill('{property: plan, equals: where}');
  await condition.press('Enter');
  await page.getByRole('button', { name: 'Export 2 rows' }).click();
  await page.waitForURL(/\/jobs\/[0-9a-f-]{36}$/);
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  await page.goto(stage.address('/export'));
  await page.getByText('where {"equals":"where","property":"plan"}').waitFor();
  expect(await page.getByRole('button', { name: 'Export again' }).count()).toBe(1);
});
