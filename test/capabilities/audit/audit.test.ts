import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import type { AuditEntry, AuditPage } from '../../../src/capabilities/audit/api.ts';
import { audit, MAX_COUNTED_NETWORKS, openLog } from '../../../src/capabilities/audit/audit.ts';
import { removeExpired } from '../../../src/capabilities/audit/store.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { openServer, signIn, walkPages } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { waitFor } from '../../support/wait-for.ts';
import { doNext, readSchedule, requestRun, scheduleContext } from '../schedules/support/schedules.ts';

const adminKey = 'an-administrators-key-of-enough-length';
const settings = { ADMIN_KEY: adminKey, TRUST_PROXY: '127.0.0.1,::1' };
const { t, server } = await openServer({ worker: true, settings });
const { db } = t.system;
const other = await t.addEnvironment('other');
const admin = await signIn(server, adminKey);

/** Highest id at the beginning of the test. Each test reads only later entries. */
let first = 0;
beforeEach(async () => {
  await t.system.acts.close();
  first = Number((await all()).at(0)?.id ?? 0);
});

async function all(query = ''): Promise<AuditEntry[]> {
  const { status, body } = await server.json<AuditPage>(`/v1/audit?limit=100${query}`, admin);
  expect(status).toBe(200);
  return [...body.data];
}

/** Returns the entries since the beginning of the test, oldest first. */
const entries = async (query = '') => (await all(query)).filter(({ id }) => Number(id) > first).reverse();

const actions = async (query = '') => (await entries(query)).map(({ action }) => action);

async function job(path: string, options: object): Promise<string> {
  const { status, body } = await server.json<{ job_id: string }>(path, options);
  expect([200, 201, 202], JSON.stringify(body)).toContain(status);
  await t.ended(body.job_id).catch(() => undefined);
  return body.job_id;
}

interface Detail {
  readonly end_time: string | null;
  readonly presigned_urls: readonly { readonly url: string; readonly filename: string }[];
}

const csv = (body: string) => ({ method: 'POST', body, headers: { 'content-type': 'text/csv' } });

test('an entry says who did what, on which thing, from where and with which details', async () => {
  const { body } = await server.json<{ key_id: string; key: string }>('/v1/keys', {
    ...admin,
    json: { label: 'nightly', scopes: ['read'] },
  });
  const [entry, ...more] = await entries();
  expect(more).toEqual([]);
  expect(entry).toEqual({
    id: expect.stringMatching(/^\d+$/),
    environment: 'default',
    at: expect.any(String),
    last_at: entry?.at,
    count: 1,
    action: 'key.created',
    outcome: 'done',
    actor: {
      kind: 'api_key',
      name: 'ADMIN_KEY',
      session_id: expect.any(String),
      address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
    },
    thing: body.key_id,
    details: { label: 'nightly', scopes: 'read' },
  });
});

