import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RULES_KNOWN_MS } from '../../src/domain/limits.ts';
import type { RulesDocument } from '../../src/domain/rules.ts';
import { parseJsonText } from '../../src/formats/json-text.ts';
import type { BatchItem, UserRecord } from '../../src/ingest/records.ts';
import { addAlias } from '../../src/load/undo/add-alias.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { storeRules } from '../../src/postgres/stores/rules.ts';
import { applyRules } from '../../src/rules/apply-rules.ts';
import { amendManually } from '../support/amend-file.ts';
import { acceptDeletion } from '../support/deletions.ts';
import {
  newEnvironment,
  readProfiles,
  readRejects,
  runAtOnce,
  runManually,
  shuffled,
  startManually,
  withoutQueue,
} from '../support/load-file.ts';
import { runs } from '../support/runs.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';
import { loadFile, runJob, undo } from '../support/undo.ts';

let t: TestSystem;
beforeAll(async () => {
  t = await openTestSystem();
});
afterAll(() => t.close());

type Otherwise = 'strip' | 'refuse';
const unique = (otherwise: Otherwise): RulesDocument => ({
  users: { properties: { email: { unique: true, otherwise } } },
  companies: { properties: { domain: { unique: true, otherwise } } },
});

/** An environment without profiles, where emails of users and domains of companies are to be unique. */
async function ruled(otherwise: Otherwise): Promise<number> {
  const environmentId = await newEnvironment(t.system);
  await storeRules(t.system.db, environmentId, unique(otherwise), null);
  return environmentId;
}

const user = (
  environmentId: number,
  userId: string,
  properties: object,
  more: Partial<UserRecord> = {},
): UserRecord => ({
  environmentId,
  userId,
  companyId: null,
  properties: properties as Record<string, unknown>,
  company: {},
  marked: false,
  bytes: 10,
  ...more,
});

const send = (record: UserRecord): Promise<boolean> =>
  t.system.ingest.identifyUser(record, null).then(
    () => true,
    (error) => {
      expect(error.problems?.[0]).toMatchObject({ code: 'breaks_rule', details: expect.any(String) });
      return false;
    },
  );

async function emails(environmentId: number): Promise<Record<string, unknown>> {
  const { users } = await readProfiles(t.system, environmentId);
  const held = Object.entries(users).map(([id, { metadata }]) => [
    id,
    (metadata as { email?: unknown }).email,
  ]);
  return Object.fromEntries(held.filter(([, email]) => email !== undefined));
}

function expectDistinct(held: Readonly<Record<string, unknown>>): void {
  const values = Object.values(held).map((value) => JSON.stringify(value));
  expect(values.toSorted()).toEqual([...new Set(values)].toSorted());
}

const csvOf = (users: readonly (readonly [id: string, email: string])[]): string =>
  `user_id,email\n${users.map((each) => `${each.join()}\n`).join('')}`;

const given = fc.record({ id: fc.constantFrom(...'abcdefgh'), email: fc.constantFrom('v', 'w', 'x', 'y') });
const step = fc.record({
  does: fc.constantFrom('load', 'load', 'batch', 'single', 'single', 'alias', 'delete', 'remove'),
  items: fc.array(given, { minLength: 1, maxLength: 6 }),
  dated: fc.boolean(),
  ranks: fc.array(fc.nat(), { minLength: 6, maxLength: 6 }),
});
const when = { text: '2026-01-01T00:00:00.000000Z', ms: Date.parse('2026-01-01T00:00:00Z') };

