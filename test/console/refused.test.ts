import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook } from '../support/browsers/console.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage();

const evil = '<img src=x onerror=alert(1)>';

async function load(text: string): Promise<string> {
  const jobId = await stage.load(text, 'events.csv');
  await stage.t.ended(jobId);
  return jobId;
}

/**
 * Returns events, half of which are refused because of the order of day and month in their dates.
 * Adds one without a user, and one with a stray quote.
 */
const events = (count: number) =>
  [
    'event_type,user_id,event_name,inserted_at,via',
    ...Array.from({ length: count }, (_, n) => `track,u${n},opened,2026-01-02T03:04:05Z,mail`),
    ...Array.from({ length: count }, (_, n) => `track,u${n},closed,${String((n % 15) + 13)}/10/2026,web`),
    ...['track,,opened,2026-01-02T03:04:05Z,web', `track,u1,opened,2026-01-02T03:04:05Z,"${evil}"x`],
  ].join('\n');

// proves: console-load
test('refused records are shown by cause, corrected, checked, and loaded as a mend', async () => {
  const jobId = await load(events(12));
  const page = await expectGoodInEveryLook(stage, 'refused', `/jobs/${jobId}/refused`, (each) =>
    each.getByLabel('user_id, row 25').waitFor(),
  );
  await page.getByLabel('user_id, row 25').fill('u1');
  await page.getByLabel('inserted_at, row 13').fill('tomorrow');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('2 records edited here, not sent yet; 1 record would still be refused').waitFor();
  await page.locator('tr', { hasText: 'Still refused: ' }).waitFor();
  await page.getByLabel('inserted_at, row 13').fill('2026-10-13T01:02:03Z');
  // A record that does not fit the columns is shown as text, with cells to fill in.
  await page.locator('.raw-row', { hasText: evil }).waitFor();
  expect(await page.locator('img').count()).toBe(0);
  const cells = ['track', 'u1', 'opened', '2026-01-02T03:04:05Z', `${evil}x`];
  for (const [at, column] of ['event_type', 'user_id', 'event_name', 'inserted_at', 'via'].entries()) {
    await page.getByLabel(`${column}, row 26`).fill(cells[at] ?? '');
  }
  await page.getByRole('button', { name: 'Send 3 records' }).click();
  const link = page.getByRole('link', { name: 'the job that loads them' });
  await stage.t.ended((await link.getAttribute('href'))?.split('/').at(-1) ?? '');
  const storedEvents = await stage.t.system.db.selectFrom('events').select('metadata').execute();
  expect(storedEvents).toHaveLength(15);
  expect(storedEvents.map(({ metadata }) => JSON.stringify(metadata)).join()).toContain(`${evil}x`);
  const parent = await stage.open(`/jobs/${jobId}`);
  await parent.getByText('3 of 14 refused records loaded since').waitFor();
});

test('all refused records are downloaded as a file', async () => {
  const jobId = await load('user_id,plan\nd1,pro\n,free\n,team\n');
  const page = await stage.open(`/jobs/${jobId}/refused`);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download all as CSV' }).click(),
  ]);
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).toString('utf8')).toMatch(/^user_id,plan,sluice_.*\n,free,.*\n,team,.*\n$/);
});

test('the choice of a cause scrolls to its records', async () => {
  const jobId = await load(events(120));
  const page = await stage.open(`/jobs/${jobId}/refused`);
  await page.getByRole('link', { name: /Show these records\s*: missing_id/ }).click();
  const heading = page.getByRole('heading', { name: 'Records of this cause' });
  await heading.waitFor();
  await waitFor('the records to be in view', async () => ((await heading.boundingBox())?.y ?? 900) < 900);
});
