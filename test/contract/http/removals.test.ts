import { describe, expect, test } from 'vitest';
import type { JobDetail as Job, Plan } from '../../../src/api/load.ts';
import type { Inspection } from '../../../src/api/upload.ts';
import { type ErrorBody, openServer } from '../../support/http.ts';
import { readProfiles } from '../../support/load-file.ts';
import type { Tenant } from '../../support/system.ts';

const { t, server } = await openServer({ worker: true });

let environments = 0;
const tenant = (): Promise<Tenant> => t.addEnvironment(`removals${++environments}`);

const lines = (...records: readonly object[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');
const typeOf = (body: string) => (body.startsWith('{') ? 'application/x-ndjson' : 'text/csv');

async function post<T>({ key }: Tenant, path: string, body: string) {
  const answer = await server.json<T>(path, {
    method: 'POST',
    key,
    body,
    headers: { 'content-type': typeOf(body) },
  });
  return answer;
}

async function load(owner: Tenant, body: string, query = '?removals=true'): Promise<Job> {
  const { status, body: job } = await post<Job>(owner, `/v1/imports${query}`, body);
  expect(status).toBe(200);
  return ended(owner, job.job_id);
}

async function ended({ key }: Tenant, jobId: string): Promise<Job> {
  const show = async () => (await server.json<Job>(`/v1/background_jobs/${jobId}`, { key })).body;
  await expect.poll(async () => (await show()).status).toMatch(/completed|failed/);
  return show();
}

const profiles = ({ environment }: Tenant) => readProfiles(t.system, environment.environmentId);

async function reasons({ key }: Tenant, { job_id }: Job): Promise<string[]> {
  const text = await (
    await server.fetch(`/v1/background_jobs/${job_id}/rejects`, {
      key,
      headers: { accept: 'application/x-ndjson' },
    })
  ).text();
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { row, error_code, message } = JSON.parse(line).sluice_reject;
      return `${row} ${error_code}: ${message}`;
    });
}

const stored = lines(
  { user_id: 'u1', company_id: 'acme', name: 'Ada' },
  { user_id: 'u2', company_id: 'acme', name: 'Grace' },
  { user_id: 'u3', name: 'Joan' },
  { user_id: 'u1', event_type: 'track', event_name: 'open' },
);

