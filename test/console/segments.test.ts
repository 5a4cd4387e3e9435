import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createApiKey } from '../../src/postgres/stores/api-keys.ts';
import { storeSize } from '../../src/postgres/stores/segments.ts';
import { consoleStage, expectGoodInEveryLook } from '../support/console.ts';

const stage = consoleStage();

beforeAll(async () => {
  const batch = Array.from({ length: 9 }, (_, at) => ({
    type: 'identify',
    user_id: `u${at + 1}`,
    metadata: { plan: at < 6 ? 'pro' : 'free', logins: at },
    company: { company_id: at < 3 ? 'acme' : 'globex', seats: at < 3 ? 200 : 20 },
  }));
  const paid = ['u1', 'u2', 'u7'].map((user_id) => ({
    ...{ type: 'track', user_id, event_name: 'paid', metadata: { amount: user_id === 'u2' ? 5 : 500 } },
  }));
  await stage.post('/v1/batch', { batch: [...batch, ...paid] });
});

/** Counts the clicks of a person; typing and choosing are none. */
function countingClicks(page: Page) {
  let clicks = 0;
  return {
    count: () => clicks,
    click: async (role: 'link' | 'button', name: string | RegExp) => {
      clicks++;
      await page.getByRole(role, { name }).first().click();
    },
  };
}

// proves: segments-made
test('a segment is made in the page out of what is known, counted while it is typed, and exported in four clicks', async () => {
  const page = await stage.open('/segments/new');
  const person = countingClicks(page);
  await page.getByLabel('Title').fill('Très bons clients');
  expect(await page.getByLabel('Short name').inputValue()).toBe('tres-bons-clients');
  await page.getByLabel('Property of the user').fill('plan');
  await page.getByText('Fill in the conditions').waitFor();
  await page.getByLabel('Value').fill('pro');
  await page.getByText('6 users', { exact: true }).waitFor();
  await page.getByText('plan is "pro"').waitFor();
  expect(await page.locator('datalist option[value="logins"]').count()).toBeGreaterThan(0);
  await person.click('button', 'Create the segment');
  await page.getByRole('heading', { name: 'Très bons clients' }).waitFor();
  await person.click('link', 'Export them');
  await person.click('button', /^Export \d+ rows/);
  await page.getByText('completed').first().waitFor();
  expect(person.count()).toBe(3);
});

test('from the first screen a segment is exported in four clicks', async () => {
  await stage.post('/v1/segments', {
    key: 'pros',
    title: 'Pros',
    definition: { property: 'plan', equals: 'pro' },
  });
  const page = await stage.open('/');
  const person = countingClicks(page);
  await person.click('link', 'Segments');
  await person.click('link', 'Pros');
  await person.click('link', 'Export them');
  await person.click('button', /^Export \d+ rows/);
  await page.getByText('completed').first().waitFor();
  expect(person.count()).toBe(4);
});

// proves: segments-made
test('groups, companies, events and their properties can be put together, changed, saved and deleted', async () => {
  const page = await stage.open('/segments/new');
  await page.getByLabel('Title').fill('Payers');
  await page.getByLabel('Property of the user').fill('company_id');
  await page.locator('datalist option[value="globex"]').waitFor({ state: 'attached' });
  await page.getByLabel('Value').fill('acme');
  await page.getByText('3 users', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Add an event' }).click();
  await page.getByLabel('Event', { exact: true }).fill('paid');
  await page.getByText('2 users', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Add an event property' }).click();
  await page.getByLabel('Property of the event').fill('amount');
  const compared = page.getByLabel('Operator');
  await compared.nth(1).selectOption({ label: 'is above, after' });
  await page.getByLabel('Value').nth(1).fill('100');
  await page.getByText('1 user', { exact: true }).waitFor();
  await page.getByLabel('Users who match').selectOption({ label: 'none of these' });
  await page.getByText('5 users', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Create the segment' }).click();
  await page.getByText('not: any of these holds').first().waitFor();
  await page.getByText('There is no count yet: users are counted every night.').waitFor();
  await page.getByLabel('Title').fill('Others');
  await page.getByRole('button', { name: 'Remove' }).first().click();
  await page.getByText(/^7 users, 2 more than now$/).waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Others' }).waitFor();
  await page.getByText('7 users').first().waitFor();
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('heading', { name: 'Segments' }).waitFor();
  expect(await page.getByRole('link', { name: 'Others' }).count()).toBe(0);
});

test('the size of a segment is drawn by day, and its page is good in every look', async () => {
  const definition = {
    all: [
      { property: 'plan', equals: 'pro' },
      { event: 'paid', where: [{ property: 'amount', exists: true }] },
    ],
  };
  const { id } = await stage.post<{ id: number }>('/v1/segments', {
    key: 'drawn',
    title: 'Drawn',
    definition,
  });
  for (const [day, users] of [
    ['2026-11-18', 4],
    ['2026-11-19', null],
    ['2026-11-20', 12],
  ] as const) {
    await storeSize(stage.t.system.db, id, { day, users });
  }
  await expectGoodInEveryLook(stage, 'segment-made', `/segments/${id}`, async (page) => {
    await page.getByRole('img', { name: '4 users on 2026-11-18, 12 users on 2026-11-20' }).waitFor();
    await page.getByRole('button', { name: 'Save' }).waitFor();
  });
  await expectGoodInEveryLook(stage, 'segment-new', '/segments/new', (page) =>
    page.getByLabel('Title').waitFor(),
  );
});

test('whoever may only read is not offered to make or change segments', async () => {
  const { system, environment } = stage.t;
  const { key } = await createApiKey(system.db, environment.environmentId, {
    label: 'reader',
    scopes: ['read'],
  });
  const { id } = await stage.post<{ id: number }>('/v1/segments', {
    ...{ key: 'theirs', title: 'Theirs', definition: { event: 'paid' } },
  });
  const page = await stage.open('/segments', { key });
  expect(await page.getByRole('link', { name: 'New segment' }).count()).toBe(0);
  await page.goto(stage.address(`/segments/${id}`));
  await page.getByRole('heading', { name: 'Theirs' }).waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Delete …' }).isDisabled()).toBe(true);
});
