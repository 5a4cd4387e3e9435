import { test } from 'vitest';
import { consoleStage, expectAccessible } from '../../../support/browsers/console.ts';
import { readProfiles } from '../../../support/files/load-file.ts';
import { waitFor } from '../../../support/wait-for.ts';

const stage = consoleStage();

test('the page of a load links to the plan of its undo, which can be applied there', async () => {
  await stage.t.ended(await stage.load('user_id,tier\nundo1,pro\n', 'good.csv'));
  const wrongJob = await stage.load('user_id,tier\nundo1,free\nundo2,free\n', 'wrong.csv');
  await stage.t.ended(wrongJob);
  const page = await stage.open(`/jobs/${wrongJob}`);
  await page.locator('.menu > summary').click();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Undo …' }).click();
  await page.getByRole('heading', { name: 'undo of wrong.csv' }).waitFor();
  await page.getByText('0 new and 1 changed user, 1 removed').waitFor();
  await page.getByRole('button', { name: 'Undo: write 2 records' }).click();
  await page.getByText(/^2 profiles put back in/).waitFor();
  await waitFor('the undo to end', async () => {
    const { users } = await readProfiles(stage.t.system, stage.t.environment.environmentId);
    return users['undo2'] === undefined && users['undo1']?.metadata['tier'] === 'pro';
  });
});
