import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FileChooser, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { consoleStage, expectGoodInEveryLook, limitUpload } from '../../../support/browsers/console.ts';
import { textRow, workbookFile } from '../../../support/files/workbook-file.ts';
import { startStallingProxy } from '../../../support/servers/stalling-proxy.ts';

const stage = consoleStage();

const customers = (count: number) =>
  [
    'Customer No;Name;Plan;Notes',
    ...Array.from({ length: count }, (_, n) => `c${n};Kundin ${n}\t;${n % 3 === 0 ? 'pro' : 'free'};`),
    ...[';Nobody;free;', ';Nobody;free;', 'x1;"Zoe" Ray;pro;'],
  ].join('\n');

async function upload(text: string, filename: string): Promise<string> {
  const { body } = await stage.server.json<{ upload_id: string }>(
    `/v1/imports/inspect?filename=${encodeURIComponent(filename)}`,
    { method: 'POST', body: text, headers: { 'content-type': 'text/csv' } },
  );
  return body.upload_id;
}

async function choose(page: Page, text: string, name: string): Promise<void> {
  const file = { name, mimeType: 'text/csv', buffer: Buffer.from(text) };
  await page.locator('input[type=file]').setInputFiles(file);
}

async function uploadOf(filename: string) {
  const uploads = await stage.t.system.db
    .selectFrom('uploads')
    .select(['file_size', 'sha256'])
    .where('filename', '=', filename)
    .execute();
  expect(uploads.length).toBeLessThanOrEqual(1);
  return uploads[0];
}

const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

const detected = (page: Page) => page.locator('.fold > summary', { hasText: 'Detected' });

async function newestJob(): Promise<string> {
  const { body } = await stage.server.json<{ job_id: string }[]>('/v1/background_jobs?limit=1');
  return body[0]?.job_id ?? '';
}

// proves: console-load
test('a CSV is selected, mapped, planned and loaded, and its rejects are corrected', async () => {
  const page = await stage.open('/load');
  await choose(page, customers(300), 'customers.csv');
  await page.getByText('Detected: CSV, UTF-8, semicolon, header line 1').click();
  expect(await page.locator('.head-line').nth(1).textContent()).toContain('c0;Kundin 0\\t;pro;');
  await page.getByText('Customer No is proposed').waitFor();
  await page.getByLabel('What Notes becomes').selectOption('ignore');
  await page.waitForURL(/map=/);
  await page.getByLabel('Property that Plan becomes').fill('tier');
  await page.getByLabel('Property that Plan becomes').press('Enter');
  await page.waitForURL(/tier/);
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByText('Nothing is written yet: 300 users would be stored').waitFor();
  expect(await stage.t.system.db.selectFrom('users').select('user_id').execute()).toEqual([]);
  await page.reload();
  await page.getByRole('button', { name: 'Load: write 300 records' }).click();
  await page.getByText('300 users stored in').waitFor();
  await page.getByRole('link', { name: 'Correct them' }).click();
  const rows = page.locator('.refused-grid tbody tr');
  await rows.nth(2).waitFor();
  await page.getByLabel('Customer No, row 301').fill('nobody');
  await page.getByLabel('Customer No, row 302').fill('somebody');
  for (const [column, value] of [
    ['Customer No', 'x1'],
    ['Name', 'Zoe "Ray", =1+1'],
    ['Plan', 'pro'],
  ]) {
    await page.getByLabel(`${column}, row 303`).fill(value ?? '');
  }
  await page.getByRole('button', { name: 'Send 3 records' }).click();
  await page.getByText('3 records sent').waitFor();
  await stage.t.ended(await newestJob());
  const users = await stage.t.system.db
    .selectFrom('users')
    .select(['user_id', 'metadata'])
    .where('user_id', 'in', ['nobody', 'somebody', 'x1', 'c3'])
    .orderBy('user_id')
    .execute();
  expect(users).toEqual([
    { user_id: 'c3', metadata: { Name: 'Kundin 3\t', tier: 'pro' } },
    { user_id: 'nobody', metadata: { Name: 'Nobody', tier: 'free' } },
    { user_id: 'somebody', metadata: { Name: 'Nobody', tier: 'free' } },
    { user_id: 'x1', metadata: { Name: 'Zoe "Ray", =1+1', tier: 'pro' } },
  ]);
});

