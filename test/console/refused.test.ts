import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';

const stage = consoleStage();

const evil = '<img src=x onerror=alert(1)>';

async function load(text: string, query = ''): Promise<string> {
  const { body } = await stage.server.json<{ job_id: string }>(`/v1/imports?filename=events.csv${query}`, {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'text/csv' },
  });
  await stage.t.ended(body.job_id);
  return body.job_id;
}

/** Events with dates written in another order, without a user, and with a quote too many. */
const events = (count: number) =>
  [
    'event_type,user_id,event_name,inserted_at,via',
    ...Array.from({ length: count }, (_, n) => `track,u${n},opened,2026-01-02T03:04:05Z,mail`),
    ...Array.from({ length: count }, (_, n) => `track,u${n},closed,${String((n % 15) + 13)}/10/2026,web`),
    ...['track,,opened,2026-01-02T03:04:05Z,web', `track,u1,opened,2026-01-02T03:04:05Z,"${evil}"x`],
  ].join('\n');

test('refused records are seen by cause, mended by a proposal and by the cell, to 100 %', async () => {
  const jobId = await load(events(120));
  await expectGoodInEveryLook(stage, 'refused', `/jobs/${jobId}/refused`, (page) =>
    page
      .getByRole('button', { name: /Apply to 120/ })
      .first()
      .waitFor(),
  );
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page
    .getByRole('button', { name: /Apply to 120/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'Mend 120 records' }).click();
  await page.getByText('mended: 120 of 122 refused records, 2 left').waitFor();
  expect(await page.locator('img').count()).toBe(0);
  await page.getByLabel('user_id, row 241').fill('u1');
  await page.getByRole('button', { name: /the bytes of row 242/ }).click();
  await page.getByText(/000000 {2}74 72 61 63 6b/).waitFor();
  const cells = {
    event_type: 'track',
    user_id: 'u1',
    event_name: 'opened',
    inserted_at: '2026-01-02',
    via: evil,
  };
  for (const [name, value] of Object.entries(cells)) await page.getByLabel(`${name}, row 242`).fill(value);
  await page.getByRole('button', { name: 'Send 2 records back' }).click();
  await page.getByText('Nothing is left to mend').waitFor();
  await page.getByText('100 %').waitFor();
  const stored = await stage.t.system.db.selectFrom('events').select('event_name').execute();
  expect(stored).toHaveLength(242);
});

test('what another has mended meanwhile is said, and nothing of it is mended twice', async () => {
  const jobId = await load('user_id,plan\nw1,pro\n,free\n');
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page.getByLabel('user_id, row 2').fill('w2');
  await page.route('**/v1/background_jobs/*', (route) => route.abort());
  const mended = await stage.server.json<{ job_id: string }>(`/v1/background_jobs/${jobId}/amend`, {
    method: 'POST',
    headers: { 'content-type': 'text/csv' },
    body: 'user_id,plan,sluice_row\nw3,free,2\n',
  });
  await stage.t.ended(mended.body.job_id);
  await page.getByRole('button', { name: 'Send 1 record back' }).click();
  await page.getByText('already_amended').waitFor();
});
