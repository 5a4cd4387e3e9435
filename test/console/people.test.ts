import { beforeAll, expect, test } from 'vitest';
import { consoleStage, expectAccessible, expectGoodInEveryLook } from '../support/browsers/console.ts';
import { apply, segmentItem } from '../support/servers/definitions.ts';

const stage = consoleStage();
const script = '<img src=x onerror=alert(1)>';

function nameOf(n: number): string {
  if (n % 7 === 0) return script;
  return n % 3 === 0 ? 'report_shared' : 'page_opened';
}

beforeAll(async () => {
  const names = ['Ada Lovelace', 'Grace Hopper', 'Alan Turing', 'Katherine Johnson', 'Edsger Dijkstra'];
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const records = names.flatMap((name, at) => [
    {
      type: 'identify',
      user_id: `u${at + 1}`,
      metadata: {
        name,
        email: `${name.split(' ')[0]?.toLowerCase()}@example.com`,
        plan: at % 2 === 0 ? 'pro' : 'free',
        logins: 7 * (at + 1),
        newsletter: at > 1,
        signup_date: `2026-0${at + 1}-12`,
        ...(at === 0 && { [script]: script, about: 'Wrote the first program. '.repeat(12) }),
      },
      company:
        at < 3
          ? { company_id: 'acme', name: 'Acme Tools', seats: 120 }
          : { company_id: 'globex', seats: 120 },
    },
    ...Array.from({ length: 30 * (5 - at) }, (_, n) => ({
      type: 'track',
      user_id: `u${at + 1}`,
      event_name: nameOf(n),
      inserted_at: daysAgo(((n * n) % 29) + (n % 10) / 10),
      metadata: { report: 'Q3', pages: n, via: script },
    })),
  ]);
  await stage.post('/v1/batch', { batch: records });
  await stage.post('/v1/track', { user_id: 'ghost', event_name: 'opened' });
  await apply(stage.t, stage.t, {
    segments: [
      segmentItem('pro', { title: 'Pro plan', category: 'Plans' }),
      segmentItem('sharers', {
        title: 'People who share reports',
        category: 'Engagement',
        definition: {
          all: [
            { event: 'report_shared', at_least: 3, within_days: 30 },
            {
              any: [
                { property: 'plan', in: ['pro', 'enterprise'] },
                { company_property: 'seats', greater_than: 100 },
              ],
            },
            { not: { property: 'email', contains: '@test.' } },
          ],
        },
      }),
    ],
  });
});

test('people are counted and filtered by search, property and segment in the address', async () => {
  const page = await expectGoodInEveryLook(stage, 'people', '/people', (each) =>
    each.getByText('Grace Hopper').waitFor(),
  );
  await page.locator('header').getByText('5 users').waitFor();
  await page.getByLabel('Property').fill('plan:pro');
  await page.getByLabel('Property').press('Enter');
  await page.getByText('3 users').waitFor();
  await page.getByLabel('Search').fill('u5');
  await page.getByText('1 user').waitFor();
  await page.reload();
  await page.getByText('Edsger Dijkstra').waitFor();
  await page.getByRole('link', { name: 'Clear' }).click();
  await page.getByLabel('Segment').selectOption({ label: 'Pro plan' });
  await page.getByText('3 users').waitFor();
});

// proves: people-search
test('people and companies are found by a part of an id, name or address, with marks', async () => {
  await expectGoodInEveryLook(stage, 'people-search', '/people?search=a', async (page) => {
    await page.locator('mark', { hasText: 'A' }).first().waitFor();
    await page.getByText(/^\d+ found$/).waitFor();
  });
  const page = await stage.open('/people');
  await page.getByText('Grace Hopper').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('HOPp');
  await page.locator('mark', { hasText: /^Hopp$/ }).waitFor();
  await page.getByText('1 found').waitFor();
  expect(new URL(page.url()).search).toBe('?search=HOPp');
  await page.getByLabel('Search').fill('ADA@');
  await page.locator('mark', { hasText: /^ada@$/ }).waitFor();
  await page.getByLabel('Search').fill('nobody');
  await page.getByText('No user matches').waitFor();
  await page.goto(stage.address('/companies?search=LOB'));
  await page.locator('mark', { hasText: /^lob$/ }).waitFor();
});