test('each decision about jobs, settings and people has an entry without their values', async () => {
  const person = 'ada.lovelace@example.com';
  const load = await job('/v1/imports?filename=ada.csv', csv(`user_id,plan\n${person},secret-plan\n`));
  const plan = await job('/v1/imports?plan=true', csv(`user_id,plan\n${person},other-plan\n`));
  await job(`/v1/background_jobs/${plan}/apply`, { json: {} });
  const undo = await job(`/v1/background_jobs/${load}/undo`, { method: 'POST' });
  const file = 'users: { properties: { plan: { enum: [secret-plan, other-plan] } } }';
  await server.json('/v1/rules', { method: 'PUT', json: { file } });
  const schedule = { cron: '0 3 * * *', export: {} };
  await server.json('/v1/schedules/nightly', { method: 'PUT', json: schedule });
  await server.json('/v1/schedules/nightly', { method: 'PATCH', json: { paused: true } });
  await server.json('/v1/schedules/nightly/runs', { json: {} });
  await server.json('/v1/schedules/nightly', { method: 'DELETE' });
  const hook = { url: 'https://example.com/hooks?token=hush' };
  const { body: subscription } = await server.json<{ id: string }>('/v1/subscriptions', {
    ...admin,
    json: hook,
  });
  await server.json(`/v1/subscriptions/${subscription.id}`, { ...admin, method: 'DELETE' });
  const segment = { key: 'payers', title: 'Payers', definition: { property: 'plan', equals: 'secret-plan' } };
  const { body: made } = await server.json<{ id: number }>('/v1/segments', { json: segment });
  await server.json(`/v1/segments/${made.id}`, { method: 'DELETE' });
  const { body: deletion } = await server.json<{ job_id: string }>('/v1/users', {
    method: 'DELETE',
    json: { users: [person, 'u2'], suppress: true },
  });
  await waitFor('the deletion', async () => {
    const { body } = await server.json<{ status: string }>(`/v1/background_jobs/${deletion.job_id}`);
    return body.status === 'completed';
  });
  await server.json('/v1/suppressions', { method: 'DELETE', json: { users: [person] } });
  await server.json('/v1/environments/default', {
    ...admin,
    method: 'PATCH',
    json: { allowed_origins: ['https://example.com'] },
  });
  const found = (await entries()).filter(({ actor }) => actor.kind === 'api_key');
  const key = t.key.split('_')[1] ?? '';
  expect(
    found.map(({ action, actor, thing, details }) => [
      action,
      actor.name === key ? 'key' : actor.name,
      thing,
      details,
    ]),
  ).toEqual([
    ['load.accepted', 'key', load, { type: 'import', records: 1, bytes: expect.any(Number) }],
    ['load.accepted', 'key', plan, expect.anything()],
    ['load.applied', 'key', plan, {}],
    ['load.undone', 'key', load, { undo_job_id: undo, plan: false }],
    ['rules.applied', 'key', null, { version: 1 }],
    ['schedule.created', 'key', 'nightly', {}],
    ['schedule.paused', 'key', 'nightly', {}],
    ['schedule.run', 'key', 'nightly', { due_at: expect.any(String) }],
    ['schedule.deleted', 'key', 'nightly', {}],
    ['subscription.created', 'ADMIN_KEY', subscription.id, { channel: 'webhook' }],
    ['subscription.removed', 'ADMIN_KEY', subscription.id, {}],
    ['segment.created', 'key', String(made.id), {}],
    ['segment.deleted', 'key', String(made.id), {}],
    [
      'deletion.accepted',
      'key',
      deletion.job_id,
      { entity: 'users', ids: 2, purge_exports: false, suppress: true },
    ],
    ['suppression.lifted', 'key', null, { ids: 1, lifted: 1 }],
    ['environment.changed', 'ADMIN_KEY', 'default', { allowed_origins: 1, export_layout: 'datasets' }],
  ]);
  const { rows } = await sql`select e::text from audit_entries e`.execute(db);
  expect(JSON.stringify(rows)).not.toMatch(/lovelace|secret-plan|ada\.csv|hush|slk_/);
  expect(JSON.stringify(rows)).not.toContain(t.key.split('_')[2]);
});

test('a run of a schedule acts as its schedule', async () => {
  const context = scheduleContext(t);
  await requestRun(
    context,
    t.environment.environmentId,
    readSchedule({ name: 'hourly', export: {} }),
    new Date(),
  );
  await doNext(context);
  const [entry] = await entries('&action=export.requested');
  expect(entry?.actor).toEqual({ kind: 'schedule', name: 'hourly', session_id: null, address: null });
});

test('a file that is read in parts has one entry with a count, and HEAD has none', async () => {
  await server.json('/v1/identify', { json: { user_id: 'u1' } });
  const path = '/api/v1/analytics/exports';
  const { body } = await server.json<{ job_id: string }>(path, { json: {} });
  const detail = await waitFor('the export', async () => {
    const { body: shown } = await server.json<Detail>(`${path}/jobs/${body.job_id}`);
    return shown.end_time !== null && shown;
  });
  const [file] = detail.presigned_urls;
  const read = (options: object) => server.fetch(file?.url ?? '', { key: null, ...options });
  await read({ method: 'HEAD' });
  for (const range of ['bytes=0-1', 'bytes=2-3', 'bytes=4-']) await read({ headers: { range } });
  const downloads = (await entries()).filter(({ action }) => action === 'file.downloaded');
  expect(downloads).toMatchObject([
    {
      thing: `${body.job_id}/${file?.filename}`,
      count: 3,
      actor: { kind: 'api_key', name: t.key.split('_')[1] },
    },
  ]);
});

test('single records, reads and refused requests have no entry', async () => {
  await server.json('/v1/identify', { json: { user_id: 'u1' } });
  await server.json('/v1/track', { json: { user_id: 'u1', event_name: 'e' } });
  await server.json('/v1/batch', { json: { users: [{ user_id: 'u1' }] } });
  await server.json('/v1/users');
  await server.json('/v1/keys', { json: { label: 'not by a key' } });
  await server.json('/v1/background_jobs/01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42/cancel', { method: 'POST' });
  expect(await actions()).toEqual([]);
});

