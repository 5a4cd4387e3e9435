import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage();

const evil = '<img src=x onerror=alert(1)>';

async function load(text: string, fields?: Record<string, string>): Promise<string> {
  const jobId = await stage.load(text, 'events.csv', fields);
  await stage.t.ended(jobId);
  return jobId;
}

/** Events with dates written in another order, without a user, and with a quote too many. */
const events = (count: number) =>
  [
    'event_type,user_id,event_name,inserted_at,via',
    ...Array.from({ length: count }, (_, n) => `track,u${n},opened,2026-01-02T03:04:05Z,mail`),
    ...Array.from({ length: count }, (_, n) => `track,u${n},closed,${String((n % 15) + 13)}/10/2026,web`),
    ...['track,,opened,2026-01-02T03:04:05Z,web', `track,u1,opened,2026-01-02T03:04:05Z,"${evil}"x`],
  ].join('\n');

// proves: console-load
test('refused records are seen by cause, mended by a proposal and by the cell, to 100 %', async () => {
  const jobId = await load(events(120));
  await expectGoodInEveryLook(stage, 'refused', `/jobs/${jobId}/refused`, (page) =>
    page
      .getByRole('button', { name: /Apply to 120/ })
      .first()
      .waitFor(),
  );
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page.evaluate(
    "addEventListener('click', () => { document.body.dataset.clicks = (document.body.dataset.clicks ?? '') + 'x' }, true)",
  );
  await page
    .getByRole('button', { name: /Apply to 120/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'Mend 120 records' }).click();
  await page.getByText('mended: 120 of 122 refused records, 2 left').waitFor();
  expect(await page.locator('img').count()).toBe(0);
  await page.getByLabel('user_id, row 241').click();
  await page.getByLabel('user_id, row 241').fill('u1');
  await page.getByRole('button', { name: 'row 242 as it is written' }).click();
  await page.locator('.raw-row', { hasText: evil }).waitFor();
  const record = page.getByLabel('Record, row 242');
  expect(await record.inputValue()).toBe(`track,u1,opened,2026-01-02T03:04:05Z,"${evil}"x`);
  await record.click();
  await record.fill(`track,u1,opened,2026-01-02T03:04:05Z,"${evil}x"`);
  await page.getByRole('button', { name: 'Send 2 records back' }).click();
  await page.getByText('Nothing is left to mend').waitFor();
  await page.getByText('100 %').waitFor();
  expect((await page.locator('body').getAttribute('data-clicks'))?.length).toBeLessThanOrEqual(6);
  const stored = await stage.t.system.db.selectFrom('events').select(['event_name', 'metadata']).execute();
  expect(stored).toHaveLength(242);
  expect(stored.map(({ metadata }) => JSON.stringify(metadata)).join()).toContain(`${evil}x`);
});

// proves: console-load
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

// proves: edited-cell
test('a mend that is refused again stays, with its edit and the new reason, until it is accepted', async () => {
  const jobId = await load('user_id,name,zip\n,Ada,007\nu2,"Bo" x,1\nu3,Cy,2\n', { stray_quotes: 'refuse' });
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page.getByLabel('user_id, row 1').fill('x'.repeat(300));
  await page.getByLabel('Record, row 2').fill('u2,"still" open,1');
  await page.getByRole('button', { name: 'Send 2 records back' }).click();
  await page.getByText('The last mend: 0 records mended, 2 refused again').waitFor();
  await page.locator('tr', { hasText: 'Refused again: ' }).nth(1).waitFor();
  expect(await page.getByLabel('user_id, row 1').inputValue()).toBe('x'.repeat(300));
  expect(await page.getByLabel('Record, row 2').inputValue()).toBe('u2,"still" open,1');
  await page.getByLabel('user_id, row 1').fill('u1');
  await page.getByLabel('Record, row 2').fill('u2,"no longer ""open""",1');
  await page.getByRole('button', { name: 'Send 2 records back' }).click();
  await page.getByText('Nothing is left to mend').waitFor();
  const users = await stage.t.system.db
    .selectFrom('users')
    .select(['user_id', 'metadata'])
    .where('user_id', 'in', ['u1', 'u2'])
    .orderBy('user_id')
    .execute();
  expect(users.map(({ metadata }) => metadata)).toEqual([
    { name: 'Ada', zip: '007' },
    { name: 'no longer "open"', zip: '1' },
  ]);
});

test('all refused records are downloaded as a file, and that file is taken back in mended', async () => {
  const jobId = await load('user_id,plan\nd1,pro\n,free\n,team\n');
  const page = await stage.open(`/jobs/${jobId}/refused`);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download all as CSV' }).click(),
  ]);
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  const mended = Buffer.concat(chunks).toString('utf8').replace('\n,free', '\nd2,free');
  await page
    .getByLabel('Send the mended file')
    .setInputFiles({ name: 'mended.csv', mimeType: 'text/csv', buffer: Buffer.from(mended) });
  await page.getByText('The last mend: 1 record mended, 1 refused again').waitFor();
  await page.getByText('mended: 1 of 2 refused records, 1 left').waitFor();
});

test('whoever chooses a cause is taken to its records', async () => {
  const jobId = await load(events(120));
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page.getByRole('link', { name: /Show these records\s*: missing_id/ }).click();
  const heading = page.getByRole('heading', { name: 'Records of this cause' });
  await heading.waitFor();
  await waitFor('the records to be in view', async () => ((await heading.boundingBox())?.y ?? 900) < 900);
});
