import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/browsers/console.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const stage = consoleStage({ settings: { ADMIN_KEY: adminKey } });
const script = '<img src=x onerror=alert(1)>';

test('an administrator makes a key that is shown once, and revokes it', async () => {
  const page = await stage.open('/access', { key: adminKey });
  await page.getByRole('button', { name: 'Create a key …' }).click();
  await page.getByLabel('Used for').fill(`nightly ${script}`);
  await page.getByRole('checkbox', { name: 'import' }).check();
  await page.getByRole('button', { name: 'Create the key' }).click();
  const key = await page.getByText(/^\s*slk_/).innerText();
  expect((await stage.server.fetch('/v1/users', { key: key.trim() })).status).toBe(200);
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByText(`nightly ${script}`).first().waitFor();
  expect(await page.getByText(/slk_/).count()).toBe(0);
  await page.getByRole('button', { name: 'Create one …' }).click();
  await page.getByLabel('Name', { exact: true }).fill('staging');
  await page.getByRole('button', { name: 'Create the environment' }).click();
  await page.getByRole('cell', { name: 'staging', exact: true }).waitFor();
  await page.reload();
  const refusal = { errors: [{ error_code: 'internal', message: 'not now', details: '' }] };
  await page.route('**/v1/console/session', (route) =>
    route.request().method() === 'PUT' ? route.fulfill({ status: 500, json: refusal }) : route.continue(),
  );
  const environment = page.getByLabel('Environment', { exact: true });
  await environment.selectOption('staging');
  await page.getByText('not now').waitFor();
  expect(await environment.inputValue()).toBe('default');
  await page.getByRole('button', { name: 'Pages … staging' }).click();
  await page.getByLabel('Origins').fill('https://a.example.com, https://b.example.com');
  await page.getByRole('button', { name: 'Allow these pages' }).click();
  await page.getByRole('cell', { name: 'https://a.example.com, https://b.example.com' }).waitFor();
  const { rows: keys } = await stage.t.system.pool.query(
    "select 1 from api_keys where label like 'nightly%'",
  );
  expect(keys).toHaveLength(1);
  await page.getByRole('button', { name: `Revoke … nightly` }).click();
  await page.getByRole('button', { name: 'Revoke this key' }).click();
  await page.getByText('revoked').waitFor();
  expect((await stage.server.fetch('/v1/users', { key: key.trim() })).status).toBe(401);
  const asAdmin = { open: (path: string, options = {}) => stage.open(path, { ...options, key: adminKey }) };
  await expectGoodInEveryLook(asAdmin, 'access', '/access', (page) =>
    page.getByRole('cell', { name: 'staging', exact: true }).waitFor(),
  );
  const reader = await stage.open('/access');
  await reader.getByText(/for administrators/).waitFor();
});
