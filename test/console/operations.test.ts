import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { saveSchedule } from '../../src/capabilities/schedules/schedule-store.ts';
import { drop } from '../capabilities/inbox/support/inbox.ts';
import {
  startWebhookReceiver,
  type WebhookReceiver,
} from '../capabilities/notifications/support/webhook-receiver.ts';
import { readSchedule } from '../capabilities/schedules/support/schedules.ts';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';
import { waitFor } from '../support/wait-for.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'));
const inbox = join(folder, 'inbox');
const adminKey = 'admin-key-of-the-tests-0123';
const schedules = [
  {
    name: 'nightly-users',
    cron: '0 2 * * *',
    timezone: 'Europe/Berlin',
    load: { files: { pattern: 'nightly/users-*.csv' } },
  },
  {
    name: 'hourly-crm',
    cron: '*/15 * * * *',
    enabled: false,
    load: { http: { url: 'https://crm.example.com/users.ndjson' } },
  },
  { name: 'weekly-export', cron: '30 5 * * 1', export: { range: 'last_7_days', format: 'parquet' } },
];
const stage = consoleStage({
  worker: true,
  settings: {
    INBOX_DIR: inbox,
    INBOX_STABLE_MS: '100',
    ADMIN_KEY: adminKey,
    NOTIFY_ALLOW_PRIVATE: 'true',
  },
});
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(async () => {
  await receiver?.stop();
  rmSync(folder, { recursive: true, force: true });
});
const script = '<img src=x onerror=alert(1)>';

test('schedules show how the last runs went and what is next; they are paused, and a failed run is run again', async () => {
  const { pool } = stage.t.system;
  const { environmentId } = stage.t.environment;
  for (const each of schedules) {
    await saveSchedule(stage.t.system.db, environmentId, readSchedule(each), new Date());
  }
  await pool.query(
    `insert into schedule_runs (environment_id, schedule_name, due_at, cause, status, definition, started_at, ended_at, reason_code, reason)
    select $1, 'nightly-users', date_trunc('day', now()) - make_interval(days => 8 - at::int, hours => -1), 'due', status,
      '{"timeZone":"UTC","work":{"kind":"load"}}', now() - interval '1 min', now(),
      case when status in ('failed', 'skipped') then 'source_unreachable' end, case when status in ('failed', 'skipped') then $2 end
    from regexp_split_to_table('completed completed completed_with_rejects unchanged skipped completed failed', ' ')
      with ordinality _ (status, at)`,
    [stage.t.environment.environmentId, `no answer ${script}`],
  );
  await expectGoodInEveryLook(stage, 'schedules', '/schedules', (page) =>
    page.getByText('nightly-users').first().waitFor(),
  );
  const page = await stage.open('/schedules');
  await page.getByRole('button', { name: 'Pause nightly-users' }).click();
  await page.getByText('paused', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Resume nightly-users' }).click();
  await page.getByRole('button', { name: 'Pause nightly-users' }).waitFor();
  await page.getByRole('link', { name: 'nightly-users' }).first().click();
  await page.getByText(`no answer ${script}`).first().waitFor();
  await expectGoodInEveryLook(stage, 'schedule', '/schedules/nightly-users', (each) =>
    each.getByText('completed with rejects').waitFor(),
  );
  const again = page.getByRole('button', { name: 'Run again' });
  const before = await again.count();
  await again.first().click();
  await waitFor('the run that is due again', async () => (await again.count()) < before);
});

test('the inbox shows why a file failed, and takes it in again; one with refused records is not shown as well', async () => {
  const own = join(inbox, 'default');
  await waitFor('the folder', async () =>
    (await readdir(inbox).catch((): string[] => [])).includes('default'),
  );
  await drop(join(own, 'customers.csv'), 'nothing,known\nu1,2\n');
  await drop(join(own, 'notes.docx'), 'text');
  await drop(join(own, 'partly.csv'), 'user_id,name\nu1,Ada\n,nobody\n');
  const page = await stage.open('/inbox');
  await page.locator('.badge', { hasText: 'done, 1 refused' }).waitFor();
  await page.getByRole('button', { name: 'Load again' }).waitFor();
  await expectGoodInEveryLook(stage, 'inbox', '/inbox', (each) => each.getByText('notes.docx').waitFor());
  await drop(join(own, 'mapping.yaml'), 'map:\n  nothing: user_id\n');
  await page.getByRole('button', { name: 'Load again' }).click();
  const taken = page.locator('tr', { hasText: 'customers.csv' }).filter({ hasText: 'done/' });
  await taken.getByRole('link', { name: 'its job' }).waitFor();
});

test('an administrator makes a key, which is shown once, and revokes it; others are told who may', async () => {
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
  const refused = { errors: [{ error_code: 'internal', message: 'not now', details: '' }] };
  await page.route('**/v1/console/session', (route) =>
    route.request().method() === 'PUT' ? route.fulfill({ status: 500, json: refused }) : route.continue(),
  );
  const environment = page.getByLabel('Environment', { exact: true });
  await environment.selectOption('staging');
  await page.getByText('not now').waitFor();
  expect(await environment.inputValue()).toBe('default');
  await page.getByRole('button', { name: 'Pages … staging' }).click();
  await page.getByLabel('Origins').fill('https://a.example.com, https://b.example.com');
  await page.getByRole('button', { name: 'Allow these pages' }).click();
  await page.getByRole('cell', { name: 'https://a.example.com, https://b.example.com' }).waitFor();
  const { rows: made } = await stage.t.system.pool.query(
    "select 1 from api_keys where label like 'nightly%'",
  );
  expect(made).toHaveLength(1);
  await page.getByRole('button', { name: `Revoke … nightly` }).click();
  await page.getByRole('button', { name: 'Revoke this key' }).click();
  await page.getByText('revoked').waitFor();
  expect((await stage.server.fetch('/v1/users', { key: key.trim() })).status).toBe(401);
  const asAdmin = { open: (path: string, options = {}) => stage.open(path, { ...options, key: adminKey }) };
  await expectGoodInEveryLook(asAdmin, 'access', '/access', (each) =>
    each.getByRole('cell', { name: 'staging', exact: true }).waitFor(),
  );
  const others = await stage.open('/access');
  await others.getByText(/for administrators/).waitFor();
});
