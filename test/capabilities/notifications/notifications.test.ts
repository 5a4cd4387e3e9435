import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/base/errors.ts';
import { LEASE_MS } from '../../../src/base/limits.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { defaultOutcomes, type JobKind, jobKinds } from '../../../src/capabilities/notifications/api.ts';
import {
  type DeliveryPolicy,
  openSendContext,
  readDeliveryPolicy,
  type SendContext,
} from '../../../src/capabilities/notifications/deliver.ts';
import { replayDeliveries, sendTest } from '../../../src/capabilities/notifications/deliveries.ts';
import {
  beginAttempt,
  type Delivery,
  listDeliveries,
  queueDeliveries,
  reopenDeliveries,
} from '../../../src/capabilities/notifications/delivery-store.ts';
import { openMailTransport } from '../../../src/capabilities/notifications/mail.ts';
import { sendWebhook } from '../../../src/capabilities/notifications/send-webhook.ts';
import { listSubscriptions } from '../../../src/capabilities/notifications/subscription-store.ts';
import {
  addSubscription,
  removeSubscription,
  rotateSecret,
} from '../../../src/capabilities/notifications/subscriptions.ts';
import {
  deliveryJob,
  MAX_SENDS_PER_SUBSCRIPTION,
  NOTIFICATIONS_AT_A_TIME,
} from '../../../src/capabilities/notifications/work.ts';
import type { Outcome } from '../../../src/domain/job.ts';
import { cancelExport } from '../../../src/export/run-export.ts';
import { writeExport } from '../../../src/export/write/write-export.ts';
import { prune } from '../../../src/jobs/prune.ts';
import { cancelLoad } from '../../../src/load/end.ts';
import { readLoadResult, readShown } from '../../../src/load/read-store.ts';
import { renderLoadDetail } from '../../../src/load/render-load.ts';
import { inTransaction } from '../../../src/postgres/database.ts';
import { reconcileTasks } from '../../../src/tasks/reconcile.ts';
import { withoutStop } from '../../../src/tasks/run-task.ts';
import { startRunner } from '../../../src/tasks/runner.ts';
import { endTask, findNextTasks, LostClaim } from '../../../src/tasks/store.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import {
  type FileOptions,
  type ManualLoad,
  runManually,
  startManually,
} from '../../support/files/load-file.ts';
import { checkRun } from '../../support/oracles/run-document.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { connectTo } from '../../support/servers/connect.ts';
import { acceptExport, runExportTask } from '../../support/servers/exports.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { expireTaskLeases, makeTasksDue, runDueTasks, takeTask } from '../../support/servers/tasks.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startMailServer } from './support/mail-server.ts';
import { startWebhookReceiver, type WebhookReceiver } from './support/webhook-receiver.ts';

type IsFromSluice = (secret: string, headers: IncomingHttpHeaders, body: Buffer) => boolean;

let t: TestSystem;
let receiver: WebhookReceiver;
let isFromSluice: IsFromSluice;
const collectedLog = collectLog();

beforeAll(async () => {
  t = await openTestSystem({ log: collectedLog.log });
  isFromSluice = await readDocumentedCheck();
});
afterAll(() => t?.close());
beforeEach(async () => {
  receiver = await startWebhookReceiver();
  await sql`delete from tasks where kind = 'delivery'`.execute(t.system.db);
  for (const table of ['deliveries', 'events', 'subscriptions']) {
    await sql`delete from ${sql.table(`notification_${table}`)}`.execute(t.system.db);
  }
});
afterEach(() => receiver.stop());

