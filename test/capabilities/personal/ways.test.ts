import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { openPersonal } from '../../../src/capabilities/personal/personal.ts';
import { readRulesFile } from '../../../src/capabilities/rules/file.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import { requireReady } from '../../../src/processes/preflight.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { heldLoad } from '../../support/files/guard.ts';
import { endedLoad, readProfiles } from '../../support/files/load-file.ts';
import { keepCsv } from '../../support/files/uploads.ts';
import { openServer, refusalOf, serve } from '../../support/servers/http.ts';
import { openTestSystem, type Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const PERSONAL_KEY = 'a-secret-of-the-tests-for-hashes';
const { t, server } = await openServer({ settings: { PERSONAL_KEY }, worker: true });

const valuesOf = (environmentId: number) => openPersonal(t.system, environmentId, ['hash']);

const rules = `users:
  properties:
    email: { pattern: '^[^@]+@[^@]+$', otherwise: refuse, personal: hash }
    name: { personal: hash }
    ip: { personal: hash }
    ssn: { personal: drop }
    address.street: { personal: hash }
companies:
  properties:
    contact: { personal: hash }
events:
  properties:
    email: { personal: hash }
`;
const secrets = [
  'ada@clear.example',
  'Ada "Clear", Lovelace',
  '203.0.113.77',
  '078-05-1120',
  'bad clear value',
];
const [email, name, ip, ssn, bad] = secrets as [string, string, string, string, string];
const good = { user_id: 'u1', email, name, ip, ssn, plan: 'pro' };
const users = [good, { user_id: 'u2', email: bad, name }];

async function load({ key, environment }: Tenant, path: string, body: string, type: string): Promise<string> {
  const { body: answer } = await server.json<{ job_id: string }>(path, {
    method: 'POST',
    body,
    headers: { 'content-type': type },
    key,
  });
  const { tally } = await endedLoad(t.system, environment.environmentId, answer.job_id);
  expect(tally).toMatchObject({ rejected: 1 });
  return `/v1/background_jobs/${answer.job_id}/rejects`;
}

const cell = (text = '') => `"${text.replaceAll('"', '""')}"`;
const ways: Readonly<Record<string, (tenant: Tenant) => Promise<unknown>>> = {
  csv: (tenant) => {
    const lines = users.map((user: Record<string, string>) =>
      Object.keys(good)
        .map((of) => cell(user[of]))
        .join(),
    );
    return load(
      tenant,
      '/v1/imports?format=csv',
      `${[Object.keys(good).join(), ...lines].join('\n')}\n`,
      'text/csv',
    );
  },
  ndjson: (tenant) => {
    const lines = users.map((user) => `${JSON.stringify(user)}\n`).join('');
    return load(tenant, '/v1/imports?format=ndjson', lines, 'application/x-ndjson');
  },
  bulk: (tenant) => load(tenant, '/v1/users/bulk_identify', JSON.stringify({ users }), 'application/json'),
  single: ({ key }) => Promise.all(users.map((json) => server.json('/v1/identify', { json, key }))),
  batch: ({ key }) => {
    const batch = users.map((user) => ({ type: 'identify', ...user }));
    return server.json('/v1/batch', { json: { batch }, key });
  },
  segment: ({ key }) => {
    const batch = users.map(({ user_id, ...traits }) => ({ type: 'identify', userId: user_id, traits }));
    return server.json('/v1/batch', { json: { batch }, key });
  },
};

/** For each product: a path, a record, and the properties that the user must then have. */
const emailAndName = ['email', 'name'] as const;
const products: Readonly<Record<string, readonly [path: string, record: object, typeof emailAndName | []]>> =
  {
    'segment identify': ['/v1/i', { type: 'identify', userId: 'u1', traits: { email, name } }, emailAndName],
    'segment group': [
      '/v1/g',
      { type: 'group', userId: 'u1', groupId: 'c1', traits: { contact: email } },
      [],
    ],
    'segment track': [
      '/v1/t',
      {
        type: 'track',
        userId: 'u1',
        event: 'Paid',
        messageId: 'm1',
        properties: { email },
        context: { traits: { email, name, address: { street: name } } },
      },
      [],
    ],
    'segment text': [
      '/v1/i',
      { type: 'identify', userId: 'u1', traits: JSON.stringify({ email, name }) },
      emailAndName,
    ],
    'mixpanel event': [
      '/track',
      {
        event: 'Paid',
        properties: {
          distinct_id: 'u1',
          time: 1_767_225_600,
          $insert_id: 'i1',
          email,
          $set: { email, name },
          traits: JSON.stringify({ name }),
          user_properties: { ip },
        },
      },
      [],
    ],
    'posthog identify': [
      '/capture',
      {
        event: '$identify',
        distinct_id: 'u1',
        timestamp: '2026-01-01T00:00:00Z',
        $set: { email },
        properties: { $set_once: { name } },
      },
      emailAndName,
    ],
    'posthog event': [
      '/capture',
      {
        event: 'Paid',
        distinct_id: 'u1',
        timestamp: '2026-01-01T00:00:00Z',
        properties: { email, $set: { email }, $set_once: { name } },
      },
      emailAndName,
    ],
    'mixpanel profile': [
      '/engage',
      { $distinct_id: 'u1', $set: { $email: email }, $set_once: { name } },
      emailAndName,
    ],
    amplitude: [
      '/2/httpapi',
      {
        event_type: 'Paid',
        user_id: 'u1',
        time: 1_767_225_600_000,
        event_properties: { email },
        user_properties: { email, $setOnce: { name } },
      },
      emailAndName,
    ],
  };

const apply = (key: string, file: string) => server.json('/v1/rules', { method: 'PUT', json: { file }, key });

async function addRuled(name: string): Promise<Tenant> {
  const tenant = await t.addEnvironment(`personal-${name}`);
  expect((await apply(tenant.key, rules)).status).toBe(200);
  return tenant;
}

async function sendEmail(name: string, query: string, userId = 'u1') {
  const { key, environment } = await addRuled(name);
  const headers = { 'content-type': 'text/csv' };
  const request = { method: 'POST', body: `user_id,email\n${userId},${email}\n`, headers, key };
  const { body } = await server.json<{ job_id: string }>(`/v1/imports${query}`, request);
  return { key, environmentId: environment.environmentId, jobId: body.job_id };
}

const untilFilesAreRemoved = () =>
  waitFor('the files to be removed', async () => (await t.storedFiles()).length === 0);

/** Returns each table that contains a secret in clear, in JSON or as bytes. */
async function leaks(): Promise<string[]> {
  const { rows: tables } = await sql<{ name: string }>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname in ('sluice', 'public')`.execute(t.system.db);
  const forms = secrets.flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString('hex'),
  ]);
  const hits = tables.map(
    ({ name: table }) => sql`
      select ${sql.lit(table)} || ': ' || form as place
      from ${sql.raw(table)} as each, forms
      where strpos(each::text, form) > 0`,
  );
  const { rows } = await sql<{ place: string }>`
    with forms as (select unnest(${forms}::text[]) as form)
    ${sql.join(hits, sql` union all `)}`.execute(t.system.db);
  return rows.map(({ place }) => place);
}

// proves: personal-at-the-door
describe('personal values', () => {
  test.each(Object.entries(ways))(
    'personal values in %s are stored changed, and in no table in clear',
    async (way, send) => {
      const tenant = await addRuled(way);
      await send(tenant);
      const { environmentId } = tenant.environment;
      const values = await valuesOf(environmentId);
      const storedValues = {
        email: values.hash(email),
        name: values.hash(name),
        ip: values.hash(ip),
      };
      const { users: storedUsers } = await readProfiles(t.system, environmentId);
      expect(Object.entries(storedUsers).map(([id, { metadata }]) => [id, metadata])).toEqual([
        ['u1', { ...storedValues, plan: 'pro' }],
      ]);
      expect(await leaks()).toEqual([]);
      await send(tenant);
      expect((await readProfiles(t.system, environmentId)).users['u1']?.metadata).toEqual({
        ...storedValues,
        plan: 'pro',
      });
    },
  );

  const sdkAndFile = Object.entries(products).flatMap(([recordName, request]) =>
    (['SDKs', 'files'] as const).map((way) => [recordName, way, request] as const),
  );
  test.each(sdkAndFile)(
    'personal properties of a user in a %s record by %s are changed',
    async (recordName, way, request) => {
      const [path, record, properties] = request;
      const [preset = ''] = recordName.split(' ');
      const { key, environment } = await addRuled(`${way.toLowerCase()}-${recordName.replace(' ', '-')}`);
      if (way === 'SDKs') {
        const json = preset === 'amplitude' ? { events: [record] } : record;
        expect((await server.fetch(path, { json, key })).status).toBe(200);
      } else {
        const headers = { 'content-type': 'application/x-ndjson' };
        const file = { method: 'POST', body: JSON.stringify(record), headers, key };
        const { body } = await server.json<{ job_id: string }>(
          `/v1/imports?preset=${preset}&entity=auto`,
          file,
        );
        expect(await endedLoad(t.system, environment.environmentId, body.job_id)).toMatchObject({
          tally: { rejected: 0 },
        });
      }
      const values = await valuesOf(environment.environmentId);
      const storedValues = { email: values.hash(email), name: values.hash(name) };
      const { users: storedUsers, companies } = await readProfiles(t.system, environment.environmentId);
      expect(storedUsers['u1']?.metadata).toEqual(
        Object.fromEntries(properties.map((property) => [property, storedValues[property]])),
      );
      for (const company of Object.values(companies))
        expect(company.metadata).toEqual({ contact: storedValues.email });
      expect(await leaks()).toEqual([]);
    },
  );

  test('personal members are changed in JSON texts and single columns, or omitted', async () => {
    const { key, environment } = await addRuled('texts');
    const address = JSON.stringify({ street: name, city: 'Wien' });
    const cut = cell(address.slice(0, -1));
    const body = `user_id,address,ssn.number\nu1,${cell(address)},${ssn}\nu2,${cut},${ssn}\nu4,{'street': '${email}'},\n`;
    const headers = { 'content-type': 'text/csv' };
    const answer = await server.json<{ job_id: string }>('/v1/imports', {
      method: 'POST',
      body,
      headers,
      key,
    });
    await endedLoad(t.system, environment.environmentId, answer.body.job_id);
    const json = { user_id: 'u3', metadata: { address, 'ssn.number': ssn } };
    expect((await server.fetch('/v1/identify', { json, key })).status).toBe(202);
    const values = await valuesOf(environment.environmentId);
    const metadata = { address: { street: values.hash(name), city: 'Wien' } };
    const { users: storedUsers } = await readProfiles(t.system, environment.environmentId);
    expect(Object.values(storedUsers).map((user) => user.metadata)).toEqual([metadata, {}, metadata, {}]);
    expect(await leaks()).toEqual([]);
  });

  test('personal values of a file without a header are not named as its columns', async () => {
    const { key } = await t.addEnvironment('personal-headless');
    for (const body of [`u1,${email}\nu2,x\n`, `u1,${email}\n`]) {
      const headers = { 'content-type': 'text/csv' };
      const answer = await server.fetch('/v1/imports', { method: 'POST', body, headers, key });
      expect(answer.status).toBe(400);
      expect(await answer.text()).not.toContain(email);
    }
  });

  test('personal values in nested objects, companies and events are changed too', async () => {
    const { key, environment } = await addRuled('nested');
    const user = {
      user_id: 'u1',
      address: [{ street: name, city: 'Wien' }],
      company: { company_id: 'c1', contact: email },
    };
    for (const [path, json] of [
      ['/v1/identify', user],
      ['/v1/users/bulk_identify', { users: [{ ...user, user_id: 'u2' }] }],
      ['/v1/track', { user_id: 'u1', event_name: 'seen', metadata: { email } }],
    ] as const)
      expect((await server.json(path, { json, key })).status).toBeLessThan(300);
    const values = await valuesOf(environment.environmentId);
    const { body } = await server.json<{ data: object[] }>('/v1/users/u1/events', { key });
    expect(body.data).toMatchObject([{ metadata: { email: values.hash(email) } }]);
    await expect
      .poll(async () => Object.keys((await readProfiles(t.system, environment.environmentId)).users))
      .toHaveLength(2);
    const { users: storedUsers, companies } = await readProfiles(t.system, environment.environmentId);
    const street = values.hash(name);
    for (const { metadata } of Object.values(storedUsers))
      expect(metadata).toEqual({ address: [{ street, city: 'Wien' }] });
    expect(companies['c1']?.metadata).toEqual({ contact: values.hash(email) });
    expect(await leaks()).toEqual([]);
  });

  // proves: no-personal-records
  test('personal values of rejects are not stored, but the place and reason of each reject are', async () => {
    const tenant = await addRuled('refused');
    const { key } = tenant;
    for (const [query, broken] of [
      ['', `{"user_id":"u1","email":"${email}" "ip":"${ip}"}`],
      ['&entity=auto', `{"event_type":"${email}","user_id":"u1"}`],
      ['', `{"event_type":"${email}","user_id":"u1"}`],
    ]) {
      const type = 'application/x-ndjson';
      const path = await load(tenant, `/v1/imports?format=ndjson${query}`, `${broken}\n`, type);
      expect(await leaks()).toEqual([]);
      const { body } = await server.json<{ data: object[] }>(path, { key });
      expect(body.data).toEqual([expect.objectContaining({ row: 1, line: 1, raw: '' })]);
      for (const url of [path, `${path}?format=csv`, `${path}?format=ndjson`, `${path}?group_by=cause`])
        expect(await (await server.fetch(url, { key })).text()).not.toContain(email);
    }
    expect(await t.storedFiles()).toEqual([]);
  });

  // proves: no-personal-records
  test('personal values leave the store with the file, and a retry names the reason', async () => {
    const { key, environmentId, jobId } = await sendEmail('file', '?max_errors=0', '');
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({ status: 'failed' });
    await untilFilesAreRemoved();
    const retry = await server.json<{ detail: string }>(`/v1/background_jobs/${jobId}/retry`, {
      method: 'POST',
      key,
    });
    expect([retry.status, JSON.stringify(retry.body)]).toEqual([
      410,
      expect.stringContaining('call something personal'),
    ]);
  });

  // proves: no-personal-records
  test('personal values of a plan stay in its file until it is applied', async () => {
    const { key, environmentId, jobId } = await sendEmail('plan', '?plan=true');
    await endedLoad(t.system, environmentId, jobId);
    expect(await t.storedFiles()).toHaveLength(1);
    await server.json(`/v1/background_jobs/${jobId}/apply`, { method: 'POST', key });
    await untilFilesAreRemoved();
    expect(await leaks()).toEqual([]);
  });

  // proves: no-personal-records
  test('personal values of a held load stay in its file until it is discarded', async () => {
    const { key, environmentId, jobId } = await sendEmail('held', '?guard=rows%3D9..');
    await heldLoad(t, environmentId);
    expect(await t.storedFiles()).toHaveLength(1);
    await server.json(`/v1/background_jobs/${jobId}/cancel`, { method: 'POST', key });
    await untilFilesAreRemoved();
    expect(await leaks()).toEqual([]);
  });

  test('personal values of an upload are removed when it becomes a load', async () => {
    const { key, environment } = await addRuled('upload');
    const upload_id = await keepCsv(t.system, environment.environmentId, `user_id,email\nu1,${email}\n`);
    const { body } = await server.json<{ job_id: string }>('/v1/imports', { json: { upload_id }, key });
    expect(await endedLoad(t.system, environment.environmentId, body.job_id)).toMatchObject({
      status: 'completed',
    });
    await untilFilesAreRemoved();
  });

  test('personal values are changed as the documentation shows', async () => {
    const page = await readFile('docs/personal-data.md', 'utf8');
    const [file = '', user = '', expectedMetadata = ''] = Array.from(
      page.matchAll(/```(?:yaml|json)\n(.*?)```/gs),
      ([, text]) => text,
    );
    const { key } = await t.addEnvironment('personal-documented');
    expect((await apply(key, file)).status).toBe(200);
    expect((await server.json('/v1/identify', { json: JSON.parse(user), key })).status).toBe(202);
    const { body } = await server.json<{ metadata: object }>('/v1/users/u1', { key });
    const shortened = JSON.stringify(body.metadata).replace(/(hash:)[\w:-]+/g, '$1…');
    expect(JSON.parse(shortened)).toEqual(JSON.parse(expectedMetadata));
  });

  test('changed personal values are not changed again when they are sent back', async () => {
    const { key, environment } = await addRuled('back');
    await server.json('/v1/identify', { json: good, key });
    const profilesBefore = await readProfiles(t.system, environment.environmentId);
    const { metadata } = profilesBefore.users['u1'] ?? {};
    expect((await server.json('/v1/identify', { json: { user_id: 'u1', metadata }, key })).status).toBe(202);
    expect((await readProfiles(t.system, environment.environmentId)).users['u1']?.metadata).toEqual(metadata);
  });
});

// proves: personal-key
test('rules that hash are refused without a key, and rules that drop need none', async () => {
  const system = await openTestSystem();
  const serverWithoutKey = await serve(system);
  cleanUpAfter('test', async () => {
    await serverWithoutKey.stop();
    await system.close();
  });
  const put = (file: string) => ({ method: 'PUT', json: { file } });
  expect(await refusalOf(serverWithoutKey, '/v1/rules', put(rules))).toEqual([400, ['invalid_field']]);
  const { status } = await serverWithoutKey.json(
    '/v1/rules',
    put('users: { properties: { ip: { personal: drop } } }'),
  );
  expect(status).toBe(200);
  const document = readRulesFile(Buffer.from(rules)).value ?? {};
  await applyRules(system.system, system.environment.environmentId, document, null);
  expect((await serverWithoutKey.fetch('/v1/identify', { json: good })).status).toBe(503);
  await expect(requireReady(system.system)).rejects.toThrow(/PERSONAL_KEY/);
});