test('people are listed with the name of their company, or its id if it has no name', async () => {
  const page = await stage.open('/people');
  const rowOf = (id: string) => page.getByRole('row', { name: new RegExp(`^${id}\\b`) });
  await rowOf('u1').getByText('acme', { exact: true }).waitFor();
  await rowOf('u4').getByRole('link', { name: 'globex', exact: true }).waitFor();
  await rowOf('u1').getByRole('link', { name: 'Acme Tools', exact: true }).click();
  await page.waitForURL(/\/companies\/acme$/);
});

test('a search that the server cuts off continues until it has a result', async () => {
  const page = await stage.open('/people');
  const link = (await stage.server.fetch('/v1/users?limit=1')).headers.get('link') ?? '';
  let emptyPages = 0;
  await page.route(/search=hopper(?!.*cursor)/, (route) => {
    emptyPages++;
    return route.fulfill({ json: { data: [], metadata: { cursor: { after: '' } } }, headers: { link } });
  });
  await page.getByLabel('Search').fill('hopper');
  // Rows that are already on the page are highlighted immediately.
  await page.getByText('1 found').waitFor();
  expect(emptyPages).toBe(1);
});

test('a person is shown with properties, company and events, and markup stays text', async () => {
  const page = await expectGoodInEveryLook(stage, 'person', '/people/u1', async (each) => {
    await each.getByRole('heading', { name: 'Latest events' }).waitFor();
  });
  await page.getByRole('row', { name: /^signup_date \d/ }).waitFor();
  await page.getByRole('link', { name: 'Acme Tools (acme)', exact: true }).click();
  await page.getByRole('link', { name: 'u3' }).waitFor();
  let requests = 0;
  page.on('request', (request) => {
    if (request.url().includes('ghost') && request.url().includes('/v1/')) requests++;
  });
  await page.goto(stage.address('/people/ghost'));
  await page.getByText('No profile has this id').waitFor();
  expect(requests).toBe(1);
  await page.getByRole('button', { name: 'Look for its events' }).click();
  await page.getByText('opened').waitFor();
});

test('the page of a person has the profile before each change, with its job', async () => {
  await stage.post('/v1/identify', { user_id: 'hist-1', metadata: { plan: 'none' } });
  const text = `user_id,name,plan,${script}\nhist-0,x,,\nhist-1,"Mary\nAnn",free,${script}\n`;
  await stage.t.ended(await stage.load(text, 'first.csv'));
  await stage.post('/v1/identify', {
    user_id: 'hist-1',
    metadata: { plan: 'pro' },
    company: { company_id: 'initech' },
  });
  for (let seats = 1; seats < 20; seats++) {
    await stage.post('/v1/identify', { user_id: 'hist-1', metadata: { seats } });
  }
  const page = await expectGoodInEveryLook(stage, 'history', '/people/hist-1', async (each) => {
    await each.getByText('changed by a request before: name').first().click();
    await each.locator('details[open] dd', { hasText: /^18$/ }).waitFor();
  });
  await page.getByText('changed by a request before: name').first().waitFor();
  await page.getByText('first.csv').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Next page' }).click();
  await page.getByText('changed by first.csv before: plan none').click();
});

test('companies are listed and filtered, and a company is shown with its people', async () => {
  const list = await stage.open('/companies');
  await list.getByText('globex').waitFor();
  await list.getByLabel('Property').fill('plan:none');
  // The address changes twice here: when the filter loses the focus, and when the row receives it.
  await list.locator('.row-open').first().focus();
  await list.getByText('No company matches').waitFor();
  await expectGoodInEveryLook(stage, 'companies', '/companies', (page) => page.getByText('globex').waitFor());
  await expectGoodInEveryLook(stage, 'company', '/companies/acme', async (page) => {
    await page.getByRole('link', { name: 'u1' }).waitFor();
  });
});

