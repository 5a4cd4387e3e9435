import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/browsers/console.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage({ worker: true, settings: { CHUNK_BYTES: '64k' } });

async function fillRates(): Promise<void> {
  await stage.t.system.pool.query(
    `insert into rates (environment_id, minutes, begins_at, accepted, unchanged, rejected)
    select $1, minutes, date_bin(minutes * interval '1 minute', now(), 'epoch') - n * minutes * interval '1 minute',
      minutes * (9000 + (n * 7919) % 4000), case when n % 20 < 6 then minutes * (9000 + (n * 104729) % 4000) else 0 end, minutes * ((n * 31) % 700)
    from generate_series(1, 58) n
    cross join unnest(array[1, 24, 720]) minutes
    on conflict do nothing`,
    [stage.t.environment.environmentId],
  );
}

// proves: console-truth
test('the overview lists open needs with their actions, and plots records and jobs', async () => {
  const calm = await stage.open('/');
  await calm.locator('.notice-good', { hasText: 'Nothing needs you' }).waitFor();
  expect(await calm.locator('#main .bad, #main .need').count()).toBe(0);
  const partlyRefused = await stage.load('user_id,email\nm1,a\n,b\n,c\n', 'some-refused.csv');
  await stage.t.ended(partlyRefused);
  const users = Array.from({ length: 200 }, (_, n) => `u${n},u${n}@example.com`).join('\n');
  await stage.t.ended(await stage.load(`user_id,email\n${users}\n`, 'users-2026-11-22.csv'));
  await stage.post('/v1/identify', { user_id: 'u1', plan: 'pro' });
  const failingJob = await stage.load('user_id,email\n,a\n', 'broken.csv');
  await waitFor('the failure', async () => (await stage.t.ended(failingJob)).status === 'failed');
  await stage.t.system.rates.flush();
  await calm.reload();
  await calm.getByRole('img', { name: '202 accepted, 0 unchanged, 3 rejected in the last hour' }).waitFor();
  await fillRates();
  await waitFor('the findings', async () => {
    const { body } = await stage.server.json<{ findings: { is_known: boolean } }>('/v1/overview');
    return body.findings.is_known;
  });
  const page = await expectGoodInEveryLook(stage, 'overview', '/', async (each) => {
    await each.getByRole('img', { name: /accepted, .* unchanged, .* rejected in the last hour/ }).waitFor();
    await each.getByRole('img', { name: '2 not failed, 1 failed in 30 days' }).waitFor();
  });
  const needs = page.getByRole('region', { name: 'What needs you' }).getByRole('listitem');
  const failed = needs.nth(0);
  const rejected = needs.nth(1);
  await failed.getByText('1 job failed in the last 24 hours').waitFor();
  await failed.getByRole('button', { name: 'Retry the job' }).waitFor();
  await rejected.getByText('2 records were refused').waitFor();
  expect(await rejected.getByRole('link', { name: 'Correct them' }).getAttribute('href')).toBe(
    `/console/jobs/${partlyRefused}/refused`,
  );
  await page.getByRole('link', { name: 'broken.csv' }).waitFor();
  await page.locator('.health .dot').waitFor();
  await page.getByRole('radio', { name: '30 d' }).check();
  await page.waitForURL(/period=30d/);
  await page.getByRole('img', { name: /rejected in the last 30 days/ }).waitFor();
  await page.getByRole('link', { name: '1 failure' }).click();
  await page.waitForURL(/\/jobs\?status=failed&since=/);
  await page.getByText('broken.csv').waitFor();
});
