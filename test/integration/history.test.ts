import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProfileChange } from '../../src/api/profile.ts';
import type { Entity } from '../../src/domain/entity.ts';
import { type HistoryPage, readHistory } from '../../src/postgres/stores/changes.ts';
import { writeCompanies, writeUsers } from '../../src/postgres/stores/profiles.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { newEnvironment, readProfiles, runManually, shuffled, startManually } from '../support/load-file.ts';
import { runs } from '../support/runs.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
let operator: pg.Client;
beforeAll(async () => {
  t = await openTestSystem();
  operator = new pg.Client({ connectionString: t.databaseUrl });
  await operator.connect();
});
afterAll(async () => {
  await operator.end();
  await t.close();
});

async function load(environmentId: number, text: string, options = {}): Promise<string> {
  const started = await startManually(t.system, environmentId, text, options);
  expect((await runManually(started)).status).toBe('completed');
  return started.jobId;
}

function identify(environmentId: number, key: string, properties: object, companyId: string | null = null) {
  const removes = Object.values(properties).includes(null) || companyId === '';
  const companies =
    companyId === null || companyId === ''
      ? []
      : [{ environmentId, key: companyId, properties: '{}', removes: false }];
  return writeUsers(
    t.system.pool,
    [{ environmentId, key, properties: JSON.stringify(properties), removes, companyId }],
    companies,
  );
}

const page = (
  environmentId: number,
  id: string,
  entity: Entity,
  limit: number,
  after: number | null,
): Promise<HistoryPage> => readHistory(t.system.reader, { environmentId, entity, id }, { limit, after });

/** All changes, newest first, read in pages of so many. */
async function history(environmentId: number, id: string, entity: Entity = 'users', limit = 100) {
  const changes: ProfileChange[] = [];
  for (let after: number | null = null; ; ) {
    const { changes: some, next } = await page(environmentId, id, entity, limit, after);
    expect(some.length).toBeLessThanOrEqual(limit);
    changes.push(...some.map(({ json }) => JSON.parse(json) as ProfileChange));
    if (next === null) return changes;
    after = next;
  }
}

/** What the tests compare: without times. */
const plain = (changes: readonly ProfileChange[]) =>
  changes.map(({ action, by, job, properties, company }) => ({
    what: `${action} by ${by}${job === null ? '' : ` ${job.job_id}`}`,
    ...Object.fromEntries(properties.map(({ name, before, after }) => [name, [before, after]])),
    ...(company !== null && { company: [company.before, company.after] }),
  }));

