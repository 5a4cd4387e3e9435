import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Fault } from '../../../src/base/errors.ts';
import type { SendContext } from '../../../src/capabilities/notifications/deliver.ts';
import { openSendContext } from '../../../src/capabilities/notifications/deliver.ts';
import { type Delivery, listDeliveries } from '../../../src/capabilities/notifications/delivery-store.ts';
import { composeMail, openMailTransport } from '../../../src/capabilities/notifications/mail.ts';
import { deliveryJob } from '../../../src/capabilities/notifications/work.ts';
import type { ExportWriter } from '../../../src/export/context.ts';
import { cancelExport } from '../../../src/export/run-export.ts';
import { writeExport } from '../../../src/export/write/write-export.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { acceptExport, type ManualExport, runExportTask } from '../../support/servers/exports.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { makeTasksDue, runDueTasks } from '../../support/servers/tasks.ts';
import { type MailServer, startMailServer } from './support/mail-server.ts';

/* Tests the messages that an export sends to the addresses in its request. */

const t = await systemOfFile();
beforeEach(async () => {
  await sql`delete from tasks where kind = 'delivery'`.execute(t.system.db);
  await sql`delete from notification_events`.execute(t.system.db);
  await sql`delete from exports`.execute(t.system.db);
});
const servers: MailServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(options: Parameters<typeof startMailServer>[0] = {}): Promise<MailServer> {
  const server = await startMailServer(options);
  servers.push(server);
  return server;
}

const collectedLog = collectLog();
const from = 'sluice@example.com';

function sendingTo(url: string): SendContext {
  const { log } = collectedLog;
  const system = { ...t.system, log, baseUrl: 'https://data.example.com' };
  const mail = openMailTransport({ ...t.config, smtpUrl: url, mailFrom: from }, log);
  return { ...openSendContext(system), mail };
}

async function ended(emails: readonly string[], write: ExportWriter = writeExport): Promise<ManualExport> {
  const work = await acceptExport(t.system, t.environment.environmentId, { emails });
  await runExportTask(t.system, work.exportId, write, new AbortController().signal);
  return work;
}

async function deliveries({ jobId }: ManualExport): Promise<Delivery[]> {
  const allDeliveries = await listDeliveries(t.system.db, t.environment.environmentId, {
    failed: false,
    limit: 100,
  });
  return allDeliveries.filter((delivery) => delivery.jobId === jobId).reverse();
}

async function statesOf(work: ManualExport): Promise<string[]> {
  return (await deliveries(work)).map(({ target, state, attempts }) => `${target} ${state} ${attempts}`);
}

async function deliver(context: SendContext): Promise<void> {
  await runDueTasks(context, [deliveryJob]);
}

const makeDue = () => makeTasksDue(t.system.db, 'delivery');

test('each address gets its own message, with the links and their expiry', async () => {
  const server = await start();
  const work = await ended(['ada@example.com', 'bob@example.com']);
  await deliver(sendingTo(server.url));
  expect(server.mails.map(({ to }) => to).sort()).toEqual([['ada@example.com'], ['bob@example.com']]);
  const [mail] = server.mails;
  const source = mail?.source ?? '';
  expect(mail?.from).toBe('sluice@example.com');
  expect(source).toMatch(/^Subject: \[default\] export-\S+ completed\r$/m);
  expect(source).toMatch(/^To: (ada|bob)@example\.com\r$/m);
  expect(source).toContain('text/plain');
  const plain = source.replaceAll('=\r\n', '').replaceAll('=3D', '=');
  expect(plain).toContain(
    `https://data.example.com/api/v1/analytics/exports/files/${work.jobId}/users.ndjson.gz?expires=`,
  );
  expect(plain).toMatch(new RegExp(`\\r\\nhttp\\S+/console/jobs/${work.jobId}\\r\\n`));
  expect(plain).toMatch(/The links are good until \d{4}-/);
  expect(await statesOf(work)).toEqual(['ada@example.com delivered 1', 'bob@example.com delivered 1']);
  await deliver(sendingTo(server.url));
  expect(server.mails).toHaveLength(2);
});

