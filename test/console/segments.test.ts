import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createApiKey } from '../../src/access/key-store.ts';
import { consoleStage, expectGoodInEveryLook } from '../support/browsers/console.ts';

const stage = consoleStage();

beforeAll(async () => {
  const batch = Array.from({ length: 9 }, (_, at) => ({
    type: 'identify',
    user_id: `u${at + 1}`,
    metadata: { plan: at < 6 ? 'pro' : 'free', logins: at },
    company: { company_id: at < 3 ? 'acme' : 'globex', seats: at < 3 ? 200 : 20 },
  }));
  const payments = ['u1', 'u2', 'u7'].map((user_id) => ({
    type: 'track',
    user_id,
    event_name: 'paid',
    metadata: { amount: user_id === 'u2' ? 5 : 500 },
  }));
  await stage.post('/v1/batch', { batch: [...batch, ...payments] });
});

function clickCounter(page: Page) {
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
test('a segment is created as text, counted on request, changed and deleted', async () => {
  const page = await stage.open('/segments/new');
  await page.getByLabel('Title').fill('Très bons clients');
  expect(await page.getByLabel('Short name').inputValue()).toBe('tres-bons-clients');
  const editor = page.getByLabel('As YAML or JSON');
  const count = page.getByRole('button', { name: 'Count the users' });
  await editor.fill('property: plan\nequal: pro\n');
  await count.click();
  await page.getByRole('alert').getByText('definition: line 1').waitFor();
  await editor.fill('all:\n  - property: plan\n    equals: pro\n');
  await count.click();
  await page.getByText('6 users', { exact: true }).waitFor();
  await page.getByText('plan is "pro"').waitFor();
  await page.getByRole('button', { name: 'Create the segment' }).click();
  await page.getByRole('heading', { name: 'Très bons clients' }).waitFor();
  await page.getByLabel('Title').fill('Others');
  await editor.fill('not:\n  event: paid\n  where: [{ property: amount, greater_than: 100 }]\n');
  await count.click();
  await page.getByText('7 users', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Others' }).waitFor();
  await page.getByText('not: did "paid", where amount is above 100').first().waitFor();
  await page.getByRole('button', { name: 'Delete …' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('heading', { name: 'Segments' }).waitFor();
  expect(await page.getByRole('link', { name: 'Others' }).count()).toBe(0);
});

test('a segment is exported from the first screen in four clicks', async () => {
  await stage.post('/v1/segments', {
    key: 'pros',
    title: 'Pros',
    definition: { property: 'plan', equals: 'pro' },
  });
  const page = await stage.open('/');
  const clicks = clickCounter(page);
  await clicks.click('link', 'Segments');
  await clicks.click('link', 'Pros');
  await clicks.click('link', 'Export them');
  await clicks.click('button', /^Export \d+ rows/);
  await page.getByText('completed').first().waitFor();
  expect(clicks.count()).toBe(4);
});

test('the pages of a segment are accessible and fit in every width and theme', async () => {
  const definition = { all: [{ property: 'plan', equals: 'pro' }, { event: 'paid' }] };
  const segment = { key: 'drawn', title: 'Drawn', definition };
  const { id } = await stage.post<{ id: number }>('/v1/segments', segment);
  await expectGoodInEveryLook(stage, 'segment-made', `/segments/${id}`, (page) =>
    page.getByRole('button', { name: 'Save' }).waitFor(),
  );
  await expectGoodInEveryLook(stage, 'segment-new', '/segments/new', (page) =>
    page.getByLabel('Title').waitFor(),
  );
});

test('a reader is not offered to create or change segments', async () => {
  const { system, environment } = stage.t;
  const { key } = await createApiKey(system.db, environment.environmentId, {
    label: 'reader',
    scopes: ['read'],
  });
  const { id } = await stage.post<{ id: number }>('/v1/segments', {
    key: 'theirs',
    title: 'Theirs',
    definition: { event: 'paid' },
  });
  const page = await stage.open('/segments', { key });
  expect(await page.getByRole('link', { name: 'New segment' }).count()).toBe(0);
  await page.goto(stage.address(`/segments/${id}`));
  await page.getByRole('heading', { name: 'Theirs' }).waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Delete …' }).isDisabled()).toBe(true);
});