async function readDocumentedCheck(): Promise<IsFromSluice> {
  const page = await readFile(join(packageRoot, 'docs', 'notifications.md'), 'utf8');
  const code = /^```js verify\n(.*?)^```$/ms.exec(page)?.[1];
  if (code === undefined) throw new Error('the example is not where it was');
  const folder = await mkdtemp(join(tmpdir(), 'sluice-example-'));
  try {
    const file = join(folder, 'verify.mjs');
    await writeFile(file, code);
    return ((await import(file)) as { isFromSluice: IsFromSluice }).isFromSluice;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const openPolicy = readDeliveryPolicy({ notifyAllowPrivate: true });
const neverAborted = new AbortController().signal;

function sender(policy: Partial<DeliveryPolicy> = {}, smtpUrl = 'smtp://127.0.0.1:1'): SendContext {
  const { pool, db, queue, log } = t.system;
  return {
    pool,
    db,
    queue,
    log,
    mail: openMailTransport({ ...t.config, smtpUrl }, log),
    deliveryPolicy: { ...openPolicy, ...policy },
    linkFiles: async () => ({ files: [], manifest: null, expireAt: new Date() }),
  };
}

interface Wish {
  readonly url?: string;
  readonly email?: string;
  readonly on?: readonly Outcome[];
  readonly type?: readonly JobKind[];
  readonly environmentId?: number;
}

async function subscribe({ url = receiver.url, email, on, type, environmentId }: Wish = {}) {
  const recipient =
    email === undefined
      ? ({ channel: 'webhook', target: url } as const)
      : ({ channel: 'email', target: email } as const);
  const { subscription, secret } = await addSubscription(
    t.system,
    environmentId ?? t.environment.environmentId,
    { ...recipient, outcomes: on ?? defaultOutcomes, kinds: type ?? jobKinds },
    openPolicy,
  );
  return { id: subscription.subscriptionId, secret: secret ?? '' };
}

const withReject = 'user_id,plan\na,1\n,2\nb,3\n';
let files = 0;

/** The default load has two good records and one reject. */
const begin = (content = withReject, options: FileOptions = {}): Promise<ManualLoad> =>
  startManually(t.system, t.environment.environmentId, `${content}c${++files},4\n`, options);

const load = async (content?: string, options?: FileOptions) => runManually(await begin(content, options));

const deliveries = (): Promise<Delivery[]> =>
  listDeliveries(t.system.db, t.environment.environmentId, { failed: false, limit: 100 });

async function only(): Promise<Delivery> {
  const [delivery, ...surplus] = await deliveries();
  if (delivery === undefined || surplus.length > 0)
    throw new Error(`not one delivery but ${surplus.length + 1}`);
  return delivery;
}

async function deliver(context = sender(), deadline = neverAborted): Promise<void> {
  await runDueTasks(context, [deliveryJob], { ...withoutStop, deadline });
}

const makeDue = () => makeTasksDue(t.system.db, 'delivery');

async function dueIn(): Promise<number> {
  const { rows } = await sql<{ s: number }>`
    select extract(epoch from not_before - last_attempt_at)::float8 as s
    from notification_deliveries join tasks on kind = 'delivery' and subject_id = delivery_id`.execute(
    t.system.db,
  );
  return rows[0]?.s ?? Number.NaN;
}

describe('a webhook', () => {
  test('a webhook has the record of a load as in the API, and a verifiable signature', async () => {
    const { secret } = await subscribe();
    const ended = await load();
    await deliver();
    const [hook] = receiver.received;
    if (hook === undefined) throw new Error('nothing came');
    expect(hook).toMatchObject({ method: 'POST', path: '/hooks' });
    expect(hook.headers).toMatchObject({ 'content-type': 'application/json' });
    const body = JSON.parse(hook.body.toString());
    const result = await readLoadResult(t.system.db, t.environment.environmentId, ended);
    const shownFields = await readShown(t.system, t.environment.environmentId, ended);
    expect(body).toEqual({
      id: hook.headers['webhook-id'],
      type: 'load.completed_with_rejects',
      created_at: ended.endedAt?.toISOString(),
      environment: { name: 'default', app_token: t.environment.appToken },
      data: renderLoadDetail(ended, shownFields, result, `http://${t.config.host}:${t.config.port}`),
    });
    expect(checkRun(body.data)).toMatchObject({
      counts: { read: 4, rejected: 1 },
      rejects: { by_code: { missing_id: 1 } },
    });
    expect(isFromSluice(secret, hook.headers, hook.body)).toBe(true);
    // The check fails for a changed body, a changed id, an old time, and a different secret.
    const { headers } = hook;
    expect(isFromSluice(secret, headers, Buffer.concat([hook.body, Buffer.from(' ')]))).toBe(false);
    expect(isFromSluice(secret, { ...headers, 'webhook-id': 'x' }, hook.body)).toBe(false);
    const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 600) };
    expect(isFromSluice(secret, old, hook.body)).toBe(false);
    expect(isFromSluice((await subscribe()).secret, headers, hook.body)).toBe(false);
    expect(await only()).toMatchObject({ state: 'delivered', attempts: 1, lastStatus: 204, lastError: null });
    await deliver();
    expect(receiver.received).toHaveLength(1);
  });

  test('an event is sent only to subscriptions of its outcome, kind and environment', async () => {
    const otherTenant = await t.addEnvironment('other');
    await subscribe({ environmentId: otherTenant.environment.environmentId });
    await subscribe({ on: ['failed'] });
    await subscribe({ type: ['export'], on: ['completed', 'cancelled'] });
    const matching = await subscribe({ on: ['completed', 'cancelled'], type: ['load'] });
    const removed = await subscribe();
    await removeSubscription(t.system, t.environment.environmentId, removed.id);
    await load('user_id,plan\n');
    const waiting = await begin();
    await cancelLoad(t.system, t.environment.environmentId, waiting.jobId);
    expect((await deliveries()).map(({ eventType, subscriptionId }) => [eventType, subscriptionId])).toEqual([
      ['load.cancelled', matching.id],
      ['load.completed', matching.id],
    ]);
    const work = await acceptExport(t.system, t.environment.environmentId);
    await cancelExport(t.system, t.environment.environmentId, work.jobId);
    expect((await deliveries())[0]).toMatchObject({ eventType: 'export.cancelled', jobId: work.jobId });
    const otherDeliveries = listDeliveries(t.system.db, otherTenant.environment.environmentId, {
      failed: false,
      limit: 9,
    });
    expect(await otherDeliveries).toEqual([]);
  });

  test('failed loads and completed or failed exports send a webhook', async () => {
    await subscribe();
    await load(withReject, { maxErrors: { count: 0 } });
    const context = t.system;
    const { environmentId } = t.environment;
    await runExportTask(
      context,
      (await acceptExport(t.system, environmentId)).exportId,
      writeExport,
      neverAborted,
    );
    const { exportId } = await acceptExport(t.system, environmentId, { segment_id: await addSegment() });
    await sql`delete from segments`.execute(t.system.db);
    await runExportTask(context, exportId, writeExport, neverAborted);
    await deliver();
    const bodies = receiver.received.map(({ body }) => JSON.parse(body.toString()));
    expect(bodies).toMatchObject([
      { type: 'load.failed', data: { status: 'failed', failure: { error_code: 'too_many_rejects' } } },
      { type: 'export.completed', data: { type: 'export', status: 'completed' } },
      { type: 'export.failed', data: { status: 'failed', failure: { error_code: 'unknown_segment' } } },
    ]);
    expect(JSON.stringify(bodies)).not.toContain('signature=');
  });
});

