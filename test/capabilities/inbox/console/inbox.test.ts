import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../../../support/browsers/console.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { drop } from '../support/inbox.ts';

const inbox = mkdtempSync(join(tmpdir(), 'sluice-console-inbox-'));
const stage = consoleStage({ worker: true, settings: { INBOX_DIR: inbox, INBOX_STABLE_MS: '100' } });
afterAll(() => rmSync(inbox, { recursive: true, force: true }));

test('the inbox shows the reason of a failed file, and loads it again on request', async () => {
  const environmentFolder = join(inbox, 'default');
  await waitFor('the folder', async () =>
    (await readdir(inbox).catch((): string[] => [])).includes('default'),
  );
  await drop(join(environmentFolder, 'customers.csv'), 'nothing,known\nu1,2\n');
  await drop(join(environmentFolder, 'notes.docx'), 'text');
  await drop(join(environmentFolder, 'partly.csv'), 'user_id,name\nu1,Ada\n,nobody\n');
  const page = await stage.open('/inbox');
  await page.locator('.badge', { hasText: 'done, 1 refused' }).waitFor();
  await page.getByRole('button', { name: 'Load again' }).waitFor();
  await expectGoodInEveryLook(stage, 'inbox', '/inbox', (each) => each.getByText('notes.docx').waitFor());
  await drop(join(environmentFolder, 'mapping.yaml'), 'map:\n  nothing: user_id\n');
  await page.getByRole('button', { name: 'Load again' }).click();
  const loadedRow = page.locator('tr', { hasText: 'customers.csv' }).filter({ hasText: 'done/' });
  await loadedRow.getByRole('link', { name: 'its job' }).waitFor();
});
