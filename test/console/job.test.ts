import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { consoleStage, expectAccessible, expectGoodInEveryLook } from '../support/console.ts';
import { form } from '../support/http.ts';
import { waitFor } from '../support/wait-for.ts';

const stage = consoleStage({ worker: true, settings: { CHUNK_BYTES: '4k' } });

async function send(text: string, filename: string, after: Record<string, string> = {}): Promise<string> {
  const body = form(text, { filename, before: after });
  const { body: job } = await stage.server.json<{ job_id: string }>('/v1/imports', { method: 'POST', body });
  return job.job_id;
}

const csv = (rows: number, plan: string): string =>
  [
    'user_id,email,plan,seats',
    ...Array.from({ length: rows }, (_, n) =>
      n % 97 === 5
        ? `,nobody${n}@example.com,${plan},3`
        : `u${n % (rows - 40)},u${n}@example.com,${plan},${n % 9}`,
    ),
  ].join('\n');

/** The counts that the page shows, by their words. */
async function shownCounts(page: Page): Promise<Record<string, number>> {
  const terms = await page.locator('.balance-parts > div').all();
  const pairs = await Promise.all(
    terms.map(async (term) => [
      await term.locator('dt').innerText(),
      Number((await term.locator('dd').first().innerText()).replaceAll(',', '')),
    ]),
  );
  return Object.fromEntries(pairs) as Record<string, number>;
}

test('the page of a job shows the counts of the ledger, who started it with what, and how to do it again', async () => {
  await stage.t.ended(await send(csv(1_200, 'free'), 'customers-october.csv'));
  const jobId = await send(csv(4_000, 'pro'), 'customers-november.csv', {
    max_errors: '50%',
    entity: 'users',
  });
  const { tally } = await stage.t.ended(jobId);
  await expectGoodInEveryLook(stage, 'job', `/jobs/${jobId}`, async (page) => {
    await page.getByText('= the sum of these').waitFor();
    await page.getByText('Rows merged').waitFor();
  });
  const page = await stage.open(`/jobs/${jobId}`);
  await page.getByText('Rows merged').waitFor();
  expect(await shownCounts(page)).toEqual({
    read: tally.read,
    inserted: tally.inserted,
    updated: tally.updated,
    unchanged: tally.unchanged,
    superseded: tally.superseded,
    refused: tally.rejected,
    amended: 0,
  });
  expect(tally.rejected).toBeGreaterThan(0);
  const code = page.locator('.copy-as .code');
  expect(await code.innerText()).toContain('-F file=@customers-november.csv');
  await page.getByLabel('Command line').check();
  expect(await code.innerText()).toContain('--max-errors 2000');
  await page.getByLabel('Schedule').check();
  expect(await code.innerText()).toContain('max_errors: 2000');
});

test('the page of a planned load shows what it would write, by property and row, and who was told of its end', async () => {
  await stage.t.ended(await send('user_id,tier\nplanned-1,bronze\n', 'before.csv'));
  const jobId = await send('user_id,tier\nplanned-1,gold\nplanned-2,silver\n', 'planned.csv', {
    plan: 'true',
  });
  await stage.t.ended(jobId);
  await stage.t.system.pool.query(
    `with event as (
      insert into notification_events (event_id, environment_id, type, job_id, body)
      values (gen_random_uuid(), $1, 'load.completed', $2, '{}')
      returning event_id
    )
    insert into notification_deliveries (event_id, channel, target, state, attempts, last_error)
    select event_id, 'email', 'ops@example.com', 'dead', 8, 'connect ECONNREFUSED' from event`,
    [stage.t.environment.environmentId, jobId],
  );
  const page = await stage.open(`/jobs/${jobId}`);
  await page
    .getByText('1 new and 1 changed users, 0 new and 0 changed companies. Nothing has been written.')
    .waitFor();
  await page.getByText('Before and after of 1 row').click();
  await page.locator('ins', { hasText: '"gold"' }).waitFor();
  await page.getByText('connect ECONNREFUSED').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Apply the plan' }).click();
  await page.getByRole('dialog').getByText('2 records will be written: 1 new, 1 changed.').waitFor();
});

test('names and errors that callers choose are text on the page, never code', async () => {
  const jobId = await send(
    'user_id,<script>alert(1)</script>\n,x\n',
    '"><img src=x onerror=alert(1)>\u0007.csv',
    { max_errors: '0' },
  );
  await stage.t.ended(jobId);
  const page = await stage.open(`/jobs/${jobId}`);
  page.on('dialog', () => {
    throw new Error('a script ran');
  });
  await page.getByText('Time line').waitFor();
  expect(await page.locator('h1').innerText()).toContain('<img src=x onerror=alert(1)>');
  expect(await page.locator('#main img, #main script').count()).toBe(0);
  await expectAccessible(page);
});

test('a job that runs is followed to its end, and asks for its number before it is cancelled', async () => {
  const paused = await stage.t.system.db.transaction().execute(async (transaction) => {
    // Nobody gets on with a chunk while somebody else has the rows.
    await transaction.selectFrom('users').select('user_id').forUpdate().execute();
    const jobId = await send(csv(4_000, 'team'), 'customers-december.csv');
    const page = await stage.open(`/jobs/${jobId}`);
    await page.locator('.badge', { hasText: /processing|queued/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/4,000 rows of 4,000 will not be done/).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    return { page, jobId };
  });
  const { tally } = await stage.t.ended(paused.jobId);
  await paused.page.locator('.badge', { hasText: 'completed' }).waitFor();
  await waitFor(
    'the counts of the ledger',
    async () => (await shownCounts(paused.page))['read'] === tally.read,
  );
  expect((await shownCounts(paused.page))['unchanged']).toBe(tally.unchanged);
});
