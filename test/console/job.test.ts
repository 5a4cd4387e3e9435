import { createHash } from 'node:crypto';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Run } from '../../src/http/run.ts';
import {
  consoleStage,
  expectAccessible,
  expectGoodInEveryLook,
  expectNoSideScroll,
  isPictured,
  limitUpload,
  phone,
} from '../support/browsers/console.ts';
import { ended } from '../support/oracles/exactness.ts';
import { form } from '../support/servers/http.ts';
import { brakeAt, onSite } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** Number of users in the job. A run with screenshots uses a higher number. */
const jobRows = isPictured ? 400_000 : 4_000;
const stage = consoleStage({ worker: true, settings: { CHUNK_BYTES: isPictured ? '512k' : '4k' } });

const csv = (rows: number, plan: string): string =>
  [
    'user_id,email,plan,seats',
    ...Array.from({ length: rows }, (_, n) =>
      n % 97 === 5
        ? `,nobody${n}@example.com,${plan},3`
        : `u${n % (rows - 40)},u${n}@example.com,${plan},${n % 9}`,
    ),
  ].join('\n');

async function shownCounts(page: Page): Promise<Record<string, number>> {
  const counts = page.locator('.balance dl > div');
  await counts.first().waitFor();
  const terms = await counts.all();
  const pairs = await Promise.all(
    terms.map(async (term) => [
      await term.locator('dt').innerText(),
      Number((await term.locator('dd').first().innerText()).replaceAll(',', '')),
    ]),
  );
  return Object.fromEntries(pairs) as Record<string, number>;
}

const openMenu = (page: Page) => page.locator('.menu > summary').click();

const unfold = (page: Page, title: string) => page.locator('.fold > summary', { hasText: title }).click();

// proves: console-truth
test('the page of a job shows its result, ledger counts, causes and users', async () => {
  await stage.t.ended(await stage.load(csv(jobRows * 0.3, 'free'), 'customers-october.csv'));
  const jobId = await stage.load(csv(jobRows, 'pro'), 'customers-november.csv', {
    max_errors: '50%',
    entity: 'users',
  });
  const { tally } = await stage.t.ended(jobId);
  const storedCount = (tally.inserted + tally.updated + tally.unchanged).toLocaleString('en-GB');
  const page = await expectGoodInEveryLook(stage, 'job', `/jobs/${jobId}`, async (each) => {
    await each.getByText(`${storedCount} users stored in`).waitFor();
    await each.getByRole('link', { name: /Show these records\s*: missing_id/ }).waitFor();
    const lastFold = await each.locator('.fold').last().boundingBox();
    expect((lastFold?.y ?? 0) + (lastFold?.height ?? 0)).toBeLessThan(700);
  });
  expect(await shownCounts(page)).toEqual({
    read: tally.read,
    new: tally.inserted,
    changed: tally.updated,
    repeated: tally.superseded,
    rejected: tally.rejected,
  });
  expect(await page.getByRole('link', { name: /need you$/ }).getAttribute('href')).toBe(
    `/console/jobs/${jobId}/refused`,
  );
  await unfold(page, 'Timeline');
  await page.getByText('Rows merged').waitFor();
  await page.getByRole('link', { name: 'The users it wrote' }).click();
  await page.waitForURL(new RegExp(`/people\\?job_id=${jobId}`));
  await page.getByRole('link', { name: /^u0\b/ }).first().waitFor();
});

test('a job that does not exist is requested once', async () => {
  const page = await stage.open('/', { clock: true });
  const requests: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/background_jobs/')) requests.push(new URL(request.url()).pathname);
  });
  const id = '00000000-0000-4000-8000-000000000000';
  await page.goto(stage.address(`/jobs/${id}`));
  await page.getByText('There is no such job').waitFor();
  await page.locator('.health').waitFor();
  // The frame requests the health of the service every minute.
  const nextRequest = page.waitForRequest(/overview/);
  await page.clock.fastForward(61_000);
  await nextRequest;
  expect(requests).toEqual([`/v1/background_jobs/${id}`]);
});

