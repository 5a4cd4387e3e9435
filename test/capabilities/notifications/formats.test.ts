import { afterAll, expect, test } from 'vitest';
import type { DeliveryDetail as Delivery } from '../../../src/capabilities/notifications/api.ts';
import { briefOf, formats } from '../../../src/capabilities/notifications/brief.ts';
import type { EventBody } from '../../../src/capabilities/notifications/record.ts';
import { type ErrorBody, form, openServer, signIn } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from './support/webhook-receiver.ts';

const adminKey = 'admin-key-of-the-tests-0123';
const receiver = await startWebhookReceiver();
afterAll(() => receiver.stop());
const settings = {
  ADMIN_KEY: adminKey,
  NOTIFY_ALLOW_PRIVATE: 'true',
  PUBLIC_URL: 'https://data.example.com',
};
const { t, server } = await openServer({ worker: true, settings });
const admin = await signIn(server, adminKey);

interface Subscription {
  readonly id: string;
  readonly target: string;
  readonly format: string;
  readonly secret: string | null;
}

function add(body: object) {
  const options = { ...admin, method: 'POST', body: JSON.stringify(body) };
  return server.json<Subscription & Partial<ErrorBody>>('/v1/subscriptions', options);
}

/** Decodes Slack's escapes. Slack reads only unescaped angle brackets as mentions and links. */
const shownBySlack = (text: string) =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

// Callers choose file names. If this name were not escaped, its beginning would notify everybody in
// a chat.
const filename = '<!channel> & *b* [x](mailto:a@b) {{{DATE(2026)}} <@U1>.csv';
const outcome = [`[default] ${filename} completed with rejects`, '2 records read, 1 refused', 'missing_id 1'];

test('chats get a brief without markup and a link, and programs get the signed event', async () => {
  for (const format of ['standard', 'slack', 'teams']) {
    const { status, body } = await add({ url: `${receiver.url}/${format}/T0/secret`, format });
    expect([status, body.format, body.secret === null]).toEqual([201, format, format !== 'standard']);
  }
  const body = form('user_id,plan\nu1,pro\n,free\n', { filename });
  const { job_id: jobId } = await server.load(body);
  await waitFor('all deliveries', async () => receiver.received.length === 3);
  const messageTo = (format: string) => {
    const message = receiver.received.find(({ path }) => path.includes(format));
    if (message === undefined) throw new Error(`no message to ${format}`);
    return { headers: message.headers, body: JSON.parse(message.body.toString('utf8')) as unknown };
  };
  const signature = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  const link = `https://data.example.com/console/jobs/${jobId}`;

  const slack = messageTo('slack');
  const { text } = slack.body as { text: string };
  expect(text).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
  expect(shownBySlack(text).split('\n')).toEqual(outcome);
  expect(slack.body).toEqual({
    text,
    mrkdwn: false,
    blocks: [
      { type: 'section', text: { type: 'plain_text', text, emoji: false } },
      { type: 'section', text: { type: 'mrkdwn', text: `<${link}|Open the job>` } },
    ],
  });

  const teams = messageTo('teams');
  const run = (line: string, more = {}) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: line.replace('{{{', '{ { {'), ...more }],
  });
  const [what = '', ...others] = outcome;
  expect(teams.body).toMatchObject({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          type: 'AdaptiveCard',
          body: [run(what, { weight: 'Bolder' }), ...others.map((line) => run(line))],
          actions: [{ type: 'Action.OpenUrl', url: link }],
        },
      },
    ],
  });

  for (const { headers } of [slack, teams]) {
    expect(signature.filter((name) => name in headers)).toEqual([]);
    expect(headers['content-type']).toBe('application/json');
  }
  const standard = messageTo('standard');
  expect(signature.filter((name) => name in standard.headers)).toEqual(signature);
  expect(standard.body).toMatchObject({ type: 'load.completed_with_rejects', data: { filename } });
});

test('the path and query of a webhook are shown to nobody, and a chat has no secret to rotate', async () => {
  const url = `${receiver.url}/services/T0/hidden`;
  const { body } = await add({ url, format: 'slack' });
  const shown = `${new URL(receiver.url).origin}/***`;
  expect(body).toMatchObject({ target: shown });
  receiver.answer((response) => void response.writeHead(500).end());
  await server.json(`/v1/subscriptions/${body.id}/test`, { method: 'POST' });
  const { data } = (await server.json<{ data: Delivery[] }>('/v1/deliveries?state=dead')).body;
  expect(data).toMatchObject([{ target: shown, last_status: 500 }]);
  const list = await server.json<Subscription[]>('/v1/subscriptions');
  expect(list.body.find(({ id }) => id === body.id)).toMatchObject({ target: shown, format: 'slack' });
  const signed = await add({ url: `${receiver.url}/hidden?token=hidden` });
  expect(signed.body).toMatchObject({ target: shown, format: 'standard' });
  const table = await runCommand(t, 'notifications', 'list');
  expect(table).toContain(`${shown}  standard`);
  for (const each of [JSON.stringify([list.body, body, signed.body]), table])
    expect(each).not.toContain('hidden');
  await expect(runCommand(t, 'notifications', 'rotate-secret', body.id)).rejects.toThrow(
    'Only webhooks of the format standard have a secret',
  );
});

