import { afterAll, describe, expect, test } from 'vitest';
import { openRecordSite, type ProblemText } from '../../support/servers/records.ts';

const path = '/v1/identify';
const site = await openRecordSite();
afterAll(() => site.close());

const identify = (record: unknown) => site.accept(path, record);
const refuse = (record: unknown, ...problems: readonly ProblemText[]) =>
  site.refuse(path, record, ...problems);
const stored = async (userId: string) => {
  const user = await site.user(userId);
  if (user === null) throw new Error(`there is no user ${userId}`);
  return user;
};
const storedCompany = async (companyId: string) => {
  const company = await site.company(companyId);
  if (company === null) throw new Error(`there is no company ${companyId}`);
  return company;
};

// proves: user-and-company
test('two servers that identify one user and its company at once store user and company of the same request', async () => {
  const { environmentId } = site.t.environment;
  const servers = [site.t.system, site.t.openAnother()] as const;
  const seen: string[] = [];
  for (let round = 0; round < 200; round++) {
    await Promise.all(
      // The two servers take turns at sending first.
      [round % 2, 1 - (round % 2)].map((server) => {
        const { ingest } = servers[server] ?? site.t.system;
        const values = { by: String(server), bytes: 'x'.repeat(100) };
        const record = {
          environmentId,
          userId: 'raced',
          companyId: 'raced',
          properties: values,
          company: values,
        };
        // Every third request to the second server has an idempotency key, and thus its own
        // transaction.
        const key = { key: `race-${round}`, digest: Buffer.from('race') };
        return ingest.identifyUser(
          { ...record, marked: false, bytes: 200 },
          server === 1 && round % 3 === 0 ? key : null,
        );
      }),
    );
    const user = await stored('raced');
    const company = await storedCompany('raced');
    seen.push(`user by ${user.metadata['by']}, company by ${company.metadata['by']}`);
  }
  await servers[1].close();
  expect([...new Set(seen)].sort()).toEqual(['user by 0, company by 0', 'user by 1, company by 1']);
});

describe('metadata', () => {
  // proves: types-kept
  test('metadata keeps the type of any JSON value, and every digit of its numbers', async () => {
    const metadata = {
      text: 'x',
      age: 7,
      rate: -0.5,
      admin: true,
      tags: ['a', 1, null, [true]],
      address: { city: 'Bonn', geo: { lat: 50.7, none: null } },
      nothing: {},
      none: [],
    };
    await identify({ user_id: 'any', beside: [7], metadata });
    expect((await stored('any')).metadata).toEqual({ beside: [7], ...metadata });
    await identify(
      '{"user_id":"any-digits","metadata":{"big":9007199254740993,"in":[1e400]},"pi":3.1415926535897932}',
    );
    expect((await stored('any-digits')).exact).toBe(
      `{"in": [1${'0'.repeat(400)}], "pi": 3.1415926535897932, "big": 9007199254740993}`,
    );
  });
});

describe('company', () => {
  // proves: one-company-id
  test('the company of an identify may be named several times by one id, and contradicting ids are refused by name', async () => {
    await identify({ user_id: 'thrice', company_id: 71, company: { company_id: '71', id: 71, size: 1 } });
    expect([(await stored('thrice')).company_id, (await storedCompany('71')).metadata]).toEqual([
      '71',
      { size: 1 },
    ]);
    const refused = async (record: object, details: string) => {
      await refuse({ user_id: 'thrice', ...record }, ['invalid_field', details]);
      expect((await stored('thrice')).company_id).toBe('71');
    };
    await refused({ company: { company_id: 'a', id: 'b' } }, 'company.company_id and company.id');
    await refused({ company_id: 'b', company: { company_id: 'a' } }, 'company.company_id and company_id');
    await refused({ company_id: 1, company: { id: 2, size: 1 } }, 'company.id and company_id');
    expect(await site.company('a')).toBeNull();
  });

  test('an empty company of an identify counts as absent, also as the array that PHP writes', async () => {
    for (const [i, company] of [{}, []].entries()) {
      const user_id = `empty-company${i}`;
      await identify({ user_id, company });
      expect((await stored(user_id)).company_id).toBeNull();
      await identify({ user_id, company_id: 'not-left' });
      await identify({ user_id, company });
      expect((await stored(user_id)).company_id).toBe('not-left');
      await identify({ user_id, company_id: 'moved-to', company });
      expect((await stored(user_id)).company_id).toBe('moved-to');
      await identify({ user_id, company_id: null, company });
      expect((await stored(user_id)).company_id).toBeNull();
    }
  });

  test('an identify whose company is not an object, or has no valid id, is refused', async () => {
    const wrong = 'expected a string or a whole number, got';
    for (const [company, code, details] of [
      [{ metadata: {} }, 'missing_field', 'company.company_id'],
      [{ company_id: null, id: null }, 'missing_field', 'company.company_id'],
      ['acme', 'invalid_field', 'company: expected an object, got string'],
      [['acme'], 'invalid_field', 'company: expected an object, got array'],
      [{ company_id: true }, 'invalid_field', `company.company_id: ${wrong} boolean`],
      [{ id: {} }, 'invalid_field', `company.id: ${wrong} object`],
      [{ company_id: '' }, 'invalid_field', 'company.company_id'],
      [{ company_id: 'c'.repeat(257) }, 'invalid_field', 'company.company_id'],
      [{ company_id: 'a\0' }, 'invalid_field', 'company.company_id'],
    ] as const)
      await refuse({ user_id: 'u', company }, [code, details]);
    await refuse({ user_id: 'u', company_id: [7] }, ['invalid_field', `company_id: ${wrong} array`]);
    await refuse({ user_id: 'u', company_id: '' }, ['invalid_field', 'company_id']);
  });

  test('an identify without new values leaves the row of its company alone', async () => {
    await identify({ user_id: 'q1', company: { company_id: 'quiet', a: 1 } });
    const version = () => site.sql(`select xmin, ctid from sluice.companies where company_id = 'quiet'`);
    const before = await version();
    await identify({ user_id: 'q2', company: { company_id: 'quiet', a: 1, absent: null } });
    await identify({ user_id: 'q3', company_id: 'quiet' });
    expect(await version()).toEqual(before);
    expect(await stored('q3')).toMatchObject({ company_id: 'quiet' });
  });
});