test('a person is deleted after a confirmation with the counted events', async () => {
  const page = await stage.open('/people/u5');
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByText('The profile and 30 events will be removed.').waitFor();
  await page.getByRole('button', { name: 'Delete this user' }).click();
  await page.waitForURL(/\/jobs\//);
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  await page.goto(stage.address('/people/u5'));
  await page.getByText('No profile has this id').waitFor();
  await page.getByRole('button', { name: 'Look for its events' }).click();
  await page.getByText('No events').waitFor();
  expect(await page.getByText('Kept out').count()).toBe(0);
});

test('a segment is described in words, counted on request, and checked line by line', async () => {
  const page = await expectGoodInEveryLook(stage, 'segments', '/segments', (each) =>
    each.getByText('Pro plan').waitFor(),
  );
  await page.getByRole('link', { name: 'People who share reports' }).click();
  await page.getByText('did at least 3 times "report_shared" in the last 30 days').waitFor();
  const path = new URL(page.url()).pathname.replace('/console', '');
  await expectGoodInEveryLook(stage, 'segment', path, (each) =>
    each.getByRole('button', { name: 'Count the users' }).waitFor(),
  );
  await page.getByText(/wins over the console/).waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Count the users' }).click();
  await page.getByText(/^\d+ users?$/).waitFor();
  const editor = page.getByLabel('As YAML or JSON');
  await editor.fill('property: email\ncontain: ada@\n');
  await page.getByRole('button', { name: 'Count the users' }).click();
  await page.getByText('definition: line 1').waitFor();
  expect(await page.locator('.editor-lines :nth-child(1)').getAttribute('data-marked')).toBe('');
  await editor.fill('property: email\ncontains: ada@\n');
  await page.getByRole('button', { name: 'Count the users' }).click();
  await page.getByText('email contains "ada@"').waitFor();
});

test('an export shows its rows and first lines before its start, and then its files', async () => {
  await expectGoodInEveryLook(stage, 'export', '/export?format=csv&compression=none', async (page) => {
    await page.getByRole('columnheader', { name: 'user_id' }).first().waitFor();
  });
  const page = await stage.open('/export');
  await page.getByRole('checkbox', { name: 'Users', exact: true }).check();
  const add = page.getByLabel('Add a filter');
  await add.selectOption('Segment');
  await page.getByLabel('Segment').selectOption({ label: 'Pro plan' });
  await add.selectOption('Ids of companies');
  await page.getByLabel('Ids of companies').fill('acme');
  await page.getByLabel('Ids of companies').press('Enter');
  await page.getByRole('radio', { name: 'CSV' }).check();
  await add.selectOption('Properties');
  await page.getByLabel('email').uncheck();
  await page.waitForURL(/leave_out=email/);
  const button = page.getByRole('button', { name: 'Export 2 rows' });
  await button.waitFor();
  await page.reload();
  await button.waitFor();
  await page.getByRole('cell', { name: 'Alan Turing' }).waitFor();
  expect(await page.getByText('ada@example.com').count()).toBe(0);
  await page.getByRole('button', { name: 'Remove Ids of companies' }).click();
  await page.getByRole('button', { name: 'Export 3 rows' }).waitFor();
  await page.getByRole('button', { name: 'Export 3 rows' }).click();
  await page.waitForURL(/\/jobs\/[0-9a-f-]{36}$/);
  await page.getByRole('link', { name: 'users.csv.gz' }).waitFor();
  const path = new URL(page.url()).pathname.replace('/console', '');
  await expectGoodInEveryLook(stage, 'export-files', path, (each) =>
    each.getByRole('link', { name: 'manifest.json' }).waitFor(),
  );
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'users.csv.gz' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('users.csv.gz');
  await page.goto(stage.address('/export'));
  await page.locator('section', { hasText: 'Earlier exports' }).getByRole('link', { name: 'All' }).click();
  await page.getByText('1 job').waitFor();
});

test('an export continues from an earlier one, with removals on request', async () => {
  const { job_id } = await stage.post<{ job_id: string }>('/api/v1/analytics/exports', {
    event_type: ['users'],
  });
  const page = await stage.open(`/jobs/${job_id}`);
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  await stage.post('/v1/identify', { user_id: 'u2', metadata: { plan: 'pro' } });
  await page.goto(stage.address('/export?kinds=users'));
  await page.getByLabel('Add a filter').selectOption('Changed since an export');
  await page.getByLabel('Only what changed since an export').selectOption({ index: 1 });
  await page.getByRole('button', { name: 'Export 1 row' }).waitFor();
  await page.getByLabel('Include what was removed').check();
  await page.waitForURL(/removed=yes/);
  await page.getByRole('cell', { name: 'pro', exact: true }).waitFor();
});

test('every one of 250 segments can be opened and selected', async () => {
  const titles = Array.from({ length: 250 }, (_, n) => `Group ${n + 1}`);
  await apply(stage.t, stage.t, {
    segments: titles.map((title, n) => segmentItem(`group-${n}`, { title })),
  });
  const page = await stage.open('/segments');
  await page.getByText(/200 of \d+ segments/).waitFor();
  await page.getByRole('link', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'Group 250', exact: true }).waitFor();
  await expectAccessible(page);
  for (const path of ['/people', '/export?segment_id=1']) {
    await page.goto(stage.address(path));
    await page.getByLabel('Segment').selectOption({ label: 'Group 250' });
  }
});