test('the page of a plan shows its changes by property and row, and loads just those', async () => {
  await stage.t.ended(await stage.load('user_id,tier\nplanned-1,bronze\n', 'before.csv'));
  const jobId = await stage.load('user_id,tier\nplanned-1,gold\nplanned-2,silver\n', 'planned.csv', {
    plan: 'true',
  });
  await stage.t.ended(jobId);
  const page = await stage.open(`/jobs/${jobId}`);
  await page
    .getByText('1 new and 1 changed users, 0 new and 0 changed companies. Nothing has been written.')
    .waitFor();
  await page.locator('.good', { hasText: 'gold' }).waitFor();
  await page.getByRole('button', { name: 'Load: write 2 records' }).click();
  await page.getByText(/^2 (users|records) stored in/).waitFor();
  await unfold(page, 'Changes');
  await page.locator('.good', { hasText: 'gold' }).waitFor();
});

test('the page of an applied plan shows the load time and the wait of the plan', async () => {
  const jobId = await stage.load('user_id\nthought-1\nthought-2\n', 'thought.csv', { plan: 'true' });
  await stage.t.ended(jobId);
  await stage.t.system.pool.query(
    `with planned as (
       update load_plans set plan_ended_at = plan_ended_at - interval '5 min'
       where load_id = (select load_id from loads where job_id = $1)
     )
     update loads set accepted_at = accepted_at - interval '5 min', started_at = started_at - interval '5 min'
     where job_id = $1`,
    [jobId],
  );
  await stage.server.fetch(`/v1/background_jobs/${jobId}/apply`, { method: 'POST' });
  await stage.t.ended(jobId);
  const page = await stage.open(`/jobs/${jobId}`, { width: phone });
  await unfold(page, 'Timeline');
  const timeline = page.locator('.fold', { hasText: 'Timeline' });
  await timeline.getByText(/^[\d.]+ m?s · waited 5 min/).waitFor();
  expect(await timeline.locator('tbody td:first-child').allInnerTexts()).toEqual([
    ...['Accepted', 'Started', 'Planned', 'Apply requested', 'Started again', 'Rows merged', 'Completed'],
  ]);
  await timeline
    .getByRole('row', { name: 'Planned' })
    .getByText(/waited 5 min/)
    .waitFor();
  await expectAccessible(page);
  await expectNoSideScroll(page);
  await page.goto(stage.address('/jobs?filename=thought'));
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('cell', { name: /^[\d.]+ m?s$/ }).waitFor();
});

// proves: text-not-code
test('names and errors from callers are text on the page, never code', async () => {
  const jobId = await stage.load(
    'user_id,<script>alert(1)</script>\n,x\n',
    '"><img src=x onerror=alert(1)>\u0007.csv',
    { max_errors: '0' },
  );
  await stage.t.ended(jobId);
  const page = await stage.open(`/jobs/${jobId}`);
  page.on('dialog', () => {
    throw new Error('a script ran');
  });
  await page.getByText('Timeline').waitFor();
  expect(await page.locator('h1').innerText()).toContain('<img src=x onerror=alert(1)>');
  expect(await page.locator('#main img, #main script').count()).toBe(0);
  await expectAccessible(page);
});

