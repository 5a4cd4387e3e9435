import fc from 'fast-check';
import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { UserProfile as Profile, userPage } from '../../../src/profiles/api.ts';
import { runs } from '../../support/runs.ts';
import { apply, segmentItem } from '../../support/servers/definitions.ts';
import { openServer, refusalOf, walkPages } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';

type Page = Static<typeof userPage.schema>;

const { t, server } = await openServer();
const other = await t.addEnvironment('other');

let environments = 0;
const newTenant = () => t.addEnvironment(`reading-${++environments}`);

async function send(path: string, body: object, { key }: { readonly key: string } = t): Promise<void> {
  const options = { key, json: body };
  expect((await server.fetch(path, options)).status).toBe(202);
}
const identify = (user_id: string, more: object = {}, tenant?: Tenant) =>
  send('/v1/identify', { user_id, ...more }, tenant);

/** Stores rows in one statement, as a load would. */
async function store(
  { environment }: Tenant,
  table: 'users' | 'companies',
  rows: readonly { readonly id: string; readonly company?: string; readonly metadata?: string }[],
): Promise<void> {
  const list = JSON.stringify(rows.map(({ id, company, metadata = '{}' }) => ({ id, company, metadata })));
  const [names, values] = table === 'users' ? ['user_id, company_id', 'id, company'] : ['company_id', 'id'];
  await t.system.pool.query(
    `insert into ${table} (environment_id, ${names}, metadata)
    select $1, ${values}, metadata::jsonb from json_to_recordset($2::json) as r (id text, company text, metadata text)`,
    [environment.environmentId, list],
  );
}

const list = async (path: string, tenant: Tenant = t): Promise<Page> => {
  const { status, body } = await server.json<Page>(path, { key: tenant.key });
  expect(status).toBe(200);
  return body;
};
const idOf = ({ user_id, company_id }: Profile): string => user_id ?? company_id ?? '';

/** Returns the ids on all pages, in order. Calls `between` after each page. */
async function walk(path: string, tenant: Tenant = t, between?: () => Promise<void>): Promise<string[]> {
  const profiles = await walkPages((cursor) => list(`${path}&cursor=${cursor}`, tenant), between);
  return profiles.map(idOf);
}

const refusal = (path: string, options: object = {}) => refusalOf(server, path, options);

