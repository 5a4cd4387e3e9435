import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { composeNotice } from '../../src/delivery/compose-notice.ts';
import { type DeliveryContext, deliverNotice } from '../../src/delivery/deliver-notice.ts';
import { createOutbox } from '../../src/delivery/outbox.ts';
import type { Post } from '../../src/delivery/post.ts';
import { createSmtpPost } from '../../src/delivery/smtp-post.ts';
import { Fault } from '../../src/domain/errors.ts';
import { MAX_NOTICE_ATTEMPTS } from '../../src/domain/limits.ts';
import { type ExportWriter, runExport } from '../../src/export/run-export.ts';
import { writeExport } from '../../src/export/write/write-export.ts';
import { collectLog } from '../support/collected-log.ts';
import { acceptExport, type ManualExport, withoutExportBell } from '../support/exports.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';
import { waitFor } from '../support/wait-for.ts';

let t: TestSystem;
beforeAll(async () => {
  t = await openTestSystem();
});
afterAll(() => t?.close());
beforeEach(async () => {
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

const collected = collectLog();

function sendingTo(url: string): DeliveryContext {
  return {
    db: t.system.db,
    files: t.system.files,
    log: collected.log,
    post: createSmtpPost(url, 'sluice@example.com'),
    baseUrl: 'https://data.example.com',
    linkTtlHours: 48,
  };
}

async function ended(emails: readonly string[], write: ExportWriter = writeExport): Promise<ManualExport> {
  const work = await acceptExport(t.system, t.environment.environmentId, { emails });
  await runExport(withoutExportBell(t.system), work.exportId, write, new AbortController().signal);
  return work;
}

interface State {
  readonly due: boolean;
  readonly told: string[];
  readonly attempts: number;
  readonly error: string | null;
  readonly notified: boolean;
}

async function stateOf({ exportId }: ManualExport): Promise<State | undefined> {
  const { rows } = await sql<State>`
    select
      notify_due_at is not null as due,
      emails_told as told,
      notify_attempts as attempts,
      notify_error as error,
      notified_at is not null as notified
    from exports where export_id = ${exportId}`.execute(t.system.db);
  return rows[0];
}

const makeDue = () =>
  sql`update exports
    set notify_due_at = now(), notify_lease_until = least(notify_lease_until, now() - interval '1 s')
    where notify_due_at is not null`.execute(t.system.db);

describe('the message about an export', () => {
  test('goes to each address by itself, in text and HTML, with the links and when they expire', async () => {
    const server = await start();
    const work = await ended(['ada@example.com', 'bob@example.com']);
    await deliverNotice(sendingTo(server.url), work.exportId);
    expect(server.mails.map(({ to }) => to).sort()).toEqual([['ada@example.com'], ['bob@example.com']]);
    const [mail] = server.mails;
    const source = mail?.source ?? '';
    expect(mail?.from).toBe('sluice@example.com');
    expect(source).toMatch(/^Subject: \[default\] Export completed\r$/m);
    expect(source).toMatch(/^To: (ada|bob)@example\.com\r$/m);
    expect(source).toContain('text/plain');
    expect(source).toContain('text/html');
    const plain = source.replaceAll('=\r\n', '').replaceAll('=3D', '=');
    expect(plain).toContain(
      `https://data.example.com/api/v1/analytics/exports/files/${work.jobId}/users.ndjson.gz?expires=`,
    );
    expect(plain).toMatch(/The links are good until \d{4}-/);
    expect(await stateOf(work)).toMatchObject({ due: false, notified: true, attempts: 1 });
    await deliverNotice(sendingTo(server.url), work.exportId);
    expect(server.mails).toHaveLength(2);
  });

  test('says why it failed, and has no links', async () => {
    const server = await start();
    const work = await ended(['ada@example.com'], async () => {
      throw new Fault('the <disk> is\r\nBcc: x@y.z broken');
    });
    await deliverNotice(sendingTo(server.url), work.exportId);
    const source = server.mails[0]?.source ?? '';
    expect(source).toMatch(/^Subject: \[default\] Export failed\r$/m);
    expect(source).toContain('export_failed');
    expect(source).not.toContain('/files/');
    expect(source).not.toMatch(/^Bcc:/m);
    expect(source).toContain('the &lt;disk&gt; is');
  });

  test('is not sent where nobody asked for it, nor of what was cancelled', async () => {
    const work = await ended([]);
    expect(await stateOf(work)).toMatchObject({ due: false, notified: false });
  });
});

describe('a mail server', () => {
  test('that refuses one address for good is not asked again; the others have theirs', async () => {
    const server = await start({ answer: (address) => (address === 'no@example.com' ? 550 : null) });
    const work = await ended(['no@example.com', 'ada@example.com']);
    await deliverNotice(sendingTo(server.url), work.exportId);
    expect(server.mails.map(({ to }) => to)).toEqual([['ada@example.com']]);
    const state = await stateOf(work);
    expect(state).toMatchObject({ due: false, notified: true });
    expect(state?.error).toContain('no@example.com: 550');
  });

  test('that says "later" is asked later, and nobody has it twice', async () => {
    let code: number | null = 451;
    const server = await start({ answer: (address) => (address === 'bob@example.com' ? code : null) });
    const work = await ended(['ada@example.com', 'bob@example.com']);
    const context = sendingTo(server.url);
    await deliverNotice(context, work.exportId);
    expect(await stateOf(work)).toMatchObject({ due: true, notified: false });
    // Not yet: it is due in a minute.
    code = null;
    await deliverNotice(context, work.exportId);
    expect((await stateOf(work))?.attempts).toBe(1);
    await makeDue();
    await deliverNotice(context, work.exportId);
    expect(server.mails.map(({ to }) => to[0]).sort()).toEqual(['ada@example.com', 'bob@example.com']);
    expect(await stateOf(work)).toMatchObject({ due: false, notified: true, attempts: 2 });
  });

  test('that does not want our sender is asked again: that is a setting, which somebody will mend', async () => {
    const server = await start({ sender: 550 });
    const work = await ended(['ada@example.com']);
    await deliverNotice(sendingTo(server.url), work.exportId);
    expect(await stateOf(work)).toMatchObject({ due: true, notified: false, told: [] });
  });

  test('that puts off one address, whichever it is, has the others told', async () => {
    const emails = ['ada@example.com', 'bob@example.com', 'cyd@example.com'];
    for (const slow of emails) {
      const server = await start({ answer: (address) => (address === slow ? 451 : null) });
      const work = await ended(emails);
      await deliverNotice(sendingTo(server.url), work.exportId);
      const told = emails.filter((address) => address !== slow);
      expect(server.mails.map(({ to }) => to[0]).sort()).toEqual(told);
      expect(await stateOf(work)).toMatchObject({ due: true, notified: false, attempts: 1 });
    }
  });

  test('that is away and then back has the message in the end', async () => {
    const first = await startMailServer();
    await first.stop();
    const work = await ended(['ada@example.com']);
    const context = sendingTo(`smtp://someone:se%2Fcret@127.0.0.1:${first.port}`);
    await deliverNotice(context, work.exportId);
    const away = await stateOf(work);
    expect(away).toMatchObject({ due: true, notified: false, told: [] });
    expect(away?.error).toContain('ECONNREFUSED');
    const server = await start({ port: first.port });
    await makeDue();
    await deliverNotice(sendingTo(server.url), work.exportId);
    expect(server.mails).toHaveLength(1);
    expect(JSON.stringify(collected.lines)).not.toMatch(/se%2Fcret|se\/cret/);
  });

  test('that stays away is given up in the end', async () => {
    const gone = await startMailServer();
    await gone.stop();
    const work = await ended(['ada@example.com']);
    for (let attempt = 1; attempt <= MAX_NOTICE_ATTEMPTS; attempt++) {
      expect(await stateOf(work)).toMatchObject({ due: true, attempts: attempt - 1 });
      await makeDue();
      await deliverNotice(sendingTo(gone.url), work.exportId);
    }
    expect(await stateOf(work)).toMatchObject({ due: false, notified: false });
  });
});

test('a worker that is killed while it tells has the rest told by another, a quarter of an hour later', async () => {
  const server = await start();
  const work = await ended(['ada@example.com', 'bob@example.com']);
  const context = sendingTo(server.url);
  const sending: string[] = [];
  const post: Post = {
    ...context.post,
    send(message) {
      sending.push(message.to);
      return sending.length === 1 ? context.post.send(message) : new Promise(() => undefined);
    },
  };
  void deliverNotice({ ...context, post }, work.exportId);
  await waitFor('the second message to be under way', () => sending.length === 2);
  const { rows } = await sql<{ minutes: number }>`
    select extract(epoch from notify_due_at - now())::float8 / 60 as minutes from exports`.execute(
    t.system.db,
  );
  expect(rows[0]?.minutes).toBeGreaterThan(14);
  expect(rows[0]?.minutes).toBeLessThanOrEqual(15);
  await makeDue();
  await deliverNotice(context, work.exportId);
  expect(server.mails.map(({ to }) => to[0])).toEqual(sending);
  expect(await stateOf(work)).toMatchObject({ due: false, notified: true, attempts: 2 });
});

describe('without a mail server', () => {
  test('the message becomes a file, and the log says where', async () => {
    const { log, lines } = collectLog();
    const folder = t.config.outboxDir;
    const work = await ended(['ada@example.com']);
    const context = {
      ...sendingTo('smtp://unused'),
      log,
      post: createOutbox(folder, 'sluice@example.com', log),
    };
    await deliverNotice(context, work.exportId);
    const [name] = await readdir(folder);
    expect(name).toMatch(/\.eml$/);
    const source = await readFile(join(folder, name ?? ''), 'utf8');
    expect(source).toMatch(/^To: ada@example\.com\r$/m);
    expect(lines[0]).toMatchObject({ file: join(folder, name ?? '') });
  });
});

describe('a worker', () => {
  test('sends it by itself, through SMTP_URL', async () => {
    const server = await start();
    const own = await openTestSystem({
      worker: true,
      settings: { SMTP_URL: server.url, MAIL_FROM: 'me@here.org' },
    });
    try {
      await acceptExport(own.system, own.environment.environmentId, { emails: 'ada@example.com' });
      await waitFor('the message', () => server.mails.length === 1);
      expect(server.mails[0]?.from).toBe('me@here.org');
    } finally {
      await own.close();
    }
  });
});

test('names that would end a header or open a tag do neither', async () => {
  const work = await ended(['ada@example.com']);
  const message = composeNotice(
    {
      export: await work.look(),
      environmentName: 'a\r\nBcc: x@y.z <b>"\u2028\u0000',
      links: [{ filename: '"><script>', url: 'https://x/?a=1&b="', bytes: 1, rows: 1 }],
      linksExpireAt: new Date(),
    },
    'ada@example.com',
  );
  expect(message.subject).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(message.html).not.toContain('<script>');
  expect(message.html).toContain('href="https://x/?a=1&amp;b=&quot;"');
});