test('commands act as the account that runs them, and print the log of all environments', async () => {
  await runCommand(t, 'env', 'create', 'made-by-command');
  await runCommand(t, 'keys', 'create', '--env', 'made-by-command', '--label', 'first');
  const printed = JSON.parse(await runCommand(t, 'audit', '--json', '--limit', '2')) as AuditEntry[];
  expect(printed).toMatchObject([
    { action: 'key.created', environment: 'made-by-command', actor: { kind: 'command_line' } },
    { action: 'environment.created', environment: null, thing: 'made-by-command' },
  ]);
  expect(printed[0]?.actor.name).not.toBeNull();
  expect(await runCommand(t, 'audit', '--env', 'made-by-command')).toMatch(/key\.created/);
  const lines = (await runCommand(t, 'audit', '--ndjson', '--action', 'environment')).trim().split('\n');
  const parsed = lines.map((line) => JSON.parse(line) as AuditEntry);
  expect(parsed.every(({ action }) => action.startsWith('environment.'))).toBe(true);
  expect(await actions()).toEqual([]);
});

test('the log is shown to administrators of its environment alone, with any cursor', async () => {
  for (const label of ['a', 'b', 'c']) await server.json('/v1/keys', { ...admin, json: { label } });
  const theirs = await signIn(server, adminKey);
  await server.json('/v1/console/session', {
    ...theirs,
    method: 'PUT',
    body: JSON.stringify({ environment: other.environment.name }),
  });
  await server.json('/v1/keys', { ...theirs, json: { label: 'theirs' } });
  const ours = (await entries()).filter(({ action }) => action === 'key.created');
  expect(ours.map(({ details }) => details['label'])).toEqual(['a', 'b', 'c']);
  const cursors = ['', ...ours.map(({ id }) => id), '999999999999'].map((id) =>
    Buffer.from(id).toString('base64url'),
  );
  for (const filter of ['', '&actor=ADMIN_KEY', `&thing=${ours[0]?.thing}`, '&format=ndjson']) {
    for (const cursor of cursors) {
      const text = await (await server.fetch(`/v1/audit?cursor=${cursor}${filter}`, theirs)).text();
      expect(text).not.toMatch(/"environment":"(?!other)|"environment":null/);
    }
  }
  for (const cursor of [
    '-1',
    '1;drop',
    '%00',
    "1' or 1=1",
    '9'.repeat(40),
    Buffer.from('-5').toString('base64url'),
  ])
    expect((await server.fetch(`/v1/audit?cursor=${encodeURIComponent(cursor)}`, theirs)).status).toBe(400);
  expect((await server.fetch('/v1/audit')).status).toBe(403);
  expect((await server.fetch('/v1/audit', { key: null })).status).toBe(401);
});

test('pages are complete and in order while entries are added', async () => {
  for (const label of ['1', '2', '3', '4', '5']) await server.json('/v1/keys', { ...admin, json: { label } });
  const add = async () => void (await server.json('/v1/keys', { ...admin, json: { label: 'later' } }));
  const walked = await walkPages(
    async (cursor) =>
      (await server.json<AuditPage>(`/v1/audit?action=key.created&limit=2&cursor=${cursor}`, admin)).body,
    add,
  );
  const labels = walked.filter(({ id }) => Number(id) > first).map(({ details }) => details['label']);
  expect(labels).toEqual(['5', '4', '3', '2', '1']);
});

/** Runs a statement as the owner of the table. Returns the error. */
const attempt = (text: string, on: Database = db) =>
  sql
    .raw(text)
    .execute(on)
    .then(
      () => 'done',
      (error: Error) => error.message,
    );

test('no statement of the table’s owner changes or removes an entry before its time', async () => {
  await server.json('/v1/keys', { ...admin, json: { label: 'kept' } });
  await server.fetch('/v1/users', { key: 'wrong' });
  await t.system.acts.close();
  const before = await all();
  const statements = [
    `update audit_entries set actor_name = 'somebody else'`,
    'update audit_entries set count = count + 1, thing = null where hour is not null',
    'update audit_entries set count = 1 where count > 0',
    `update audit_entries set at = '2000-01-01'`,
    'delete from audit_entries',
    `delete from audit_entries where action = 'key.created'`,
    'truncate audit_entries',
    'truncate environments cascade',
  ];
  for (const statement of statements) {
    expect(await attempt(statement), statement).toMatch(/cannot be changed or removed/);
    for (const setting of [
      'session_replication_role = replica',
      "sluice.audit_days = '0'",
      "sluice.audit_days = '1'",
    ]) {
      const message = await db
        .transaction()
        .execute(async (transaction) => {
          await sql.raw(`set local ${setting}`).execute(transaction);
          throw new Error(await attempt(statement, transaction));
        })
        .catch((error: Error) => error.message);
      expect(message, `${setting}; ${statement}`).toMatch(
        /cannot be changed or removed|permission denied to set/,
      );
    }
  }
  const { rows } = await sql`select tgenabled::text as enabled from pg_trigger
    where tgrelid = 'audit_entries'::regclass and not tgisinternal`.execute(db);
  expect(rows).toEqual([{ enabled: 'A' }, { enabled: 'A' }]);
  expect(await all()).toEqual(before);
});

test('retention removes entries that are older than AUDIT_DAYS, and no others', async () => {
  const add = (age: string) =>
    sql`insert into audit_entries (at, action, outcome, actor_kind, thing)
        values (now() - ${age}::interval, 'key.created', 'done', 'service', ${age})`.execute(db);
  for (const age of ['40 days', '31 days', '29 days', '1 day']) await add(age);
  const config = { ...t.config, auditDays: 30 };
  const { files, log } = t.system;
  expect(await audit.maintain?.({ db, files, log, config: { ...config, auditDays: 0 } })).toEqual({
    audit_entries: 0,
  });
  // Entries of earlier tests are recent but have lower ids. Retention must look beyond them to find
  // the two expired entries.
  expect(await audit.maintain?.({ db, files, log, config })).toEqual({ audit_entries: 2 });
  expect(await removeExpired(db, 30)).toBe(0);
  const { rows } = await sql<{
    thing: string;
  }>`select thing from audit_entries where actor_kind = 'service' and thing like '%day%' order by entry_id`.execute(
    db,
  );
  expect(rows.map(({ thing }) => thing)).toEqual(['29 days', '1 day']);
});

test('refused credentials of many addresses are counted in a bounded number of entries', async () => {
  const wrong = `slk_${'0'.repeat(12)}_${'0'.repeat(40)}`;
  for (let n = 0; n < 20; n++)
    await server.fetch('/v1/users', { key: wrong, headers: { 'x-forwarded-for': '203.0.113.7' } });
  await t.system.acts.close();
  const log = openLog(t.system);
  const attempts = 50_000;
  for (let n = 0; n < attempts; n++) {
    const address =
      n % 2 === 0
        ? `2001:db8:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`
        : `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
    log.refused({
      action: 'key.refused',
      reason: 'unknown',
      address: n % 100 === 0 ? `\n${n} forged` : address,
    });
  }
  await log.close();
  const { rows } = await sql<{ address: string | null; count: number }>`
    select address, count from audit_entries where details ->> 'reason' = 'unknown' and entry_id > ${first}`.execute(
    db,
  );
  expect(rows.length).toBeLessThanOrEqual(MAX_COUNTED_NETWORKS + 2);
  expect(rows.reduce((sum, { count }) => sum + Number(count), 0)).toBe(attempts + 20);
  expect(rows).toContainEqual({ address: '203.0.113.7', count: 20 });
  expect(rows.some(({ address }) => address?.includes('forged'))).toBe(false);
});

test('names in an entry cannot add lines, hide text or grow without bound', async () => {
  const log = openLog(t.system);
  const evil = `nightly\n2026-11-20 root key.created\u202e\u0000\u200b\ud800${'x'.repeat(10_000)}`;
  const details = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`field${n}`, `"\\${evil}`]));
  await log.acted(
    db,
    { kind: 'schedule', name: evil, address: evil },
    { action: 'schedule.created', environmentId: t.environment.environmentId, thing: evil, details },
  );
  const [entry] = await entries();
  const texts = [
    entry?.actor.name,
    entry?.actor.address,
    entry?.thing,
    ...Object.values(entry?.details ?? {}),
  ];
  expect(texts).toHaveLength(13);
  for (const text of texts) {
    expect(String(text).length).toBeLessThanOrEqual(200);
    expect(String(text)).toMatch(/nightlyU\+000A2026-11-20 root/);
    expect(String(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
  }
  expect((await runCommand(t, 'audit', '--limit', '1')).trim().split('\n')).toHaveLength(3);
});

test('with AUDIT_DAYS=0 nothing is recorded', () => {
  expect(audit.acts?.({ ...t.system, config: { ...t.config, auditDays: 0 } })).toBeNull();
});