// proves: console-truth
test('the page of a running job follows it to its end, and confirms a cancellation', async () => {
  const running = await stage.t.system.db.transaction().execute(async (transaction) => {
    // While this transaction locks the rows, no worker can merge a chunk.
    await transaction.selectFrom('users').select('user_id').forUpdate().execute();
    const jobId = await stage.load(csv(4_000, 'team'), 'customers-december.csv');
    const page = await stage.open(`/jobs/${jobId}`);
    await page.locator('.badge', { hasText: /processing|queued/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/4,000 rows of 4,000 will not be processed/).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    return { page, jobId };
  });
  const { tally } = await stage.t.ended(running.jobId);
  await running.page.locator('.badge', { hasText: 'completed' }).waitFor();
  await waitFor(
    'the counts of the ledger',
    async () => (await shownCounts(running.page))['read'] === tally.read,
  );
  expect((await shownCounts(running.page))['changed'] ?? 0).toBe(tally.updated);
});

const runOf = async (jobId: string) => (await stage.server.json<Run>(`/v1/background_jobs/${jobId}`)).body;

// proves: console-repeat
test('the page of a job repeats an export, and loads a file with another mapping', async () => {
  const body = form('Nr;Größe, in "cm"\n\'a;1\';NULL\nb;n/a\n', {
    before: {
      map: JSON.stringify({ Nr: 'user_id', 'Größe, in "cm"': 'metadata.size' }),
      max_errors: '3',
      max_changed: '50%',
      quote: "'",
    },
  });
  body.set('null', 'NULL');
  body.append('null', 'n/a');
  const file = body.get('file') as File;
  body.delete('file');
  body.append('file', file, "it's new, 2026.csv");
  const { body: load } = await stage.server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    body,
  });
  const exported = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', {
    event_type: ['users', 'page_view'],
    exclusions: 'user:test-*,property:pass word',
    format: 'csv',
    escape_formulas: false,
  });
  const exportPage = await stage.open(`/jobs/${exported.job_id}`);
  await exportPage.getByRole('button', { name: 'Export again' }).click();
  await exportPage.waitForURL((url) => !url.pathname.endsWith(exported.job_id));
  await exportPage.getByRole('link', { name: 'manifest.json' }).waitFor();
  const newest = new URL(exportPage.url()).pathname.split('/').at(-1) ?? '';
  expect((await runOf(newest)).options).toEqual((await runOf(exported.job_id)).options);
  const loadPage = await stage.open(`/jobs/${load.job_id}`);
  await openMenu(loadPage);
  await loadPage.getByRole('button', { name: 'Load again with another mapping' }).click();
  await loadPage.getByLabel('What Nr becomes').selectOption('company_id');
  await loadPage.getByRole('button', { name: 'Plan the load' }).click();
  await loadPage.getByText('Nothing is written yet').waitFor();
  const plannedId = new URL(loadPage.url()).pathname.split('/').at(-1) ?? '';
  const { options, phases } = await runOf(plannedId);
  expect(options).toMatchObject({
    file_of: load.job_id,
    entity: 'companies',
    plan: true,
    map: { Nr: 'company_id' },
    // The option `quote` describes the stored file, which is plain CSV.
    quote: '"',
  });
  expect(phases.map(({ phase }) => phase)).toEqual(['accepted', 'started', 'planned', 'completed']);
  await loadPage.getByRole('button', { name: /^Load: write/ }).click();
  await loadPage.getByText(/stored in/).waitFor();
  const appliedPhases = (await runOf(plannedId)).phases.map(({ phase }) => phase);
  expect(appliedPhases).toEqual(expect.arrayContaining(['planned', 'applied', 'merged', 'completed']));
  await unfold(loadPage, 'Timeline');
  await loadPage.getByText('Apply requested').waitFor();
});

test('the page of an export whose lists are cut says so, and offers no repetition', async () => {
  const { job_id: jobId } = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', {
    user_id: Array.from({ length: 101 }, (_, at) => `cut${at}`),
  });
  const page = await stage.open(`/jobs/${jobId}`);
  await page.getByText(/^0 rows exported in/).waitFor();
  await page.getByRole('link', { name: 'manifest.json' }).waitFor();
  await unfold(page, 'Details');
  await page.getByText('Long lists are cut here').waitFor();
  expect(await page.getByRole('button', { name: 'Export again' }).count()).toBe(0);
  await page.goto(stage.address(`/jobs/${jobId}/refused`));
  await page.getByText('No record was refused').waitFor();
  await page.goto(stage.address('/export'));
  await page.getByText(/user_id cut0,.*, …$/).waitFor();
});

test('the page of a deletion has its outcome and what it removed', async () => {
  await stage.post('/v1/identify', { user_id: 'gone', metadata: {} });
  const { body } = await stage.server.json<{ job_id: string }>('/v1/users', {
    method: 'DELETE',
    json: { users: ['gone', 'never there'] },
  });
  const page = await stage.open(`/jobs/${body.job_id}`);
  await page.getByText(/^1 of 2 ids deleted in/).waitFor();
  await unfold(page, 'Details');
  await page.getByText('2 requested').waitFor();
  await page.getByText('Removed events').waitFor();
  await expectAccessible(page);
});