// proves: rules-unique
test.each(['refuse', 'strip'] as const)(
  'no two users ever have one value that rules %s, whatever is loaded, sent, linked, deleted and removed at once',
  async (otherwise) => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (steps) => {
      const quiet = withoutQueue(t.system);
      const environmentId = await ruled(otherwise);
      const loads: Promise<unknown>[] = [];
      const run = async ({ does, items, dated, ranks }: (typeof steps)[number]): Promise<void> => {
        const [{ id, email }] = items as [(typeof items)[number]];
        const more = dated ? { at: when } : {};
        const records = items.map((each) => user(environmentId, each.id, { email: each.email }, more));
        if (does === 'load') {
          const lines = items.map((each) =>
            JSON.stringify({
              event_type: 'identify_user',
              user_id: each.id,
              email: each.email,
              inserted_at: dated ? when.text : null,
            }),
          );
          const load = await startManually(quiet, environmentId, `${lines.join('\n')}\n`, {
            chunkBytes: 150,
            entity: 'auto',
          });
          const { tally } = await runAtOnce(load, shuffled(load, ranks), 2);
          if (otherwise === 'strip') expect(tally.rejected).toBe(0);
        } else if (does === 'batch') {
          const batch = records.map((record, index): BatchItem => ({ index, entity: 'users', record }));
          await t.system.ingest.batch(environmentId, async () => ({ items: batch, rejected: [] }), 10, null);
        } else if (does === 'single') {
          const stored = await Promise.all(records.map(send));
          if (otherwise === 'strip') expect(stored).not.toContain(false);
        } else if (does === 'alias') {
          const asked = {
            jobId: uuidv7(),
            requestId: null,
            origin: { kind: 'command_line', name: null } as const,
          };
          const link = { alias: id, userId: items.at(-1)?.id ?? id };
          await addAlias(quiet, environmentId, link, false, asked).catch(() => null);
        } else if (does === 'delete') await (await acceptDeletion(quiet, environmentId, 'users', [id])).run();
        else await send(user(environmentId, id, { email: null, [email]: 1 }));
      };
      // Loads take turns, as in a lane; everything else is at the same time.
      let lane: Promise<unknown> = Promise.resolve();
      for (const each of steps) {
        const own = each.does === 'load' || each.does === 'delete' ? lane.then(() => run(each)) : run(each);
        if (each.does === 'load' || each.does === 'delete') lane = own;
        loads.push(own);
      }
      await Promise.all(loads);
      expectDistinct(await emails(environmentId));
    });
    await fc.assert(property, { numRuns: runs(20) });
  },
);

// proves: rules-unique
test('each value goes to one of those who bring it at once, and all others are refused', async () => {
  const environmentId = await ruled('refuse');
  const values = ['a', 'b', 'c'];
  const singles = Array.from({ length: 30 }, (_, at) =>
    send(user(environmentId, `s${at}`, { email: values[at % 3] })),
  );
  const load = await startManually(
    t.system,
    environmentId,
    csvOf(Array.from({ length: 30 }, (_, at) => [`l${at}`, values[at % 3] ?? ''])),
    { chunkBytes: 60 },
  );
  const order = Array.from({ length: load.chunkCount }, (_, at) => at);
  const [{ tally }, stored] = await Promise.all([runAtOnce(load, order, 2), Promise.all(singles)]);
  const held = await emails(environmentId);
  expect(Object.values(held).toSorted()).toEqual(values);
  expect(stored.filter((each) => !each).length + tally.rejected).toBe(60 - 3);
});