describe('one profile', () => {
  // proves: every-digit
  test('a user is answered as stored, with every digit and its company', async () => {
    await identify('one', {
      metadata: { name: 'Ada', plan: 'pro' },
      company: { company_id: 'acme', size: 120 },
    });
    const big = '{"big": 12345678901234567890.123456789, "list": [1, {"a": null}]}';
    await t.system.pool.query(`update users set metadata = metadata || $1::jsonb where user_id = 'one'`, [
      big,
    ]);
    const response = await server.fetch('/v1/users/one');
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    const text = await response.text();
    expect(text).toContain('12345678901234567890.123456789');
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(JSON.parse(text)).toEqual({
      user_id: 'one',
      company_id: 'acme',
      company_name: null,
      metadata: { name: 'Ada', plan: 'pro', big: expect.any(Number), list: [1, { a: null }] },
      first_seen_at: at,
      last_seen_at: at,
      updated_at: at,
    });
    const { body } = await server.json<Profile>('/v1/companies/acme');
    expect(body).toEqual({
      company_id: 'acme',
      metadata: { size: 120 },
      first_seen_at: at,
      last_seen_at: at,
      updated_at: at,
    });
  });

  // proves: read-your-writes
  test('a value that was answered 202 is readable from then on', async () => {
    for (let n = 0; n < 20; n++) {
      await identify('fresh', { metadata: { n: String(n) } });
      expect((await server.json<Profile>('/v1/users/fresh')).body.metadata).toEqual({ n: String(n) });
    }
  });

  test.each(['users', 'companies'])(
    'a profile of %s is 404 if it is unknown or of another environment',
    async (entity) => {
      await store(t, entity as 'users' | 'companies', [{ id: 'mine' }]);
      expect((await server.fetch(`/v1/${entity}/mine`)).status).toBe(200);
      expect(await refusal(`/v1/${entity}/mine`, { key: other.key })).toEqual([404, ['not_found']]);
      expect(await refusal(`/v1/${entity}/nobody`)).toEqual([404, ['not_found']]);
    },
  );

  // proves: read-your-writes
  test('a profile with any accepted id is readable at its URL-encoded address', async () => {
    const ids = [
      'a/b',
      '/',
      'a//b/',
      '100%',
      '%2F',
      'ä ö',
      '🦆',
      '?x=1#y',
      'a+b c',
      '...',
      'bulk_identify',
      "'; --",
      '\u0001',
    ];
    ids.push('x'.repeat(256), '🦆'.repeat(64), '"\\');
    await store(
      other,
      'users',
      ids.map((id) => ({ id })),
    );
    await store(
      other,
      'companies',
      ids.map((id) => ({ id })),
    );
    for (const id of ids) {
      const path = encodeURIComponent(id);
      for (const entity of ['users', 'companies']) {
        const { status, body } = await server.json<Profile>(`/v1/${entity}/${path}`, { key: other.key });
        expect([id, status, idOf(body)]).toEqual([id, 200, id]);
      }
      expect([id, (await server.fetch(`/v1/users/${path}/events`, { key: other.key })).status]).toEqual([
        id,
        200,
      ]);
    }
    const random = fc.sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }), {
      seed: 7,
      numRuns: runs(200),
    });
    const validIds = [...new Set(random)].filter(
      (id) => id.isWellFormed() && !id.includes('\0') && !/^\.{1,2}$/.test(id),
    );
    const tenant = await newTenant();
    await store(
      tenant,
      'users',
      validIds.map((id) => ({ id })),
    );
    for (const id of validIds) {
      const { body } = await server.json<Profile>(`/v1/users/${encodeURIComponent(id)}`, { key: tenant.key });
      expect(body.user_id).toBe(id);
    }
  });

  test.each([
    ['a%00b', 404, 'not_found'],
    ['%FF', 400, 'invalid_field'],
    ['x'.repeat(5_000), 404, 'route_not_found'],
  ])('the id %s is refused: %i %s', async (id, status, code) => {
    expect(await refusal(`/v1/users/${id}`)).toEqual([status, [code]]);
    expect(await refusal(`/v1/companies/${id}`)).toEqual([status, [code]]);
    expect(await refusal(`/v1/users/${id}/events`)).toEqual([status, [code]]);
  });

  test('a profile of many megabytes is answered whole', async () => {
    const value = 'x'.repeat(60_000);
    const metadata = JSON.stringify(
      Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`p${n}`, value])),
    );
    const tenant = await newTenant();
    await store(tenant, 'users', [{ id: 'huge', metadata }, { id: 'more', metadata }, { id: 'small' }]);
    const { body } = await server.json<Profile>('/v1/users/huge', { key: tenant.key });
    expect(Object.keys(body.metadata)).toHaveLength(20);
    // The profile that exceeds the maximum page size has its own page.
    const { data, metadata: page } = await list('/v1/users', tenant);
    expect([data.map(idOf), page.cursor.after === null]).toEqual([['huge'], false]);
    expect(await walk('/v1/users?limit=10', tenant)).toEqual(['huge', 'more', 'small']);
  });
});