// proves: console-truth, console-outage
test('open pages report a killed server, and then show the ledger without a reload', async () => {
  await onSite({ queue: 'postgres', settings: { CHUNK_BYTES: '4k' } }, async (site) => {
    const api = await site.serve();
    const { origin, port } = new URL(api.url);
    await site.workers(1);
    const release = await brakeAt(site, 'u77');
    const jobId = await api.upload(Buffer.from(csv(2_000, 'free')));
    const job = await stage.open(`/jobs/${jobId}`, { origin, key: site.key });
    await job.locator('.badge', { hasText: 'processing' }).waitFor();

    const load = await stage.open('/load', { origin, key: site.key });
    const limit = await limitUpload(load);
    await limit(200_000);
    const bytes = Buffer.from(`user_id,text\n${'u1,0123456789abcdef\n'.repeat(50_000)}`);
    await load
      .locator('input[type=file]')
      .setInputFiles({ name: 'cut.csv', mimeType: 'text/csv', buffer: bytes });
    await load.locator('progress[aria-label="Sent of cut.csv"]:not([value="0"])').waitFor();

    await api.process.kill('SIGKILL');
    const outage = job.getByText('The service has been unreachable since');
    await outage.waitFor();
    await load.getByText('no connection; the file is sent again by itself').waitFor();
    await release();
    await Promise.all([site.serve({ PORT: port }), limit(-1)]);

    await job.locator('.badge', { hasText: 'completed' }).waitFor();
    await outage.waitFor({ state: 'detached' });
    const ledger = await ended(site.sql, jobId);
    expect(await shownCounts(job)).toMatchObject({
      read: 2_000,
      new: ledger.inserted,
      repeated: ledger.superseded,
      rejected: ledger.rejected,
    });
    await load.getByText('Detected:').first().waitFor();
    const [upload] = await site.sql<{ sha256: string }>('select sha256 from sluice.uploads');
    expect(upload?.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
  });
});

// proves: guard-released
test('a held load shows its reason, and is loaded or discarded on its page', async () => {
  const guard = { guard: 'rows=..1 columns=user_id,plan' };
  const isHeld = (jobId: string) => async () => {
    const { body } = await stage.server.json<{ status: string }>(`/v1/background_jobs/${jobId}`);
    return body.status === 'held';
  };
  const jobId = await stage.load('user_id,<b>price\nheld-1,1\nheld-2,2\n', 'too-long.csv', guard);
  await waitFor('the load to be held', isHeld(jobId));
  const overview = await stage.open('/');
  const need = overview.getByRole('listitem').filter({ hasText: '1 load is held' });
  await need.getByRole('button', { name: 'Load it anyway' }).waitFor();
  await need.getByRole('button', { name: 'Discard the file' }).waitFor();
  await need.getByRole('link', { name: 'See why' }).click();
  await overview.waitForURL(new RegExp(`/jobs/${jobId}$`));
  const page = await expectGoodInEveryLook(stage, 'job-held', `/jobs/${jobId}`, (each) =>
    each.getByText('rows: 2 rows; expected: at most 1').first().waitFor(),
  );
  await page.getByText('columns: new: <b>price').first().waitFor();
  await page.getByRole('button', { name: 'Load it anyway' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('2 rows will be loaded').waitFor();
  await dialog.getByRole('button', { name: 'Load it anyway' }).click();
  await page.locator('.badge', { hasText: 'completed' }).waitFor();
  await unfold(page, 'Details');
  await page.getByText('Decided by').waitFor();
  expect(await shownCounts(page)).toMatchObject({ read: 2, new: 2 });

  const discardedId = await stage.load('user_id,plan\nheld-3,1\nheld-4,2\n', 'discarded.csv', guard);
  await waitFor('the load to be held', isHeld(discardedId));
  const secondOverview = await stage.open('/');
  await secondOverview.getByRole('button', { name: 'Discard the file' }).click();
  await secondOverview.getByRole('dialog').getByRole('button', { name: 'Discard it' }).click();
  await secondOverview.getByText('1 load is held').waitFor({ state: 'detached' });
  await secondOverview.goto(stage.address(`/jobs/${discardedId}`));
  await secondOverview.locator('.badge', { hasText: 'cancelled' }).waitFor();
});

test('a load that max_errors or a guard stopped is not shown as a dry run', async () => {
  const text = 'user_id,plan\nonly-1,a\n,b\n,c\n';
  for (const [fields, state, isDryRun] of [
    [{ max_errors: '1' }, 'failed', false],
    [{ guard: 'rows=..1' }, 'held', false],
    [{ dry_run: 'true' }, 'completed', true],
  ] as const) {
    const jobId = await stage.load(text, `${state}.csv`, fields);
    const page = await stage.open(`/jobs/${jobId}`);
    await page.locator('.badge', { hasText: state }).waitFor();
    expect([state, await page.getByText('dry run').count()]).toEqual([state, isDryRun ? 1 : 0]);
    await page.goto(stage.address('/jobs'));
    await page.getByRole('link', { name: `${state}.csv` }).waitFor();
    expect(await page.getByText('dry run').count()).toBe(0);
  }
});