test('the message about a failed export has the reason and no links', async () => {
  const server = await start();
  await ended(['ada@example.com'], async () => {
    throw new Fault('the <disk> is\r\nBcc: x@y.z broken');
  });
  await deliver(sendingTo(server.url));
  const source = server.mails[0]?.source ?? '';
  expect(source).toMatch(/^Subject: \[default\] export-\S+ failed: /m);
  expect(source).toContain('export_failed');
  expect(source).not.toContain('/files/');
  expect(source).not.toMatch(/^Bcc:/m);
  expect(source).toContain('the <disk> is');
});

test('no message is sent without addresses, or about a cancelled export', async () => {
  expect(await statesOf(await ended([]))).toEqual([]);
  const { environmentId } = t.environment;
  const work = await acceptExport(t.system, environmentId, { emails: ['ada@example.com'] });
  await cancelExport(t.system, environmentId, work.jobId);
  expect(await statesOf(work)).toEqual([]);
});

test('a deferred message is sent again later, and each address gets it once', async () => {
  let code: number | null = 451;
  const server = await start({ answer: (address) => (address === 'bob@example.com' ? code : null) });
  const work = await ended(['ada@example.com', 'bob@example.com']);
  const context = sendingTo(server.url);
  await deliver(context);
  expect(await statesOf(work)).toEqual(['ada@example.com delivered 1', 'bob@example.com pending 1']);
  // This call does not retry the delivery, because the retry is due only some seconds later.
  code = null;
  await deliver(context);
  expect((await deliveries(work))[1]).toMatchObject({ state: 'pending', attempts: 1 });
  await makeDue();
  await deliver(context);
  expect(server.mails.map(({ to }) => to[0]).sort()).toEqual(['ada@example.com', 'bob@example.com']);
  expect(await statesOf(work)).toEqual(['ada@example.com delivered 1', 'bob@example.com delivered 2']);
});

test('a message becomes a file without a mail server, and the log names it', async () => {
  const { log, lines } = collectLog();
  const folder = t.config.outboxDir;
  await ended(['ada@example.com']);
  await deliver(openSendContext({ ...t.system, log }));
  const [name] = await readdir(folder);
  expect(name).toMatch(/\.eml$/);
  const source = await readFile(join(folder, name ?? ''), 'utf8');
  expect(source).toMatch(/^To: ada@example\.com\r$/m);
  expect(lines[0]).toMatchObject({ file: join(folder, name ?? '') });
});

test('a mail about a run that an earlier version recorded has its end, its reason and its counts', () => {
  const earlier = {
    ...{ schedule: 'nightly', due_at: '2026-11-20T02:00:00.000Z', ended_at: '2026-11-20T02:01:00.000Z' },
    ...{ items: [], item_count: 1, counts_by_kind: null },
  };
  const textOf = (type: 'failed' | 'completed', data: object): string => {
    const environment = { name: 'default', app_token: 'NX-1' };
    const event = { id: 'e', type: `schedule.${type}`, created_at: '', environment, data } as const;
    return composeMail({ ...event, data: { ...earlier, ...data } }, 'ada@example.com').text;
  };
  const failed = textOf('failed', { error_code: 'source_gone', message: 'no answer', counts: null });
  expect(failed).toContain('Ended: 2026-11-20T02:01:00.000Z\nReason: no answer [source_gone]\n');
  const completed = textOf('completed', {
    error_code: null,
    message: null,
    counts: { read: 2, inserted: 2 },
  });
  expect(completed).toContain('Ended: 2026-11-20T02:01:00.000Z\nRecords read: 2\n');
});

test('names with line breaks do not end a header', async () => {
  const work = await ended(['ada@example.com']);
  const { rows } = await sql<{ body: string }>`
    select body from notification_events where job_id = ${work.jobId}`.execute(t.system.db);
  const event = JSON.parse(rows[0]?.body ?? '');
  const environment = { name: 'a\r\nBcc: x@y.z <b>"\u2028\u0000', app_token: 'NX-1' };
  const files = [{ filename: '"><script>', url: 'https://x/?a=1&b="', bytes: 1, rows: 1 }];
  const manifest = { filename: '</li><script>', url: 'https://x/?m=1', bytes: 1 };
  const links = { files, manifest, expireAt: new Date() };
  const message = composeMail({ ...event, environment }, 'ada@example.com', links);
  expect(message.subject).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(message.text).toContain('https://x/?a=1&b="');
});