describe('the history of a profile', () => {
  // proves: history-complete
  test('says who changed what, from what to what: loads, single records, operators, newest first', async () => {
    const environmentId = await newEnvironment(t.system);
    const first = await load(environmentId, 'user_id,plan,size\na,free,1\nb,free,1\n');
    await identify(environmentId, 'a', { plan: 'pro', size: null }, 'acme');
    const second = await load(environmentId, 'user_id,plan,seats,company_id\na,pro,7,globex\n');
    await operator.query(
      `update sluice.users set metadata = metadata || '{"plan": "gold"}' where environment_id = $1 and user_id = 'a'`,
      [environmentId],
    );
    await load(environmentId, 'user_id,plan\na,gold\n');
    const found = await history(environmentId, 'a');
    expect(plain(found)).toEqual([
      { what: 'changed by operator', plan: ['pro', 'gold'] },
      { what: `changed by load ${second}`, seats: [null, '7'], company: ['acme', 'globex'] },
      { what: 'changed by request', plan: ['free', 'pro'], size: ['1', null], company: [null, 'acme'] },
      { what: `made by load ${first}`, plan: [null, 'free'], size: [null, '1'] },
    ]);
    expect(found[1]?.job).toEqual({ job_id: second, type: 'import', filename: 'users.csv' });
    const { changes, completeSince } = await page(environmentId, 'a', 'users', 9, null);
    expect(found.map(({ at }) => at)).toEqual(
      found
        .map(({ at }) => at)
        .toSorted()
        .reverse(),
    );
    expect([changes.length, completeSince]).toEqual([4, null]);
    expect(plain(await history(environmentId, 'b'))).toEqual([
      { what: `made by load ${first}`, plan: [null, 'free'], size: [null, '1'] },
    ]);
  });

  test('of a company has what loads of users say of it, and of another environment nothing', async () => {
    const [one, other] = [await newEnvironment(t.system), await newEnvironment(t.system)];
    await identify(one, 'u', {}, 'acme');
    await writeCompanies(t.system.pool, [
      { environmentId: one, key: 'acme', properties: '{"size":1}', removes: false },
    ]);
    const job = await load(other, '{"company_id":"acme","metadata":{"size":2}}\n', { entity: 'companies' });
    expect(plain(await history(one, 'acme', 'companies'))).toEqual([
      { what: 'changed by request', size: [null, 1] },
      { what: 'made by request' },
    ]);
    expect(plain(await history(other, 'acme', 'companies'))).toEqual([
      { what: `made by load ${job}`, size: [null, 2] },
    ]);
    expect(await history(other, 'u')).toEqual([]);
  });

  test('has the removal of a profile with what it held, and that it was made anew', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { plan: 'free' });
    await identify(environmentId, 'a', { plan: 'pro' });
    await operator.query(`delete from sluice.users where environment_id = $1`, [environmentId]);
    expect(plain(await history(environmentId, 'a'))[0]).toEqual({
      what: 'removed by operator',
      plan: ['pro', null],
    });
    const job = await load(environmentId, 'user_id,plan\na,gold\n');
    const made = { what: `made by load ${job}`, plan: [null, 'gold'] };
    const earlier = [
      { what: 'removed by operator', plan: ['pro', null] },
      { what: 'changed by request', plan: ['free', 'pro'] },
      { what: 'made by request', plan: [null, 'free'] },
    ];
    expect(plain(await history(environmentId, 'a'))).toEqual([made, ...earlier]);
    await identify(environmentId, 'a', { plan: 'old' });
    const changed = { what: 'changed by request', plan: ['gold', 'old'] };
    const whole = await history(environmentId, 'a');
    expect(plain(whole)).toEqual([changed, made, ...earlier]);
    for (const limit of [1, 2, 3]) {
      expect(await history(environmentId, 'a', 'users', limit)).toEqual(whole);
    }
  });

  // proves: history-complete
  test('of a person whose data was deleted has that it was deleted, and nothing else', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { secret: 'x' });
    await identify(environmentId, 'a', { secret: 'y' });
    await (await acceptDeletion(t.system, environmentId, 'users', ['a'])).run();
    await sql`
      insert into changes (position, position_before, environment_id, entity, key, removed)
      select sluice.current_position(), 1, ${environmentId}, 'users', 'a', true`.execute(t.system.db);
    expect(plain(await history(environmentId, 'a'))).toEqual([{ what: 'removed by deletion' }]);
    await identify(environmentId, 'a', { plan: 'new' });
    expect(plain(await history(environmentId, 'a', 'users', 1))).toEqual([
      { what: 'made by request', plan: [null, 'new'] },
      { what: 'removed by deletion' },
    ]);
  });

  test('names nothing from before a gap in the log, and says when that ended', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { n: 0 });
    await identify(environmentId, 'a', { n: 1 });
    await sql`select switch_change_log(false)`.execute(t.system.db);
    await identify(environmentId, 'a', { n: 2 });
    const off = await page(environmentId, 'a', 'users', 9, null);
    expect([off.changes, off.completeSince]).toEqual([[], expect.stringMatching(/^\d{4}-.*Z$/)]);
    await sql`select switch_change_log(true)`.execute(t.system.db);
    await identify(environmentId, 'a', { n: 3 });
    expect(plain(await history(environmentId, 'a'))).toEqual([{ what: 'changed by request', n: [2, 3] }]);
    const since = (await page(environmentId, 'a', 'users', 9, null)).completeSince ?? '';
    expect(since > (off.completeSince ?? '')).toBe(true);
    await identify(environmentId, 'new', { n: 0 });
    expect(plain(await history(environmentId, 'new'))).toEqual([{ what: 'made by request', n: [null, 0] }]);
  });

  // proves: paging
  test('is paged by the order of the changes, also where their times are equal', async () => {
    const environmentId = await newEnvironment(t.system);
    for (let n = 0; n < 9; n++) await identify(environmentId, 'a', { n });
    await sql`update changes set at = (select min(at) from changes) where environment_id = ${environmentId}`.execute(
      t.system.db,
    );
    const whole = plain(await history(environmentId, 'a'));
    expect(whole.slice(0, 2)).toEqual([8, 7].map((n) => ({ what: 'changed by request', n: [n - 1, n] })));
    expect(whole).toHaveLength(9);
    for (const limit of [1, 2, 3, 8, 9]) {
      expect(plain(await history(environmentId, 'a', 'users', limit))).toEqual(whole);
    }
  });

  test('that reaches back beyond the log says since when it is complete', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { n: 0 });
    await identify(environmentId, 'a', { n: 1 });
    const { db } = t.system;
    await sql`
      update change_log
      set complete_since = (select position from changes where environment_id = ${environmentId})`.execute(
      db,
    );
    const { changes, completeSince } = await page(environmentId, 'a', 'users', 9, null);
    expect(plain(changes.map(({ json }) => JSON.parse(json)))).toEqual([
      { what: 'changed by request', n: [0, 1] },
    ]);
    expect(completeSince).toMatch(/^\d{4}-.*Z$/);
    await sql`update change_log set complete_since = sluice.current_position()`.execute(db);
    // So does each page of several.
    for (const n of [3, 4]) await identify(environmentId, 'a', { n });
    const newest = await page(environmentId, 'a', 'users', 1, null);
    expect(newest).toMatchObject({ completeSince, next: expect.any(Number) });
    expect(await page(environmentId, 'a', 'users', 1, newest.next)).toMatchObject({
      completeSince,
      next: null,
    });
    await sql`update change_log set complete_since = 0`.execute(db);
  });

  test('of large profiles is read some at a time', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', { n: 0 });
    const { db } = t.system;
    for (let n = 1; n <= 12; n++) {
      await sql`
        update users
        set metadata = jsonb_build_object('n', ${n}::int, 'old', 1, 'large', ${randomBytes(600_000).toString('hex')}::text)
        where environment_id = ${environmentId}`.execute(db);
    }
    const ns = (await history(environmentId, 'a')).map(
      ({ properties: all }) => all.find(({ name }) => name === 'n')?.after,
    );
    expect(ns).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  });

  // proves: every-digit
  test('keeps every digit', async () => {
    const environmentId = await newEnvironment(t.system);
    await identify(environmentId, 'a', {});
    await load(environmentId, '{"user_id":"a","metadata":{"n":12345678901234567890.10}}\n');
    expect((await page(environmentId, 'a', 'users', 1, null)).changes[0]?.json).toContain(
      '12345678901234567890.10',
    );
  });
});

