import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage({ worker: true, settings: { CHUNK_BYTES: '64k' } });

/** Rates of the time before: nobody waits a month for a plot. */
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
test('the overview says in one sentence what needs a person, is green only if nothing does, shows records by outcome over an hour, a day and a month and the jobs of each day, and leads to the lists', async () => {
  const calm = await stage.open('/');
  await calm.locator('.notice-good', { hasText: 'Nothing needs you · everything else is stored' }).waitFor();
  expect(await calm.getByRole('heading', { name: 'Running and next' }).count()).toBe(0);
  const mended = await stage.load('user_id,email\nm1,a\n,b\n,c\n', 'some-refused.csv');
  await stage.t.ended(mended);
  const users = Array.from({ length: 200 }, (_, n) => `u${n},u${n}@example.com`).join('\n');
  await stage.t.ended(await stage.load(`user_id,email\n${users}\n`, 'users-2026-11-22.csv'));
  await stage.post('/v1/identify', { user_id: 'u1', plan: 'pro' });
  const refused = await stage.load('user_id,email\n,a\n', 'broken.csv');
  await waitFor('the failure', async () => (await stage.t.ended(refused)).status === 'failed');
  await stage.t.system.rates.flush();
  await calm.reload();
  await calm.getByRole('img', { name: '202 accepted, 0 unchanged, 3 rejected in the last hour' }).waitFor();
  await fillRates();
  await waitFor('the findings', async () => {
    const { body } = await stage.server.json<{ findings: { is_known: boolean } }>('/v1/overview');
    return body.findings.is_known;
  });
  await expectGoodInEveryLook(stage, 'overview', '/', async (page) => {
    await page.getByRole('img', { name: /accepted, .* unchanged, .* rejected in the last hour/ }).waitFor();
    await page.getByRole('img', { name: '2 not failed, 1 failed in 30 days' }).waitFor();
  });
  const page = await stage.open('/');
  const sentence = page.getByRole('status').filter({ hasText: 'everything else is stored' });
  expect(await sentence.innerText()).toBe(
    '1 job failed in the last 24 hours · 2 records wait to be mended · everything else is stored',
  );
  expect(await sentence.getByRole('link', { name: /mended/ }).getAttribute('href')).toBe(
    `/console/jobs/${mended}/refused`,
  );
  await page.getByRole('radio', { name: '30 d' }).check();
  await page.waitForURL(/period=30d/);
  await page.getByRole('img', { name: /rejected in the last 30 days/ }).waitFor();
  await page.getByRole('link', { name: '1 failure' }).click();
  await page.waitForURL(/\/jobs\?status=failed&since=/);
  await page.getByText('broken.csv').waitFor();
});

// proves: live-truth
test('Live can be read by everybody, shows each record as it arrives, refused ones with their reason, says how many there were, and leads to the user', async () => {
  const page = await stage.open('/live');
  await page.getByText('connected').waitFor();
  await stage.post('/v1/identify', { user_id: 'ada', plan: 'pro' });
  await stage.post('/v1/track', { user_id: 'ada' });
  await stage.post('/v1/batch', [
    { type: 'track', user_id: 'ada', event_name: '<img src=x onerror=alert(1)>' },
    { type: 'nothing' },
  ]);
  await page.getByText('4 shown / 4 arrived').waitFor();
  await page.getByText('<img src=x onerror=alert(1)> · ada').waitFor();
  await page.getByText(/missing_field: .*event_name/).waitFor();
  await page.getByLabel('Outcome').selectOption('refused');
  await page.waitForURL(/outcome=refused/);
  await waitFor('the refused ones alone', async () => (await page.locator('tbody tr').count()) === 2);
  await page.getByLabel('Outcome').selectOption('');
  await page.getByRole('button', { name: 'Pause' }).click();
  await stage.post('/v1/identify', { user_id: 'grace' });
  await page.getByText('5 shown / 5 arrived').waitFor();
  await page.getByText('1 held back').waitFor();
  expect(await page.getByText('grace').count()).toBe(0);
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('cell', { name: 'grace' }).waitFor();
  await stage.load('user_id\nx1\nx2\n', 'new-users.csv');
  await page.getByText('new-users.csv · 2 records, 0 refused').waitFor();
  await page.locator('tr', { hasText: 'grace' }).locator('.row-open').click();
  await page.getByRole('link', { name: 'grace', exact: true }).click();
  await page.waitForURL(/\/people\/grace$/);
  await expectGoodInEveryLook(stage, 'live', '/live', async (page) => {
    await page.getByText('connected').waitFor();
    await stage.post('/v1/track', { user_id: 'lin', event_name: 'opened' });
    await stage.post('/v1/track', { user_id: 'lin' });
    await page.getByText('opened · lin').first().waitFor();
    await page.locator('tbody .badge', { hasText: 'refused' }).first().waitFor();
  });
});