describe('a claim', () => {
  // proves: rules-unique
  test('is undone with the chunk that made it, and the chunk comes to the same when it is done again', async () => {
    const environmentId = await ruled('refuse');
    await send(user(environmentId, 'u1', { email: 'a' }));
    const load = await startManually(
      t.system,
      environmentId,
      csvOf([
        ['u2', 'a'],
        ['u3', 'b'],
        ['u4', 'b'],
      ]),
    );
    await t.system.pool.query(`
      create function fail_rejects() returns trigger language plpgsql as $$
      begin raise exception 'for the test' using errcode = '57014'; end $$;
      create trigger fail_rejects before insert on sluice.load_rejects for each statement execute function fail_rejects()`);
    await load.begin();
    await load.chunk(0).catch(() => undefined);
    await t.system.pool.query('drop function fail_rejects cascade');
    const { rows } = await t.system.pool.query('select owner from unique_values where environment_id = $1', [
      environmentId,
    ]);
    expect(rows).toEqual([{ owner: 'u1' }]);
    expect((await runManually(load)).tally).toMatchObject({ inserted: 1, rejected: 2 });
    expect(await emails(environmentId)).toEqual({ u1: 'a', u3: 'b' });
  });

  // proves: rules-unique
  test('that was lost before a replay is not taken back by it', async () => {
    const environmentId = await ruled('refuse');
    const csv = 'user_id,email,plan\nu1,a,x\nu1,b,y\n';
    const load = await startManually(t.system, environmentId, csv, { chunkBytes: 1 });
    await load.begin();
    await load.chunk(1);
    await load.chunk(0);
    expect(await send(user(environmentId, 'u2', { email: 'b' }))).toBe(true);
    expect((await load.finish()).tally.rejected).toBe(0);
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['u1']?.metadata).toEqual({ email: 'a', plan: 'y' });
    expect(await emails(environmentId)).toEqual({ u1: 'a', u2: 'b' });
  });

  // proves: rules-unique
  test('keeps a record refused when its chunk is replayed', async () => {
    const environmentId = await ruled('refuse');
    await send(user(environmentId, 'u2', { email: 'a' }));
    const csv = 'user_id,email,plan,city\nu1,,x,\nu1,a,,refused\nu1,,y,\n';
    const load = await startManually(t.system, environmentId, csv, { chunkBytes: 8 });
    expect(load.chunkCount).toBe(2);
    expect((await runManually(load, [1, 0])).tally).toMatchObject({ read: 3, rejected: 1 });
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['u1']?.metadata).toEqual({ plan: 'y' });
  });

  // proves: rules-unique
  test('is made of records of the same chunk that exchange their values', async () => {
    const environmentId = await ruled('refuse');
    for (const each of [
      ['u1', 'a'],
      ['u2', 'b'],
    ])
      await send(user(environmentId, each[0] ?? '', { email: each[1] }));
    expect(
      (
        await loadFile(
          t.system,
          environmentId,
          csvOf([
            ['u1', 'b'],
            ['u2', 'a'],
          ]),
        )
      ).tally.rejected,
    ).toBe(0);
    expect(await emails(environmentId)).toEqual({ u1: 'b', u2: 'a' });
  });

  // proves: rules-unique
  test('is that of the person once its owner is an alias, and its own again when that is undone', async () => {
    const environmentId = await ruled('refuse');
    const quiet = withoutQueue(t.system);
    await send(user(environmentId, 'alias', { email: 'a' }));
    const asked = { jobId: uuidv7(), requestId: null, origin: { kind: 'command_line', name: null } as const };
    const made = await addAlias(quiet, environmentId, { alias: 'alias', userId: 'u1' }, false, asked);
    await runJob(quiet, environmentId, made.job_id ?? '');
    expect(await send(user(environmentId, 'u2', { email: 'a' }))).toBe(false);
    expect(await send(user(environmentId, 'alias', { email: 'a', plan: 'x' }))).toBe(true);
    const load = await loadFile(
      t.system,
      environmentId,
      csvOf([
        ['u2', 'c'],
        ['alias', 'c'],
      ]),
    );
    expect(load.tally.rejected).toBe(1);
    await undo(quiet, environmentId, [made.job_id ?? '']);
    expect(await send(user(environmentId, 'u3', { email: 'a' }))).toBe(false);
    expectDistinct(await emails(environmentId));
  });

  // proves: rules-unique
  test('goes with a deleted person, whose value is free then', async () => {
    const environmentId = await ruled('refuse');
    await send(user(environmentId, 'u1', { email: 'a' }));
    await (await acceptDeletion(withoutQueue(t.system), environmentId, 'users', ['u1'])).run();
    const { rows } = await t.system.pool.query('select 1 from unique_values where environment_id = $1', [
      environmentId,
    ]);
    expect(rows).toEqual([]);
    expect(await send(user(environmentId, 'u2', { email: 'a' }))).toBe(true);
  });

  // proves: rules-unique
  test('is renewed by an undo that brings the value back', async () => {
    const environmentId = await newEnvironment(t.system);
    await send(user(environmentId, 'u1', { email: 'a' }));
    const load = await loadFile(t.system, environmentId, csvOf([['u1', 'b']]));
    await applyRules(t.system.db, environmentId, unique('refuse'), null);
    t.system.ingest.rules.forget(environmentId);
    await undo(withoutQueue(t.system), environmentId, [load.jobId]);
    expect(await send(user(environmentId, 'u2', { email: 'a' }))).toBe(false);
    expect(await send(user(environmentId, 'u2', { email: 'b' }))).toBe(true);
  });

  // proves: rules-unique
  test('is made for what was stored before the rule, and by a load that was accepted before it', async () => {
    const environmentId = await newEnvironment(t.system);
    await send(user(environmentId, 'u1', { email: 1 }));
    await send(user(environmentId, 'u2', {}, { companyId: 'c1', company: { domain: 'a' } }));
    const load = await startManually(
      t.system,
      environmentId,
      csvOf([
        ['u3', 'b'],
        ['u4', 'b'],
      ]),
    );
    await applyRules(t.system.db, environmentId, unique('refuse'), null);
    t.system.ingest.rules.forget(environmentId);
    expect((await runManually(load)).tally.rejected).toBe(1);
    expect(await send(user(environmentId, 'u5', { email: 'b' }))).toBe(false);
    expect(await send(user(environmentId, 'u6', {}, { companyId: 'c2', company: { domain: 'a' } }))).toBe(
      false,
    );
    const numbers = ['{"user_id":"u7","email":1.0}', '{"user_id":"u8","email":"1"}', '{"user_id":"c3"}'].join(
      '\n',
    );
    expect((await loadFile(t.system, environmentId, `${numbers}\n`)).tally.rejected).toBe(1);
  });
});