async function addSegment(): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into segments
      (environment_id, key, title, usage, category, is_hidden, is_protected, status, definition)
    values (${t.environment.environmentId}, 'k', 't', 'u', 'c', false, false, 's', '{"all":[]}')
    returning segment_id as id`.execute(t.system.db);
  return rows[0]?.id ?? 0;
}

// proves: notification
test.each([
  ['a load of several chunks', 1],
  ['a load of one chunk', undefined],
])('an end and its notification are committed together (%s)', async (_, chunkBytes) => {
  await subscribe();
  const { db } = t.system;
  const work = await begin(withReject, { ...(chunkBytes !== undefined && { chunkBytes }) });
  for (let no = 0; work.chunkCount > 1 && no < work.chunkCount; no++) await work.chunk(no);
  // If a load has only one chunk, that chunk ends the load. Otherwise, the `finish` task does.
  const finish = () => (work.chunkCount > 1 ? work.finish() : work.chunk(0).then(work.look));
  await sql`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'refused by the test'; end $$`.execute(
    db,
  );
  // This trigger makes the transaction that ends the load fail. The rollback also removes the
  // delivery.
  await sql`
      create constraint trigger refuse after update on loads deferrable initially deferred
      for each row when (new.status = 'completed') execute function refuse()`.execute(db);
  expect(await finish()).toMatchObject({ status: 'processing' });
  await sql`drop trigger refuse on loads`.execute(db);
  expect(await deliveries()).toEqual([]);
  // This trigger refuses the delivery, so the load must not end either.
  await sql`
      create trigger refuse before insert on notification_deliveries for each row execute function refuse()`.execute(
    db,
  );
  expect(await finish()).toMatchObject({ status: 'processing' });
  await sql`drop function refuse cascade`.execute(db);
  expect(await finish()).toMatchObject({ status: 'completed' });
  expect(await deliveries()).toHaveLength(1);
  await finish();
  expect(await deliveries()).toHaveLength(1);
});

describe('a receiver', () => {
  test('a failing receiver is retried with the same id and body until it succeeds', async () => {
    const { secret } = await subscribe();
    await load();
    receiver.answer((response, nth) =>
      response.writeHead(nth < 3 ? 500 : 200).end(nth < 3 ? 'not\r\nnow' : 'ok'),
    );
    await deliver();
    expect(await only()).toMatchObject({ state: 'pending', lastStatus: 500, lastError: 'HTTP 500: not now' });
    expect(await dueIn()).toBeGreaterThan(11);
    // This call does not retry the delivery, because the retry is due only some seconds later.
    await deliver();
    expect(receiver.received).toHaveLength(1);
    for (let turn = 0; turn < 2; turn++) {
      await makeDue();
      await deliver();
    }
    expect(await only()).toMatchObject({ state: 'delivered', attempts: 3, lastStatus: 200, lastError: null });
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1);
    for (const { headers, body } of receiver.received) expect(isFromSluice(secret, headers, body)).toBe(true);
  });

  test('a receiver that answers 410 gets nothing more', async () => {
    const { id } = await subscribe();
    const { environmentId } = t.environment;
    await load();
    await load();
    receiver.answer((response) => response.writeHead(410).end());
    await deliver();
    expect(receiver.received).toHaveLength(1);
    expect((await deliveries()).map(({ state }) => state)).toEqual(['dead', 'dead']);
    const [subscription] = await listSubscriptions(t.system.db, environmentId);
    expect(subscription?.disabledReason).toContain('410');
    await load();
    expect(await deliveries()).toHaveLength(2);
    await expect(sendTest(sender(), environmentId, id)).rejects.toThrow('disabled');
  });

  test('a redirect of a receiver is not followed', async () => {
    const elsewhere = await startWebhookReceiver();
    cleanUpAfter('test', () => elsewhere.stop());
    await subscribe();
    await load();
    receiver.answer((response) => response.writeHead(307, { location: elsewhere.url }).end());
    await deliver();
    expect(await only()).toMatchObject({ state: 'pending', lastStatus: 307 });
    expect(elsewhere.connections).toBe(0);
  });

  test('a private receiver is not even connected to, unless private ones are allowed', async () => {
    const inside = `https://localhost:${receiver.port}/`;
    const byAddress = `https://127.0.0.1:${receiver.port}/`;
    await expect(
      addSubscription(
        t.system,
        t.environment.environmentId,
        { channel: 'webhook', target: byAddress, outcomes: ['failed'], kinds: ['load'] },
        { allowPrivate: false },
      ),
    ).rejects.toThrow('not a public address');
    await subscribe();
    await subscribe({ url: inside });
    await load();
    await deliver(sender({ allowPrivate: false }));
    for (const { state, lastStatus, lastError } of await deliveries()) {
      expect({ state, lastStatus }).toEqual({ state: 'pending', lastStatus: null });
      expect(lastError).toMatch(
        /^(localhost is not a public address|http:\/\/ is not allowed)\. If .* NOTIFY_ALLOW_PRIVATE=true for the service$/,
      );
    }
    expect(receiver.connections).toBe(0);
    await makeDue();
    await deliver();
    expect(receiver.received).toHaveLength(1);
  });

  test('a hanging receiver is abandoned in time, and a stop costs no attempt', async () => {
    await subscribe();
    await load();
    receiver.answer(() => undefined);
    await deliver(sender({ totalTimeoutMs: 200 }));
    expect(await only()).toMatchObject({ lastStatus: null, lastError: 'no answer within 200 ms' });
    await makeDue();
    const stopping = new AbortController();
    const interrupted = deliver(sender(), stopping.signal);
    await waitFor('the second try', () => receiver.received.length === 2);
    stopping.abort(new Interrupted('the worker stops'));
    await interrupted;
    const { rows } = await sql`select failures, lease_until as lease from tasks`.execute(t.system.db);
    expect(rows).toEqual([{ failures: 1, lease: null }]);
  });

  test('a receiver that keeps failing is abandoned until a replay with the same id', async () => {
    await subscribe();
    await load();
    receiver.answer((response) => response.writeHead(500).end());
    for (let attempt = 1; attempt <= openPolicy.attempts; attempt++) {
      expect(await only()).toMatchObject({ state: 'pending', attempts: attempt - 1 });
      await makeDue();
      await deliver();
    }
    const { state, publicId } = await only();
    expect(state).toBe('dead');
    const { environment } = await t.addEnvironment('stranger');
    await expect(replayDeliveries(t.system, environment.environmentId, { publicId })).rejects.toThrow(
      'no such delivery',
    );
    receiver.answer((response) => response.writeHead(200).end());
    const since = new Date(Date.now() - 60_000);
    expect(await replayDeliveries(t.system, t.environment.environmentId, { failedSince: since })).toEqual([
      publicId,
    ]);
    await deliver();
    expect(await only()).toMatchObject({ state: 'delivered', attempts: openPolicy.attempts + 1 });
    await replayDeliveries(t.system, t.environment.environmentId, { publicId });
    await deliver();
    expect(receiver.received).toHaveLength(openPolicy.attempts + 2);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  test('a delivery can be replayed while its subscription is removed', async () => {
    const { id } = await subscribe();
    await load();
    const { publicId } = await only();
    const { environmentId } = t.environment;
    let removal: Promise<void> | null = null;
    await inTransaction(t.system.pool, async ({ db }) => {
      const reopened = await reopenDeliveries(db, environmentId, { publicId });
      removal = removeSubscription(t.system, environmentId, id);
      await waitFor('the removal to wait', async () => {
        const { rowCount } = await t.system.pool.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rowCount === 1;
      });
      await queueDeliveries(
        db,
        reopened.map(({ deliveryId }) => deliveryId),
      );
    });
    await removal;
    expect(await only()).toMatchObject({ state: 'dead', lastError: 'the subscription was removed' });
  });

  test('a receiver gets signatures by the old and the new secret for the requested hours', async () => {
    const { id, secret } = await subscribe();
    const { environmentId } = t.environment;
    const nextSecret = await rotateSecret(t.system, environmentId, id, 24);
    expect(await sendTest(sender(), environmentId, id)).toMatchObject({ delivered: true, status: 204 });
    const [ping] = receiver.received;
    if (ping === undefined) throw new Error('nothing came');
    expect(JSON.parse(ping.body.toString())).toMatchObject({ type: 'ping', data: {} });
    for (const key of [secret, nextSecret.secret])
      expect(isFromSluice(key, ping.headers, ping.body)).toBe(true);
    const lastSecret = await rotateSecret(t.system, environmentId, id, 0);
    await sendTest(sender(), environmentId, id);
    const [, secondPing] = receiver.received;
    if (secondPing === undefined) throw new Error('nothing came');
    expect(isFromSluice(lastSecret.secret, secondPing.headers, secondPing.body)).toBe(true);
    for (const key of [secret, nextSecret.secret])
      expect(isFromSluice(key, secondPing.headers, secondPing.body)).toBe(false);
  });
});