describe('a load with removals=true', () => {
  test('removes users and companies, and leaves events and the users of a removed company as they are', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const job = await load(
      owner,
      lines(
        { user_id: 'u1', removed: true },
        { company_id: 'acme', removed: true },
        { user_id: 'nobody', removed: true },
      ),
    );
    expect(job.counts).toMatchObject({ read: 3, removed: 2, unchanged: 1, updated: 0, rejected: 0 });
    expect(await profiles(owner)).toEqual({
      users: {
        u2: { company: 'acme', metadata: { name: 'Grace' } },
        u3: { company: null, metadata: { name: 'Joan' } },
      },
      companies: {},
    });
    const { rows } = await t.system.pool.query(
      `select (select count(*) from sluice.events where environment_id = $1)::int as events,
        (select json_agg(json_build_array(key, removed, before) order by key) from sluice.changes
          where environment_id = $1 and load_id = (select load_id from sluice.loads where job_id = $2)) as changes`,
      [owner.environment.environmentId, job.job_id],
    );
    expect(rows).toEqual([
      {
        events: 1,
        changes: [
          ['acme', true, {}],
          ['u1', true, { name: 'Ada' }],
        ],
      },
    ]);
  });

  test('makes a profile anew of what comes behind its removal in the file, and of nothing else', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const job = await load(
      owner,
      lines(
        { user_id: 'u1', plan: 'lost' },
        { user_id: 'u1', removed: true },
        { user_id: 'u1', plan: 'pro', removed: 'false' },
        { user_id: 'new', removed: true },
        { user_id: 'new', plan: 'free', removed: null },
      ),
    );
    expect(job.counts).toMatchObject({ read: 5, inserted: 1, updated: 1, removed: 0, superseded: 3 });
    expect((await profiles(owner)).users).toMatchObject({
      u1: { company: null, metadata: { plan: 'pro' } },
      new: { company: null, metadata: { plan: 'free' } },
    });
  });

  test('keeps the order of users who name a company and of its removal', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const removal = { company_id: 'acme', removed: true };
    await load(owner, lines(removal, { user_id: 'u3', company_id: 'acme' }));
    expect((await profiles(owner)).companies).toEqual({ acme: { metadata: {} } });
    await load(owner, lines({ user_id: 'u3', company_id: 'acme' }, removal));
    expect((await profiles(owner)).companies).toEqual({});
  });

  test('reads the column removed of a CSV, whatever the map calls it; metadata.removed is a property', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const csv = 'user_id,gone,metadata.removed\nu1,TRUE,\nu2,false,yes\nu3,,no\n';
    const job = await load(owner, csv, '?removals=true&map=gone=removed');
    expect(job.counts).toMatchObject({ read: 3, removed: 1, updated: 2 });
    expect((await profiles(owner)).users).toEqual({
      u2: { company: 'acme', metadata: { name: 'Grace', removed: 'yes' } },
      u3: { company: null, metadata: { name: 'Joan', removed: 'no' } },
    });
  });

  test('refuses a record of which it is not clear whether it removes', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const job = await load(
      owner,
      lines(
        { user_id: 'u1', removed: 'yes' },
        { user_id: 'u1', removed: 1 },
        { user_id: 'u1', removed: true, name: 'Ada' },
        { user_id: 'u1', removed: true, company_id: 'acme' },
        { user_id: 'u1', removed: true, metadata: { removed: true } },
        { user_id: 'u3', removed: true, name: null, metadata: {} },
      ),
    );
    expect(job.counts).toMatchObject({ read: 6, removed: 1, rejected: 5 });
    expect(await reasons(owner, job)).toEqual([
      '1 unsupported_kind: removed must be true or false',
      '2 unsupported_kind: removed must be true or false',
      ...[3, 4, 5].map(
        (row) => `${row} unsupported_kind: a record that removes a profile has nothing beside its id`,
      ),
    ]);
    expect(Object.keys((await profiles(owner)).users)).toEqual(['u1', 'u2']);
  });

  test('shows what would be removed in inspections and plans, and fails where a guard allows less', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const file = lines(
      { user_id: 'u1', removed: true },
      { user_id: 'u2', name: 'G' },
      { user_id: 'nobody', removed: true },
    );
    const csv = 'user_id,removed,metadata.x\nu1,true,\n';
    for (const [query, becomes] of [
      ['', 'metadata.removed'],
      ['?removals=true', 'removed'],
    ]) {
      const { columns } = (await post<Inspection>(owner, `/v1/imports/inspect${query}`, csv)).body;
      expect(columns[1]).toMatchObject({ name: 'removed', becomes });
    }
    const found = await post<Inspection>(owner, '/v1/imports/inspect?removals=true', file);
    expect(found.body.rows[0]).toMatchObject({ user_id: 'u1', removed: 'true' });

    const { job_id } = await load(owner, file, '?removals=true&plan=true');
    const path = `/v1/background_jobs/${job_id}/plan`;
    expect((await server.json<Plan>(path, { key: owner.key })).body).toMatchObject({
      counts: { read: 3, updated: 1, removed: 1, unchanged: 1 },
      profiles: { users: { new: 0, changed: 1, removed: 1 }, companies: { new: 0, changed: 0, removed: 0 } },
      values: { appear: 0, change: 1, go: 1 },
      sample: [
        { id: 'u1', before: { name: 'Ada' }, after: null, company_before: 'acme', company_after: null },
        { id: 'u2', before: { name: 'Grace' }, after: { name: 'G' } },
      ],
    });
    expect(await (await server.fetch(`${path}?format=csv`, { key: owner.key })).text()).toBe(
      [
        'entity,id,outcome,property,before,after',
        'users,u1,removed,company_id,acme,',
        'users,u1,removed,name,Ada,',
        'users,u2,changed,name,Grace,G',
        '',
      ].join('\n'),
    );
    const before = await profiles(owner);
    const guarded = await load(owner, file, '?removals=true&max_changed=1');
    expect(guarded.failure).toMatchObject({
      error_code: 'guard_exceeded',
      message: expect.stringContaining('2 profiles'),
    });
    expect(await profiles(owner)).toEqual(before);
  });

  test('may be an array of a bulk request', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const users = [
      { user_id: 'u1', removed: true },
      { user_id: 'u2', removed: false },
    ];
    const { status, body } = await server.json<Job>('/v1/users/bulk_identify?removals=true', {
      method: 'POST',
      key: owner.key,
      body: JSON.stringify({ users }),
      headers: { 'content-type': 'application/json' },
    });
    expect(status).toBe(202);
    expect((await ended(owner, body.job_id)).counts).toMatchObject({ read: 2, removed: 1, unchanged: 1 });
  });

  test('is not combined with a preset', async () => {
    const { status, body } = await post<ErrorBody>(
      await tenant(),
      '/v1/imports?removals=true&preset=segment',
      '{"type":"identify","userId":"u1"}\n',
    );
    expect([status, body.errors[0]?.message]).toEqual([400, 'give removals or preset, not both']);
  });

  test('mends a refused removal only if the mended record wins, since it would yield otherwise', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const job = await load(owner, 'user_id,removed\nu1,oui\nu2,false\n');
    expect(job.counts).toMatchObject({ unchanged: 1, rejected: 1 });
    const mended = `sluice_row,user_id,removed\n1,u1,true\n`;
    const amend = async (query: string): Promise<Job> => {
      const path = `/v1/background_jobs/${job.job_id}/amend${query}`;
      const { body } = await post<Job>(owner, path, mended);
      return ended(owner, body.job_id);
    };
    const refused = await amend('');
    expect(refused.counts).toMatchObject({ removed: 0, rejected: 1 });
    expect(await reasons(owner, job)).toEqual([expect.stringContaining('only with wins=true')]);
    expect((await amend('?wins=true')).counts).toMatchObject({ removed: 1 });
    expect(Object.keys((await profiles(owner)).users)).toEqual(['u2', 'u3']);
  });
});