describe('a value that several had before the rule', () => {
  const shared = async (...ids: string[]) => {
    const environmentId = await newEnvironment(t.system);
    for (const id of ids) await send(user(environmentId, id, { email: 'a' }));
    await applyRules(t.system.db, environmentId, unique('refuse'), null);
    t.system.ingest.rules.forget(environmentId);
    return environmentId;
  };

  // proves: rules-unique
  test('stays theirs until the last of them is deleted or gives it up', async () => {
    const environmentId = await shared('u1', 'u2', 'u3');
    const another = (id: string) => send(user(environmentId, id, { email: 'a' }));
    await (await acceptDeletion(withoutQueue(t.system), environmentId, 'users', ['u1'])).run();
    const { rows } = await t.system.pool.query('select owner from unique_values where environment_id = $1', [
      environmentId,
    ]);
    expect(rows).toEqual([{ owner: '' }]);
    expect(await another('u4')).toBe(false);
    await send(user(environmentId, 'u2', { email: null }));
    expect(await another('u4')).toBe(false);
    expect(await another('u3')).toBe(true);
    await send(user(environmentId, 'u3', { email: null }));
    expect([await another('u4'), await another('u5')]).toEqual([true, false]);
  });

  // proves: rules-unique
  test('is asked for only by records of its users, and not by their events', async () => {
    const environmentId = await shared('u1', 'u2');
    const lines = [
      { event_type: 'identify_user', user_id: 'n1', plan: 'x'.repeat(100) },
      { event_type: 'identify_user', user_id: 'n2' },
      { event_type: 'track', user_id: 'u2', event_name: 'seen' },
    ].map((line) => `${JSON.stringify(line)}\n`);
    // The second chunk is inserted, since the users of the first were all new.
    const load = await startManually(t.system, environmentId, lines.join(''), {
      chunkBytes: 100,
      entity: 'auto',
    });
    expect(load.chunkCount).toBe(2);
    expect((await runManually(load)).tally).toMatchObject({ read: 3, inserted: 3, rejected: 0 });
  });
});

// proves: rules-unique
test('a value that an undo brought back to a user is theirs when the one who took it meanwhile gives it up', async () => {
  const environmentId = await ruled('refuse');
  await send(user(environmentId, 'u1', { email: 'a' }));
  const load = await loadFile(t.system, environmentId, csvOf([['u1', 'b']]));
  expect(await send(user(environmentId, 'u2', { email: 'a' }))).toBe(true);
  await undo(withoutQueue(t.system), environmentId, [load.jobId]);
  expect(await emails(environmentId)).toEqual({ u1: 'a', u2: 'a' });
  await send(user(environmentId, 'u2', { email: null }));
  expect(await send(user(environmentId, 'u3', { email: 'a' }))).toBe(false);
});

// proves: rules-unique
test('rules that are applied wait for writers who do not know them, and claim what these wrote', async () => {
  const environmentId = await newEnvironment(t.system);
  let applied: Promise<unknown> | undefined;
  await inTransaction(t.system.pool, async ({ db }) => {
    await sql`
      insert into users (environment_id, user_id, metadata) values (${environmentId}, 'u1', '{"email": "a"}')`.execute(
      db,
    );
    applied = applyRules(t.system.db, environmentId, unique('refuse'), null);
    await Promise.race([applied, delay(1.5 * RULES_KNOWN_MS)]);
  });
  await applied;
  t.system.ingest.rules.forget(environmentId);
  expect(await send(user(environmentId, 'u2', { email: 'a' }))).toBe(false);
});