describe('ids', () => {
  test('ids are compared byte by byte, so ids that look or fold alike differ', async () => {
    const ids = [
      'caf\u00e9',
      'cafe\u0301',
      'CAFE\u0301',
      ' café',
      'café ',
      'caf\u00e9\n',
      '\u202ecaf\u00e9',
      'קפה',
      'مقهى',
      '☕',
      '☕\ufe0f',
      '👩‍👩‍👧‍👦',
      '\u0130',
      'ß',
      'ss',
      '0',
      '00',
      ' x',
      '__proto__',
      'constructor',
      'null',
    ];
    for (const [i, user_id] of ids.entries()) await identify({ user_id, metadata: { i: `${i}` } });
    for (const [i, id] of ids.entries()) expect((await site.user(id))?.metadata).toEqual({ i: `${i}` });
  });
});

describe('a stored user', () => {
  test('a stored user is seen by every identify, and updated only by new values', async () => {
    const record = { user_id: 'times', metadata: { a: '1' }, company_id: 'times' };
    await identify(record);
    const first = await stored('times');
    expect([first.last_seen_at, first.updated_at]).toEqual([first.first_seen_at, first.first_seen_at]);
    const quiet = [
      record,
      { user_id: 'times' },
      { user_id: 'times', metadata: { absent: null } },
      {
        user_id: 'times',
        metadata: { a: '1', absent: null },
        company: { company_id: 'times', absent: null },
      },
    ];
    let last = first;
    for (const each of quiet) {
      await identify(each);
      const now = await stored('times');
      expect(now).toEqual({ ...first, last_seen_at: now.last_seen_at });
      expect(now.last_seen_at > last.last_seen_at).toBe(true);
      last = now;
    }
    const loud = [
      { metadata: { a: '2' } },
      { metadata: { b: '1' } },
      { metadata: { b: null } },
      { company_id: 'other' },
      { company_id: null },
    ];
    for (const each of loud) {
      await identify({ user_id: 'times', ...each });
      const now = await stored('times');
      expect([each, now.updated_at > last.updated_at]).toEqual([each, true]);
      expect([now.last_seen_at, now.first_seen_at]).toEqual([now.updated_at, first.first_seen_at]);
      last = now;
    }
    await identify({ user_id: 'times', company: null });
    expect((await stored('times')).updated_at).toBe(last.updated_at);
  });

  test('an identify keeps the load marks of a user and a company', async () => {
    const loaded = { metadata: { a: 1 }, load_id: 41, load_chunk: 42, load_touches: 43 };
    for (const into of ['users (user_id', 'companies (company_id'])
      await site.sql(
        `insert into sluice.${into}, environment_id, metadata, load_id, load_chunk, load_touches)
         values ('loaded', $1, $2, $3, $4, $5)`,
        [site.t.environment.environmentId, ...Object.values(loaded)],
      );
    await identify({ user_id: 'loaded', b: 2, company: { company_id: 'loaded', b: 2 } });
    await identify({ user_id: 'loaded', c: null, company: { company_id: 'loaded', c: null } });
    await site.accept('/v1/companies/identify', { company_id: 'loaded', b: 3 });
    const select = 'select metadata, load_id, load_chunk, load_touches from sluice';
    expect(
      await site.sql(
        `${select}.users where user_id = 'loaded' union all ${select}.companies where company_id = 'loaded'`,
      ),
    ).toEqual([2, 3].map((b) => ({ ...loaded, metadata: { a: 1, b } })));
  });
});

describe('identifies of one user', () => {
  test('identifies of one user keep their order while the first waits for a lock', async () => {
    const locked = Array.from({ length: 8 }, (_, i) => `held-${i}`);
    for (const user_id of [...locked, 'overtaken']) await identify({ user_id });
    const lock = await site.hold(`update sluice.users set load_chunk = 1 where user_id like 'held-%'`);
    const first = site.pipeline(
      [...locked, 'overtaken'].map((user_id) => [path, { user_id, metadata: { x: 'first' } }] as const),
    );
    await site.blocked();
    let overtaken = false;
    const second = identify({ user_id: 'overtaken', metadata: { x: 'second' } }).then(() => {
      overtaken = true;
    });
    // These companies do not depend on the locked users, so they are stored while the lock is held.
    for (let i = 0; i < 10; i++) await site.accept('/v1/companies/identify', { company_id: `meanwhile${i}` });
    expect(overtaken).toBe(false);
    await lock.release();
    expect(await first).toEqual([...locked, 'overtaken'].map(() => 202));
    await second;
    expect((await stored('overtaken')).metadata).toEqual({ x: 'second' });
  });
});