test('subscriptions for channels of one host are listed with their unique names', async () => {
  const url = `${receiver.url}/x`;
  const { id } = (await add({ url, format: 'slack', name: 'ops' })).body;
  const command = ['notifications', 'add', '--url', `${url}y`, '--format', 'slack', '--name'];
  await runCommand(t, ...command, 'sales');
  const table = await runCommand(t, 'notifications', 'list');
  expect(table).toMatch(new RegExp(`^${id}  ops `, 'm'));
  expect(table).toMatch(/^\S+ {2}sales /m);
  for (const [name, message] of [
    ['ops', 'name is taken: another subscription is named ops'],
    ['Ops!', 'name must be 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit'],
  ] as const) {
    const { status, body } = await add({ url, name });
    expect([status, body.errors]).toMatchObject([400, [{ message, details: 'name' }]]);
    await expect(runCommand(t, ...command, name)).rejects.toThrow(message);
  }
});

test('a wrong format is refused by the API and the command line', async () => {
  const url = `${receiver.url}/x`;
  for (const [wish, message] of [
    [{ url, format: 'discord' }, /^format is one of standard, slack, teams$/],
    [{ email: 'a@example.com', format: 'slack' }, /^format is about webhooks\. Leave it out/],
  ] as const) {
    const { status, body } = await add(wish);
    expect([status, body.errors?.[0]?.details]).toEqual([400, 'format']);
    expect(body.errors?.[0]?.message).toMatch(message);
  }
  const printed = await runCommand(t, 'notifications', 'add', '--url', url, '--format', 'teams', '--json');
  expect(JSON.parse(printed)).toMatchObject({ format: 'teams', target: expect.stringMatching(/\/\*{3}$/) });
  expect(JSON.parse(printed)).not.toHaveProperty('secret');
});

const long = '😀<'.repeat(500);
const job = { job_id: 'j', links: 'https://x.example/v1/background_jobs/j', filename: long };
const counts = { read: 1_200, inserted: 0, updated: 0, unchanged: 0, superseded: 0, rejected: 3 };
const events: readonly (readonly [string, object, string | null, string | null])[] = [
  ['ping', {}, null, 'Messages about jobs will come here'],
  [
    'load.failed',
    { ...job, counts, rejects: { count: 3, by_code: {} }, failure: { message: 'too many', error_code: 'x' } },
    '1,200 records read, 3 refused',
    'too many',
  ],
  [
    'load.held',
    { ...job, counts, held: { reasons: [{ message: '412 rows; usual: 745 to 1,256' }, { message: 'b' }] } },
    '1,200 records read, 0 refused',
    '412 rows; usual: 745 to 1,256; b',
  ],
  [
    'export.failed',
    { ...job, type: 'export', counts: { written: 7 }, total_rows: 7, failure: { message: 'no disk' } },
    '7 rows',
    'no disk',
  ],
  [
    'schedule.failed',
    { schedule: 'n', item_count: 1, failure: { error_code: 'x', message: 'no answer' }, items: [] },
    '1 item',
    'no answer',
  ],
  [
    'schedule.failed',
    { schedule: 'n', item_count: 2, error_code: 'x', message: 'as recorded before', counts: null, items: [] },
    '2 items',
    'as recorded before',
  ],
  [
    'file.refused',
    { file: long, size: 2_048, reasons: [{ message: 'No records', details: 'line 1' }] },
    '2.0 KiB',
    'No records: line 1',
  ],
  [
    'file.refused',
    { file: 'a.csv', size: 1, reasons: [{ message: 'The file is too large', details: '' }] },
    '1 B',
    'The file is too large',
  ],
];

test.each(events)(
  'the brief of %s has outcome, count and reason, and fits a phone',
  (type, data, count, reason) => {
    const environment = { name: 'default', app_token: 'NX-1A2B3C4D' };
    const event = { id: 'e', type, created_at: '', environment, data } as EventBody;
    expect(briefOf(event)).toMatchObject({ count, reason });
    const [, outcome = ''] = type === 'file.refused' ? ['', 'was not loaded'] : type.split('.');
    expect(briefOf(event).what.endsWith(outcome)).toBe(true);
    for (const each of [event, { ...event, data: { ...data, message: long, failure: { message: long } } }]) {
      const { text } = JSON.parse(formats.slack(JSON.stringify(each))) as { text: string };
      expect(shownBySlack(text).length).toBeLessThanOrEqual(300);
      expect(text).toMatch(/^\[default\] /);
    }
  },
);