describe.each(['refuse', 'strip'] as const)(
  'records of which each takes the value of the one before it',
  (otherwise) => {
    // A sequence keeps count of what is rolled back.
    beforeAll(async () => {
      await t.system.pool.query(`
      create sequence claims;
      create function count_claims() returns trigger language plpgsql as $$
      begin perform nextval('claims'); return null; end $$;
      create trigger count_claims after insert on sluice.unique_values for each statement execute function count_claims()`);
    });
    afterAll(() => t.system.pool.query('drop function count_claims cascade; drop sequence claims'));
    const claims = async () =>
      Number((await t.system.pool.query('select last_value from claims')).rows[0].last_value);

    // proves: rules-unique
    test.each(['file', 'batch'])(`are soon found out: ${otherwise}, %s`, async (way) => {
      const environmentId = await ruled(otherwise);
      const before = Array.from({ length: 60 }, (_, at): [string, string] => [`u${at}`, `v${at}`]);
      const shifted = before.map(([, email], at): [string, string] => [`u${at + 1}`, email]);
      await loadFile(t.system, environmentId, csvOf([...before, ['u60', 'last']]));
      const counted = await claims();
      if (way === 'file') await loadFile(t.system, environmentId, csvOf([...shifted, ['z', 'z']]));
      else {
        const items = [...shifted, ['z', 'z']].map(
          ([id = '', email], index): BatchItem => ({
            index,
            entity: 'users',
            record: user(environmentId, id, { email }),
          }),
        );
        await t.system.ingest.batch(environmentId, async () => ({ items, rejected: [] }), 10, null);
      }
      expect((await claims()) - counted).toBeLessThan(20);
      expect(await emails(environmentId)).toEqual({ ...Object.fromEntries(before), u60: 'last', z: 'z' });
    });
  },
);

// proves: rules-unique
test('a number is the same in whatever writing it comes', async () => {
  const environmentId = await ruled('refuse');
  await send(user(environmentId, 'u1', { email: 0 }));
  const lines = ['0.0', '-0', '-0e5'].map((email, at) => `{"user_id":"f${at}","email":${email}}\n`);
  expect((await loadFile(t.system, environmentId, lines.join(''))).tally).toMatchObject({ rejected: 3 });
  const parsed = parseJsonText('{"email":-0}');
  const properties = 'value' in parsed ? (parsed.value as object) : {};
  expect(await send(user(environmentId, 'u2', properties, { marked: true }))).toBe(false);
});

// proves: rules-unique
test('a record that is refused for its value is mended with another', async () => {
  const environmentId = await ruled('refuse');
  await send(user(environmentId, 'u1', { email: 'a' }));
  const load = await loadFile(
    t.system,
    environmentId,
    csvOf([
      ['u2', 'a'],
      ['u3', 'b'],
    ]),
  );
  const [reject] = await readRejects(t.system, load.jobId);
  expect(reject).toMatchObject({
    code: 'breaks_rule',
    column: 'email',
    message: 'email is not unique: another user has the value',
    row: 1,
  });
  const mend = async (email: string) =>
    runManually(
      await amendManually(
        t.system,
        environmentId,
        load.jobId,
        `sluice_row,user_id,email
1,u2,${email}
`,
      ),
    );
  expect((await mend('b')).tally.rejected).toBe(1);
  expect((await mend('c')).tally).toMatchObject({ inserted: 1, rejected: 0 });
  expect(await emails(environmentId)).toEqual({ u1: 'a', u2: 'c', u3: 'b' });
});

// proves: rules-unique
test('a value that is older than what is stored is neither claimed nor refused', async () => {
  const environmentId = await ruled('refuse');
  await send(user(environmentId, 'u1', { email: 'a' }));
  await send(user(environmentId, 'u2', { email: 'b' }));
  expect(await send(user(environmentId, 'u2', { email: 'a' }, { at: when }))).toBe(true);
  expect(await send(user(environmentId, 'u3', { email: 'a' }, { at: when }))).toBe(false);
  expect(await emails(environmentId)).toEqual({ u1: 'a', u2: 'b' });
});

// proves: rules-unique
test('what is stripped is counted in the job', async () => {
  const environmentId = await ruled('strip');
  await send(user(environmentId, 'u1', { email: 'a' }));
  const csv = 'user_id,email,plan\nu2,a,x\nu3,b,y\n';
  const load = await loadFile(t.system, environmentId, csv);
  expect(load).toMatchObject({
    tally: { inserted: 2, rejected: 0 },
    findings: [{ entity: 'users', property: 'email', rule: 'unique', otherwise: 'strip', records: 1 }],
  });
  await send(user(environmentId, 'u1', { email: null }));
  expect((await loadFile(t.system, environmentId, csv)).tally).toMatchObject({ updated: 1, unchanged: 1 });
});

// proves: rules-unique
test('a load of one chunk that refuses more than max_errors for their values writes nothing', async () => {
  const environmentId = await ruled('refuse');
  const csv = csvOf([
    ['u1', 'a'],
    ['u2', 'a'],
    ['u3', 'a'],
  ]);
  const load = await startManually(t.system, environmentId, csv, { maxErrors: { count: 1 } });
  expect(await runManually(load)).toMatchObject({ status: 'failed' });
  expect(await emails(environmentId)).toEqual({});
});