// proves: console-load, plan-exact
test('a dropped file is loaded in two clicks, with a plan of events by day and name', async () => {
  const page = await stage.open('/load');
  await page.evaluate("clicks = 0, document.addEventListener('click', () => void clicks++, true)");
  const days = ['02', '02', '04'].map((day, at) => `track,Paid,d${at},2026-01-${day}\n`);
  const text = `event_type,event_name,user_id,inserted_at\n${days.join('')}`;
  const dataTransfer = await page.evaluateHandle(
    `(() => {
      const data = new DataTransfer();
      data.items.add(new File([${JSON.stringify(text)}], 'dropped.csv', { type: 'text/csv' }));
      return data;
    })()`,
  );
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer });
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByRole('img', { name: '3 events from 2026-01-02 to 2026-01-04' }).waitFor();
  await page.getByRole('row', { name: 'Paid 3' }).waitFor();
  await page.getByRole('button', { name: 'Load: write 3 records' }).click();
  await page.getByText('3 records stored in').waitFor();
  // One click plans the load, and the other starts it. Selecting the file instead of dropping it
  // would need a third click.
  expect(await page.evaluate('clicks')).toBe(2);
});

// proves: console-load
test('a file can be loaded by keyboard alone, from its selection to its result', async () => {
  const page = await stage.open('/load');
  // The listener must exist before the key is pressed, so that the browser reports the dialog.
  const chooser = new Promise<FileChooser>((resolve) => page.once('filechooser', resolve));
  const focusOn = async (name: string) => {
    const focused = () =>
      page.evaluate(
        '(({ tagName, textContent, labels }) => /^(A|BUTTON|INPUT)$/.test(tagName) ? [textContent, labels?.[0]?.textContent].join(" ") : "")(document.activeElement)',
      );
    for (let tries = 0; tries < 60; tries++) {
      if (String(await focused()).includes(name)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`${name} cannot be reached with Tab`);
  };
  await focusOn('Choose files');
  await page.keyboard.press('Space');
  const text = 'user_id,plan\nk1,pro\nk2,free\n';
  await (await chooser).setFiles({ name: 'keys.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
  await page.getByRole('button', { name: 'Plan the load' }).waitFor();
  await focusOn('Plan the load');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing is written yet').waitFor();
  await focusOn('Load: write 2 records');
  await page.keyboard.press('Enter');
  await page.getByText('2 users stored in').waitFor();
});

// proves: console-load
test('a file is sent again after a lost connection, and is stored unchanged', async () => {
  const proxy = await startStallingProxy(new URL(stage.server.address));
  const page = await stage.open('/load', { origin: `http://127.0.0.1:${proxy.port}` });
  const text = `user_id,text\n${'u1,0123456789abcdef\n'.repeat(50_000)}`;
  const limit = await limitUpload(page);
  await limit(400_000);
  await choose(page, text, 'cut.csv');
  await page.locator('progress[aria-label="Sent of cut.csv"]:not([value="0"])').waitFor();
  expect(await uploadOf('cut.csv')).toBeUndefined();
  proxy.refuse();
  await page.getByText('the file is sent again by itself').waitFor();
  proxy.resume();
  await limit(-1);
  await detected(page).waitFor();
  expect(await uploadOf('cut.csv')).toMatchObject({
    file_size: text.length,
    sha256: hash(Buffer.from(text)),
  });
  await proxy.close();
});

// proves: console-load
test('the steps of a load are accessible, and text of a file is never markup', async () => {
  const evil = '<img src=x onerror=alert(1)>';
  const id = await upload(`user_id,${evil}\nu1,${evil}\n,"${evil}"x\n`, `${evil}.csv`);
  const customersUpload = await upload(customers(300), 'customers.csv');
  const profiles = ['c1;Kundin 1;free', 'c2;Kundin 2;team', 'n1;Neu;pro', ';x;'];
  const events = ['2025-11-02', '2025-11-02', '2025-11-30', '2026-01-09'];
  const plannedUpload = await upload(
    [
      'Customer No;Name;Plan;event_type;event_name;inserted_at',
      ...profiles.map((profile) => `${profile};identify_user;;`),
      ...events.map(
        (day, at) => `c1;;${at};track;${at === 2 ? 'Plan upgraded' : 'Signed in'};${day}T10:00:00Z`,
      ),
    ].join('\n'),
    'november.csv',
  );
  const map = { 'Customer No': 'user_id' };
  const jobs = [];
  for (const options of [{ upload_id: customersUpload }, { upload_id: plannedUpload, plan: true }]) {
    const { job_id } = await stage.post<{ job_id: string }>('/v1/imports', { ...options, map });
    await stage.t.ended(job_id);
    jobs.push(job_id);
  }
  for (const [name, path, text] of [
    ['load-file', '/load', 'Drop files here'],
    ['load-columns', `/load?upload=${customersUpload}`, '4 columns'],
    ['load-reading', `/load?header=1&upload=${customersUpload}`, 'Raw text'],
    ['load-plan', `/jobs/${jobs[1]}`, 'Before → after'],
    ['load-result', `/jobs/${jobs[0]}`, 'Why records were rejected'],
  ] as const) {
    await expectGoodInEveryLook(stage, name, path, (page) => page.getByText(text).first().waitFor());
  }
  const page = await stage.open(`/load?upload=${id}`);
  await page.getByText(evil).first().waitFor();
  await page.getByLabel(`What ${evil} becomes`).waitFor();
  expect(await page.locator('img').count()).toBe(0);
});

// proves: console-load
test('quick choices of columns are all kept, however late the server answers', async () => {
  const proxy = await startStallingProxy(new URL(stage.server.address));
  const id = await upload(customers(50), 'late.csv');
  const page = await stage.open(`/load?upload=${id}`, {
    origin: `http://127.0.0.1:${proxy.port}`,
  });
  await page.getByLabel('What Notes becomes').waitFor();
  proxy.hold();
  await page.getByLabel('What Notes becomes').selectOption('ignore');
  await page.getByLabel('What Plan becomes').selectOption('company_id');
  await page.getByLabel('Property that Name becomes').fill('called');
  await page.getByLabel('Property that Name becomes').press('Enter');
  const choices = async () => [
    await page.getByLabel('What Notes becomes').inputValue(),
    await page.getByLabel('What Plan becomes').inputValue(),
    await page.getByLabel('Property that Name becomes').inputValue(),
    await page.getByLabel('What Customer No becomes').inputValue(),
  ];
  const expectedChoices = ['ignore', 'company_id', 'called', 'user_id'];
  expect(await choices()).toEqual(expectedChoices);
  proxy.resume();
  await page.locator('.load-step[aria-busy=false]').waitFor();
  expect(await choices()).toEqual(expectedChoices);
  expect(JSON.parse(new URL(page.url()).searchParams.get('map') ?? '')).toEqual({
    'Customer No': 'user_id',
    Notes: '',
    Plan: 'company_id',
    Name: 'called',
  });
  await proxy.close();
});

test('the kind of the rows and the distinct ids are shown, and shared ids reported', async () => {
  const rows = Array.from({ length: 40 }, (_, n) => `p${n},acme${n % 4},Person ${n}`);
  const text = ['Customer No,company_id,Name', ...rows].join('\n');
  const page = await stage.open(`/load?upload=${await upload(text, 'people.csv')}`);
  const rowsBecome = 'Each of the 40 rows becomes a';
  await page.getByText(`${rowsBecome} company, identified by company_id: 4 distinct ids.`).waitFor();
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByText('(36) share their id with a later one').waitFor();
  await page.goBack();
  await page.getByLabel('What Customer No becomes').selectOption('user_id');
  const users = `${rowsBecome} user, identified by Customer No: 40 distinct ids; its company is company_id, 4 distinct.`;
  await page.getByText(users).waitFor();
});

test('events of another product are recognised, and not proposed as users', async () => {
  const rows = Array.from({ length: 20 }, (_, n) => `track,Opened,u${n % 3},2026-01-02T03:04:05Z,id${n}`);
  const text = ['type,event,userId,timestamp,messageId', ...rows].join('\n');
  const page = await stage.open(`/load?upload=${await upload(text, 'segment.csv')}`);
  await page.getByText('This is read as an export of Segment').waitFor();
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByText('Nothing is written yet: 20 records would be stored').waitFor();
  expect(await page.getByText('identify_user').count()).toBe(0);
});

// proves: typed-columns
test('a column is offered the types that its values look like', async () => {
  const text = 'user_id,Since,Seats\ntyped,1/2/2026,"1,200"\n';
  const page = await stage.open(`/load?upload=${await upload(text, 'types.csv')}`);
  await page.getByText('Looks like: date, day or month first').waitFor();
  await page.getByLabel('Type of Since').selectOption('day_first');
  await page.getByLabel('Type of Seats').selectOption('number');
  await page.locator('.load-step[aria-busy=false]').waitFor();
  await page.getByText('2026-02-01').waitFor();
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByRole('button', { name: 'Load: write 1 record' }).click();
  await page.getByText('1 user stored in').waitFor();
  const { metadata } = await stage.t.system.db
    .selectFrom('users')
    .select('metadata')
    .where('user_id', '=', 'typed')
    .executeTakeFirstOrThrow();
  expect(metadata).toEqual({ Since: '2026-02-01', Seats: 1200 });
});

test('an encoding and a sheet of a workbook can be selected', async () => {
  const turkish = Buffer.from('user_id,ad\nu1,\xdeükr\xfc \xdd\xfe\xfdk\n', 'latin1');
  const { body } = await stage.server.json<{ upload_id: string }>('/v1/imports/inspect?filename=tr.csv', {
    method: 'POST',
    body: new Uint8Array(turkish),
    headers: { 'content-type': 'text/csv' },
  });
  const page = await stage.open(`/load?upload=${body.upload_id}`);
  await page.getByLabel('Encoding').selectOption('windows-1254');
  await page.getByText('Şükrü İşık').first().waitFor();
  const sheets = [
    { name: 'Notes', rows: textRow(1, 'user_id', 'name') + textRow(2, 'n1', 'Bob') },
    { name: 'People', rows: textRow(1, 'user_id', 'name') + textRow(2, 'x1', 'Ada') },
  ];
  await page.goto(stage.address('/load'));
  const mimeType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
  const book = { name: 'book.xlsx', mimeType, buffer: workbookFile({ sheets }) };
  await page.locator('input[type=file]').setInputFiles(book);
  await page.locator('.values', { hasText: 'Bob' }).waitFor();
  expect(await page.getByText('Detected: null').count()).toBe(0);
  await page.getByText('Detected: Excel, Notes').click();
  await page.getByLabel('Sheet').selectOption('People');
  await page.locator('.values', { hasText: 'Ada' }).waitFor();
});

test('a file is loaded as a mirror, and its job shows the removals', async () => {
  const page = await stage.open('/load');
  await choose(page, 'user_id,plan\nmirrored,pro\n', 'mirror.csv');
  await detected(page).click();
  await page.getByLabel('Profiles not in the file').selectOption('remove');
  await page.getByLabel('At most').fill('0');
  await page.getByLabel('At most').press('Enter');
  await page.waitForURL(/max_removed=0/);
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByRole('button', { name: 'Load: write 1 record' }).click();
  await page.getByText('1 user stored in').waitFor();
  await page.getByText('profiles are missing from the file').waitFor();
});

// proves: console-load
test('a cancelled upload is not kept, and an abandoned or planned one is not loaded', async () => {
  const page = await stage.open('/load');
  await (await limitUpload(page))(50_000);
  await choose(page, `user_id,text\n${'u1,0123456789\n'.repeat(50_000)}`, 'sending.csv');
  await page.getByRole('button', { name: 'Cancel sending.csv' }).click();
  await page.getByText('sending.csv').waitFor({ state: 'detached' });
  expect(await uploadOf('sending.csv')).toBeUndefined();
  const text = 'user_id\nleft-behind\n';
  await choose(page, text, 'came.csv');
  await page.getByRole('link', { name: 'Another file' }).click();
  await page.getByText('Drop files here').waitFor();
  expect(new URL(page.url()).searchParams.get('upload')).toBeNull();
  await choose(page, text, 'planned.csv');
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByRole('button', { name: /^Load: write/ }).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'Another file' }).click();
  await page.getByText('Drop files here').waitFor();
  expect((await stage.server.fetch('/v1/users/left-behind')).status).toBe(404);
});

// proves: foreign-files
test('an export of another product is recognised or selected, and loaded', async () => {
  const page = await stage.open('/load');
  const text = await readFile(
    new URL('../../../../examples/presets/posthog.ndjson', import.meta.url),
    'utf8',
  );
  await choose(page, text, 'events.ndjson');
  await detected(page).click();
  expect(await page.getByLabel('Export of').locator('option').first().textContent()).toBe(
    'Detected: PostHog',
  );
  await page.getByLabel('Export of').selectOption('posthog');
  await page.waitForURL(/preset=posthog/);
  await page.getByText('This is read as an export of PostHog').waitFor();
  expect(await page.getByLabel(/^What .* becomes$/).count()).toBe(0);
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByRole('button', { name: 'Load: write 5 records' }).click();
  await page.getByText('5 records stored in').waitFor();
  const eventsQuery = stage.t.system.db
    .selectFrom('events')
    .select('event_name')
    .where('user_id', 'in', ['ada', 'grace']);
  expect(await eventsQuery.execute()).toHaveLength(2);
});

// proves: foreign-files
test('events without a type cannot be planned until their kind is chosen', async () => {
  const page = await stage.open('/load');
  await choose(page, 'user,event,created_at\nada,Paid,2026-03-04\n', 'own.csv');
  await page.getByText('The records must say what they are').waitFor();
  await page.getByLabel('What user becomes').selectOption('user_id');
  await page.waitForURL(/map=/);
  await page.getByText('The records must say what they are').waitFor();
  expect(await page.getByRole('button', { name: 'Plan the load' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'They are users' }).click();
  await page.getByText('becomes a user').waitFor();
  expect(await page.getByRole('button', { name: 'Plan the load' }).isEnabled()).toBe(true);
});

test('a file without an id column offers likely columns, and one click selects one', async () => {
  const page = await stage.open('/load');
  await choose(page, 'alpha,beta\ncured,x\ncured,x\n', 'cure.csv');
  await page.getByText('Which one says who the rows are about?').waitFor();
  await page.getByRole('button', { name: 'alpha is the user id' }).click();
  await page.getByText('identified by alpha: 1 distinct id').waitFor();
  await page.getByRole('button', { name: 'Plan the load' }).click();
  await page.getByText('1 user would be stored').waitFor();
});
