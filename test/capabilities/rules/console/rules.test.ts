import { expect, test } from 'vitest';
import { consoleStage, expectAccessible, expectGoodInEveryLook } from '../../../support/browsers/console.ts';

const stage = consoleStage();

test('the rules are shown, applied, and refused with the line at fault', async () => {
  const page = await expectGoodInEveryLook(stage, 'rules', '/rules', (each) =>
    each.getByText('no rules yet').waitFor(),
  );
  await page.getByLabel('As YAML').fill('users:\n  unknwn: report\n');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText(/users.unknwn is unknown/).waitFor();
  const marks = page.locator('.editor-lines [data-marked]');
  expect(await marks.count()).toBe(1);
  expect(await page.locator('.editor-lines :nth-child(2)').getAttribute('data-marked')).toBe('');
  expect(await page.evaluate('String(getSelection())')).toBe('  unknwn: report');
  await expectAccessible(page);
  await page.getByLabel('As YAML').fill('companies:\n  unknown: report\n');
  expect(await marks.count()).toBe(0);
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('Version').waitFor();
  await page.getByText('1', { exact: true }).first().waitFor();
});