describe('lists of profiles', () => {
  test.each(['users', 'companies'] as const)(
    'the list of %s has each profile of the environment once, by id, with any limit',
    async (table) => {
      const tenant = await newTenant();
      const ids = Array.from({ length: 19 }, (_, n) => `id ${String((n * 11) % 19).padStart(3, '0')} ü/%`);
      await store(
        tenant,
        table,
        ids.map((id) => ({ id })),
      );
      await store(other, table, [{ id: 'id 001 of another' }]);
      const sorted = [...ids].sort();
      for (const limit of [1, 7, 18, 19, 20])
        expect(await walk(`/v1/${table}?limit=${limit}`, tenant)).toEqual(sorted);
    },
  );

  test('the cursor of a list of profiles is in the envelope and in Link', async () => {
    const tenant = await newTenant();
    await store(tenant, 'users', [{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    const first = await server.json<Page>('/v1/users?limit=2&property=', { key: tenant.key });
    const { after } = first.body.metadata.cursor;
    expect(first.body.metadata).toEqual({ cursor: { after: expect.any(String), before: null }, limit: 2 });
    const link = /^<([^>]+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    expect(new URL(link).searchParams.get('cursor')).toBe(after);
    const second = await server.json<Page>(new URL(link).pathname + new URL(link).search, {
      key: tenant.key,
    });
    expect(second.body.data.map(idOf)).toEqual(['c']);
    expect([second.body.metadata.cursor.after, second.headers.get('link')]).toEqual([null, null]);
    expect((await list('/v1/users', await newTenant())).data).toEqual([]);
  });

  // proves: paging
  test('a walk through the pages has each profile that stays exactly once, while others are added and removed', async () => {
    const tenant = await newTenant();
    const name = (n: number) => `u${String(n).padStart(4, '0')}`;
    const staying = Array.from({ length: 60 }, (_, n) => name(n * 10));
    const passing = Array.from({ length: 60 }, (_, n) => name(n * 10 + 5));
    await store(
      tenant,
      'users',
      [...staying, ...passing].map((id) => ({ id, metadata: '{"plan":"pro"}' })),
    );
    for (const path of ['/v1/users?limit=7', '/v1/users?limit=7&property=plan:pro']) {
      let round = 0;
      const met = await walk(path, tenant, async () => {
        round++;
        const userIds = passing.splice(0, 2);
        await t.system.pool.query('delete from users where environment_id = $1 and user_id = any($2)', [
          tenant.environment.environmentId,
          userIds,
        ]);
        await store(tenant, 'users', [
          { id: `${name(round * 37)}-${path.length}-${round}`, metadata: '{"plan":"pro"}' },
        ]);
      });
      expect(round).toBeGreaterThan(5);
      expect(new Set(met).size).toBe(met.length);
      expect(met.filter((id) => staying.includes(id))).toEqual(staying);
    }
  });

  test('a filter by property compares text, number and boolean as written, and in quotes only text', async () => {
    const tenant = await newTenant();
    const values: Readonly<Record<string, string>> = {
      text: '"120"',
      number: '120',
      decimal: '120.0',
      more: '1200',
      list: '[120]',
      object: '{"v": 120}',
      yes: 'true',
      word: '"true"',
      long: '12345678901234567890',
      longer: '12345678901234567891',
      empty: '""',
      colon: '"a:b"',
      exponent: '"1e999999"',
    };
    await store(
      tenant,
      'users',
      Object.entries(values).map(([id, value]) => ({ id, metadata: `{"v": ${value}, "w": 1}` })),
    );
    const idsWith = async (...filters: string[]) => {
      const query = filters.map((each) => `property=${encodeURIComponent(each)}`).join('&');
      return (await list(`/v1/users?${query}`, tenant)).data.map(idOf);
    };
    expect(await idsWith('v:120')).toEqual(['decimal', 'number', 'text']);
    expect(await idsWith('v:"120"')).toEqual(['text']);
    expect(await idsWith('v:true')).toEqual(['word', 'yes']);
    expect(await idsWith('v:"true"')).toEqual(['word']);
    expect(await idsWith('v:12345678901234567890')).toEqual(['long']);
    expect(await idsWith('v:')).toEqual(['empty']);
    expect(await idsWith('v:a:b')).toEqual(['colon']);
    expect(await idsWith('v:1e999999')).toEqual(['exponent']);
    expect(await idsWith('v:null')).toEqual([]);
    expect(await idsWith('W:1')).toEqual([]);
    expect(await idsWith('v:120', 'w:1')).toEqual(['decimal', 'number', 'text']);
    expect(await idsWith('v:120', 'w:2')).toEqual([]);
    await store(tenant, 'companies', [{ id: 'c1', metadata: '{"a:b": "x", "\\"q": true}' }, { id: 'c2' }]);
    const companies = async (filter: string) =>
      (await list(`/v1/companies?property=${encodeURIComponent(filter)}`, tenant)).data.map(idOf);
    expect(await companies('"a:b":x')).toEqual(['c1']);
    expect(await companies('"\\"q":true')).toEqual(['c1']);
    expect(await companies('a:b:x')).toEqual([]);
  });

  test('a user has the name of its company in the same environment, or null if the company has none', async () => {
    const tenant = await newTenant();
    const names = { acme: '"Acme Tools"', digits: '42', empty: '""', none: 'null', other: '"Ours"' };
    for (const [id, name] of Object.entries(names))
      await store(id === 'other' ? other : tenant, 'companies', [{ id, metadata: `{"name": ${name}}` }]);
    const users = [...Object.keys(names), 'unknown'].map((company) => ({ id: `u-${company}`, company }));
    await store(tenant, 'users', [...users, { id: 'u-without' }]);
    const { data } = await list('/v1/users?id_prefix=u-', tenant);
    expect(data.map(({ user_id, company_name }) => [user_id, company_name])).toEqual([
      ['u-acme', 'Acme Tools'],
      ['u-digits', '42'],
      ['u-empty', null],
      ['u-none', null],
      ['u-other', null],
      ['u-unknown', null],
      ['u-without', null],
    ]);
    const one = await server.json<Profile>('/v1/users/u-acme', { key: tenant.key });
    expect(one.body.company_name).toBe('Acme Tools');
  });

  test('users filtered by company, segment and property fit all of them', async () => {
    const tenant = await newTenant();
    await apply(t, tenant, { segments: [segmentItem('pro'), segmentItem('free')] });
    const { rows } = await t.system.pool.query<{ segment_id: number }>(
      `select segment_id from segments where environment_id = $1 and key = 'pro'`,
      [tenant.environment.environmentId],
    );
    const segment = rows[0]?.segment_id;
    const users = Array.from({ length: 90 }, (_, n) => ({
      id: `u${String(n).padStart(2, '0')}`,
      ...(n % 3 > 0 && { company: n % 3 === 1 ? 'acme' : 'globex' }),
      metadata: JSON.stringify({ plan: n % 2 === 0 ? 'pro' : 'free', size: n % 5 }),
    }));
    await store(tenant, 'users', users);
    const matching = (test: (n: number) => boolean) => users.filter((_, n) => test(n)).map(({ id }) => id);
    const walked = (query: string) => walk(`/v1/users?limit=4&${query}`, tenant);
    expect(await walked('company_id=acme')).toEqual(matching((n) => n % 3 === 1));
    expect(await walked('company_id=nobody')).toEqual([]);
    expect(await walked(`segment_id=${segment}`)).toEqual(matching((n) => n % 2 === 0));
    expect(await walked('property=size:2')).toEqual(matching((n) => n % 5 === 2));
    expect(await walked(`company_id=acme&segment_id=${segment}&property=size:2`)).toEqual(
      matching((n) => n % 3 === 1 && n % 2 === 0 && n % 5 === 2),
    );
    expect(await refusal(`/v1/users?segment_id=${segment}`, { key: other.key })).toEqual([
      400,
      ['unknown_segment'],
    ]);
  });

  test.each([
    ['limit=0', 'invalid_field'],
    ['limit=501', 'invalid_field'],
    ['cursor=nonsense', 'invalid_cursor'],
    ['cursor=aWQ6', 'invalid_cursor'],
    ['property=plan', 'invalid_field'],
    ['property=:pro', 'invalid_field'],
    ['property=a%00:x', 'invalid_field'],
    ['property=a:x%00', 'invalid_field'],
    [`property=${'n'.repeat(256)}:x`, 'invalid_field'],
    [`property=a:${'v'.repeat(5_000)}`, 'invalid_field'],
    [Array.from({ length: 11 }, (_, n) => `property=p${n}:1`).join('&'), 'invalid_field'],
    [`company_id=${'x'.repeat(257)}`, 'invalid_field'],
    ['company_id=a&company_id=b', 'invalid_field'],
    ['segment_id=x', 'invalid_field'],
    ['segment_id=999999', 'unknown_segment'],
  ])('a list of users with %s is 400 %s', async (query, code) => {
    expect(await refusal(`/v1/users?${query}`)).toEqual([400, [code]]);
  });
});