describe('a sender', () => {
  test('a sender that dies before it records its delivery is replaced after its lease', async () => {
    await subscribe();
    await load();
    const { target } = await only();
    const { db } = t.system;
    const claim = await takeTask(sender(), deliveryJob);
    if (claim === null) throw new Error('nothing to claim');
    const { rows } = await sql<{ ms: number }>`
      select extract(epoch from lease_until - now())::float8 * 1000 as ms from tasks`.execute(db);
    // The delivery counts as running for its receiver until its lease ends.
    expect(rows[0]?.ms).toBeGreaterThan(0);
    expect(rows[0]?.ms).toBeLessThanOrEqual(LEASE_MS);
    const attempt = await beginAttempt(db, claim.subjectId);
    if (attempt === null) throw new Error('nothing to send');
    await sendWebhook({ url: target, ...attempt.event, secrets: attempt.secrets }, openPolicy, neverAborted);
    const due = async () => (await findNextTasks(db, ['delivery'], [], 10)).length;
    await reconcileTasks(sender(), [deliveryJob]);
    await deliver();
    expect(await due()).toBe(0);
    expect(receiver.received).toHaveLength(1);
    await expireTaskLeases(db, 'delivery');
    await reconcileTasks(sender(), [deliveryJob]);
    expect(await due()).toBe(1);
    await deliver();
    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(await only()).toMatchObject({ state: 'delivered', attempts: 2 });
    await expect(endTask(db, claim)).rejects.toThrow(LostClaim);
  });

  test('a hanging receiver delays no other, and a stop releases its deliveries', async () => {
    const slow = await startWebhookReceiver();
    cleanUpAfter('test', () => slow.stop());
    slow.answer(() => undefined);
    await subscribe({ url: slow.url });
    for (let count = 0; count < 4; count++) await load();
    await subscribe();
    await load();
    const running = startRunner(sender(), [deliveryJob], NOTIFICATIONS_AT_A_TIME);
    running.wake();
    await waitFor('the other receiver to be told', async () =>
      (await deliveries()).some(({ state }) => state === 'delivered'),
    );
    expect(receiver.received).toHaveLength(1);
    await waitFor('two to be under way', () => slow.received.length === 2);
    await running.stop(0);
    expect(slow.connections).toBe(2);
    const { rows } = await sql`
        select state, failures, lease_until as lease
        from notification_deliveries
        left join tasks on kind = 'delivery' and subject_id = delivery_id
        order by delivery_id`.execute(t.system.db);
    const released = { state: 'pending', failures: 0, lease: null };
    expect(rows).toEqual([...Array(5).fill(released), expect.objectContaining({ state: 'delivered' })]);
  });

  test('one receiver gets a limited number of messages at a time, even by concurrent claims', async () => {
    await subscribe();
    for (let count = 0; count < 4; count++) await load();
    const { db } = t.system;
    const claims = await connectTo(t.databaseUrl, async (gate) => {
      // Every claim takes this lock while it counts the running deliveries. The test holds the
      // lock, so all claims wait.
      await gate.query(`begin; select pg_advisory_xact_lock(${0x47525550}, hashtext('delivery'))`);
      const claiming = Array.from({ length: 4 }, () => takeTask(sender(), deliveryJob));
      await waitFor('all claims to wait for the lock', async () => {
        const { rows } = await sql<{ n: number }>`
          select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
        return (rows[0]?.n ?? 0) >= claiming.length;
      });
      await gate.query('commit');
      return Promise.all(claiming);
    });
    expect(claims.filter((claim) => claim !== null)).toHaveLength(MAX_SENDS_PER_SUBSCRIPTION);
  });
});

test('each subscriber gets one mail about rejects, and no file name ends a header', async () => {
  const mail = await startMailServer({ answer: (address) => (address === 'no@example.com' ? 550 : null) });
  cleanUpAfter('test', () => mail.stop());
  await subscribe({ email: 'ada@example.com' });
  await subscribe({ email: 'bob@example.com' });
  await subscribe({ email: 'no@example.com' });
  await load(withReject, { filename: 'users\r\nBcc: x@y.z\u2028<script>.csv' });
  await deliver(sender({}, mail.url));
  expect(mail.mails.map(({ to }) => to[0]?.toLowerCase()).sort()).toEqual([
    'ada@example.com',
    'bob@example.com',
  ]);
  const source = (mail.mails[0]?.source ?? '').replaceAll('=\r\n', '').replaceAll('=3D', '=');
  expect(source).toMatch(
    /^Subject: \[default\] users Bcc: x@y\.z <script>\.csv completed: 1 record\r\n refused\r$/m,
  );
  expect(source).not.toMatch(/^Bcc:/m);
  expect(source).toContain('Records rejected: 1');
  expect(source).toContain('Rejected as missing_id: 1');
  expect(source).toMatch(/\r\nhttp:\/\/127\.0\.0\.1:0\/console\/jobs\/[0-9a-f-]{36}\r\n/);
  const states = Object.fromEntries((await deliveries()).map(({ target, state }) => [target, state]));
  expect(states).toMatchObject({ 'no@example.com': 'dead', 'bob@example.com': 'delivered' });
});

test('a mail about an export has links for its own addresses only, each once', async () => {
  const mail = await startMailServer();
  cleanUpAfter('test', () => mail.stop());
  const bob = await subscribe({ email: 'bob@example.com' });
  await subscribe({ email: 'ada@example.com' });
  const { environmentId } = t.environment;
  const work = await acceptExport(t.system, environmentId, { emails: ['Ada@example.com'] });
  await runExportTask(t.system, work.exportId, writeExport, neverAborted);
  const listedDeliveries = (await deliveries()).map(({ target, subscriptionId, jobId }) => [
    target,
    subscriptionId,
    jobId,
  ]);
  expect(listedDeliveries.reverse()).toEqual([
    ['Ada@example.com', null, work.jobId],
    ['bob@example.com', bob.id, work.jobId],
  ]);
  const { linkFiles } = openSendContext(t.system);
  await deliver({ ...sender({}, mail.url), linkFiles });
  const sourceFor = (address: string) => mail.mails.find(({ to }) => to[0] === address)?.source;
  expect(sourceFor('ada@example.com') ?? sourceFor('Ada@example.com')).toContain('signature');
  expect(sourceFor('bob@example.com')).toMatch(/^Subject: .*\.ndjson completed\r$/m);
  expect(sourceFor('bob@example.com')).not.toMatch(/signature|\/files\//);
});

test('old notifications are removed once they were sent', async () => {
  await subscribe();
  await load();
  await load();
  await sql`update notification_events set created_at = now() - interval '31 days'`.execute(t.system.db);
  const [latestDelivery] = await deliveries();
  await deliver();
  expect(receiver.received).toHaveLength(2);
  await replayDeliveries(t.system, t.environment.environmentId, { publicId: latestDelivery?.publicId ?? '' });
  expect((await prune(t.system)).capabilityCounts).toMatchObject({ notifications: 1 });
  expect(await only()).toMatchObject({ publicId: latestDelivery?.publicId });
});

test('no secret and no address of a webhook is ever logged', async () => {
  const { id, secret } = await subscribe({ url: `${receiver.url}/pa55word?token=t0ken` });
  const nextSecret = await rotateSecret(t.system, t.environment.environmentId, id, 1);
  receiver.answer((response) => response.writeHead(404).end('Cannot POST /hooks/pa55word'));
  await load();
  await deliver();
  await receiver.stop();
  await makeDue();
  await deliver();
  expect(await only()).toMatchObject({ lastError: expect.stringContaining('ECONNREFUSED') });
  const logText = JSON.stringify(collectedLog.lines);
  expect(logText).toContain('a notification could not be delivered');
  for (const hidden of [secret, nextSecret.secret, 'whsec_', 'pa55word', 't0ken'])
    expect(logText).not.toContain(hidden);
  const subscriptions = JSON.stringify(await listSubscriptions(t.system.db, t.environment.environmentId));
  expect(subscriptions).not.toContain('whsec_');
});