const ids = ['a', 'b'] as const;
const properties = fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.constantFrom('1', '2', 1, null), {
  maxKeys: 3,
});
const company = fc.constantFrom(null, null, 'acme', 'globex', '');
const record = fc.record({
  id: fc.constantFrom(...ids),
  properties,
  company,
});
const step = fc.oneof(
  fc.record({
    kind: fc.constant('load' as const),
    records: fc.array(record, { minLength: 1, maxLength: 5 }),
    chunkBytes: fc.constantFrom(1, 4_096),
    ranks: fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
  }),
  fc.record({ kind: fc.constant('request' as const), record }),
  fc.record({ kind: fc.constant('operator' as const), record }),
  fc.record({ kind: fc.constantFrom('removal' as const, 'deletion' as const), id: fc.constantFrom(...ids) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function doStep(environmentId: number, own: Step): Promise<void> {
  if (own.kind === 'load') {
    const lines = own.records.map(({ id, properties: metadata, company: of }) =>
      JSON.stringify({ user_id: id, metadata, ...(of !== null && { company_id: of === '' ? null : of }) }),
    );
    const { chunkBytes, ranks } = own;
    const started = await startManually(t.system, environmentId, `${lines.join('\n')}\n`, {
      chunkBytes,
    });
    await runManually(started, shuffled(started, ranks));
  } else if (own.kind === 'request') {
    const { id, properties: values, company: of } = own.record;
    await identify(environmentId, id, values, of);
  } else if (own.kind === 'operator') {
    const { id, properties: values, company: of } = own.record;
    await operator.query(
      `update sluice.users set metadata = sluice.without_nulls(metadata || $3::jsonb), company_id = nullif($4, '')
      where environment_id = $1 and user_id = $2`,
      [environmentId, id, JSON.stringify(values), of],
    );
  } else if (own.kind === 'deletion') {
    await (await acceptDeletion(t.system, environmentId, 'users', [own.id])).run();
  } else {
    await operator.query(`delete from sluice.users where environment_id = $1 and user_id = $2`, [
      environmentId,
      own.id,
    ]);
  }
}

interface State {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly company: string | null;
}

const absent = 'absent';
const textOf = (state: State | undefined): string =>
  state === undefined
    ? absent
    : JSON.stringify([Object.entries(state.metadata).sort(([a], [b]) => (a < b ? -1 : 1)), state.company]);

/** The states that a history tells, newest first, from the profile as it is. */
function toldStates(changes: readonly ProfileChange[], now: State | undefined): string[] {
  let state = now;
  const states = [textOf(state)];
  for (const { action, by, properties: differing, company: moved } of changes) {
    const metadata = new Map(Object.entries(state?.metadata ?? {}));
    for (const { name, before, after } of differing) {
      expect([name, metadata.get(name) ?? null]).toEqual([name, after]);
      if (before === null) metadata.delete(name);
      else metadata.set(name, before);
    }
    expect(moved === null ? null : moved.after).toBe(moved === null ? null : (state?.company ?? null));
    const left = moved === null ? (state?.company ?? null) : moved.before;
    const isNothingTold = action === 'made' || by === 'deletion';
    state = isNothingTold ? undefined : { metadata: Object.fromEntries(metadata), company: left };
    if (action === 'made') expect([metadata.size, left]).toEqual([0, null]);
    states.push(textOf(state));
  }
  return states;
}

const stateOf = async (environmentId: number, id: string) =>
  (await readProfiles(t.system, environmentId)).users[id] as State | undefined;

describe('a history, replayed backwards from the profile as it is', () => {
  // proves: history-complete
  test('passes through every state that the profile was ever in, or has been in since its data was deleted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 10 }),
        fc.integer({ min: 1, max: 5 }),
        async (steps, limit) => {
          const environmentId = await newEnvironment(t.system);
          const seen: Record<(typeof ids)[number], string[]> = { a: [absent], b: [absent] };
          for (const own of steps) {
            await doStep(environmentId, own);
            if (own.kind === 'deletion') seen[own.id] = [];
            for (const id of ids) seen[id].unshift(textOf(await stateOf(environmentId, id)));
          }
          for (const id of ids) {
            const now = await stateOf(environmentId, id);
            const told = toldStates(await history(environmentId, id, 'users', limit), now);
            expect(told.at(-1)).toBe(absent);
            let at = 0;
            for (const [nth, state] of seen[id].entries()) {
              if (nth > 0 && state === seen[id][nth - 1]) continue;
              at = told.indexOf(state, at);
              expect([told, state, at]).not.toEqual([told, state, -1]);
            }
          }
        },
      ),
      { numRuns: runs(60) },
    );
  });
});