describe('a load without removals=true', () => {
  // proves: removals-asked
  test('removes nothing: removed is a property, and a record that has nothing else is refused', async () => {
    const owner = await tenant();
    await load(owner, stored, '');
    const file = lines(
      { user_id: 'u1', removed: true },
      { company_id: 'acme', removed: true },
      { user_id: 'u2', removed: true, name: 'Grace' },
      { user_id: 'u3', removed: 'true' },
      { user_id: 'u3', event_type: 'track', event_name: 'open', removed: true },
    );
    const job = await load(owner, file, '');
    expect(job.counts).toMatchObject({ read: 5, removed: 0, rejected: 2 });
    expect(await reasons(owner, job)).toEqual(
      [1, 2].map((row) => expect.stringMatching(`^${row} unsupported_kind: .* load it with removals=true`)),
    );
    const csv = await load(owner, 'user_id,removed,name\nu1,true,Ada\nu2,TRUE,\n', '');
    expect(csv.counts).toMatchObject({ updated: 1, removed: 0, rejected: 1 });
    expect(await profiles(owner)).toEqual({
      users: {
        u1: { company: 'acme', metadata: { name: 'Ada', removed: 'true' } },
        u2: { company: 'acme', metadata: { name: 'Grace', removed: true } },
        u3: { company: null, metadata: { name: 'Joan', removed: 'true' } },
      },
      companies: { acme: { metadata: {} } },
    });
    const { rows } = await t.system.pool.query(
      'select count(*)::int as found from sluice.events where environment_id = $1 and metadata = \'{"removed": true}\'',
      [owner.environment.environmentId],
    );
    expect(rows).toEqual([{ found: 1 }]);
  });
});
