import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runs } from '../support/runs.ts';
import { openRecordSite, type RecordSite } from '../support/servers/records.ts';
import type { Tenant } from '../support/servers/system.ts';

let site: RecordSite;
let other: Tenant;
beforeAll(async () => {
  site = await openRecordSite();
  other = await site.t.addEnvironment('one-by-one');
});
afterAll(() => site?.close());

type Item = Readonly<Record<string, unknown>> & { readonly type: keyof typeof routes };

const routes = { identify: '/v1/identify', track: '/v1/track', company: '/v1/companies/identify' } as const;

const name = fc.constantFrom('a', 'b', 'c');
const values = fc.dictionary(name, fc.constantFrom('1', '2', 'ü', null), { maxKeys: 3 });
const user_id = fc.constantFrom('u0', 'u1', 'u2');
const company_id = fc.constantFrom('c0', 'c1');
const identify: fc.Arbitrary<Item> = fc
  .record({
    user_id,
    metadata: values,
    company: fc.oneof(
      fc.constant(undefined),
      fc.constant(null),
      fc.tuple(company_id, values).map(([id, properties]) => ({ ...properties, company_id: id })),
    ),
  })
  .map((record) => ({ type: 'identify', ...record }));
const company: fc.Arbitrary<Item> = fc
  .record({ company_id, metadata: values })
  .map((record) => ({ type: 'company', ...record }));
const track: fc.Arbitrary<Item> = fc
  .record({
    user_id,
    event_name: fc.constantFrom('x', 'y'),
    company_id: fc.option(company_id, { freq: 4, nil: undefined }),
    event_id: fc.integer({ min: 0, max: 40 }).map((n) => `e${n}`),
    timestamp: fc.constantFrom('2026-02-03T04:05:06Z', '2026-03-01'),
    metadata: values,
  })
  .map((record) => ({ type: 'track', ...record }));

/** Adds a prefix to the ids of an item, so that each run has its own ids. */
function inRun(run: number, item: Item): Item {
  const prefixed = (value: unknown): unknown => {
    if (typeof value === 'string') return `${run}-${value}`;
    if (typeof value !== 'object' || value === null) return value;
    return { ...value, company_id: prefixed((value as Item)['company_id']) };
  };
  const ids = ['user_id', 'company_id', 'event_id', 'company'].filter((key) => item[key] !== undefined);
  return { ...item, ...Object.fromEntries(ids.map((key) => [key, prefixed(item[key])])) };
}

async function sendAlone({ type, ...record }: Item, key?: string): Promise<void> {
  await site.accept(routes[type], record, key === undefined ? {} : { key });
}

async function sendBatch(items: readonly Item[]): Promise<void> {
  const { status, body } = await site.post('/v1/batch', { batch: items });
  expect({ status, body }).toEqual({ status: 200, body: { accepted: items.length, rejected: [] } });
}

async function readRun(run: number, environmentId: number): Promise<object> {
  const values = [environmentId, `${run}-%`];
  return {
    users: await site.sql(
      'select user_id, company_id, metadata from sluice.users where environment_id = $1 and user_id like $2 order by 1',
      values,
    ),
    companies: await site.sql(
      'select company_id, metadata from sluice.companies where environment_id = $1 and company_id like $2 order by 1',
      values,
    ),
    events: await site.sql(
      `select event_id, event_name, user_id, company_id, inserted_at, metadata
       from sluice.events
       where environment_id = $1 and user_id like $2
       order by 1`,
      values,
    ),
  };
}

let count = 0;

describe('a batch', () => {
  // proves: batch-order
  test('a batch stores its records as if they came one by one: users, companies, and events with the company of their user at that moment', async () => {
    const batches = fc.array(fc.array(fc.oneof(identify, company, track), { maxLength: 12 }), {
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(batches, async (all) => {
        const run = ++count;
        for (const items of all) {
          await sendBatch(items.map((item) => inRun(run, item)));
          for (const item of items) await sendAlone(inRun(run, item), other.key);
        }
        expect(await readRun(run, site.t.environment.environmentId)).toEqual(
          await readRun(run, other.environment.environmentId),
        );
      }),
      { numRuns: runs(60) },
    );
  });

  // proves: batch-order
  test('batches and single profiles of the same keys take effect in the order in which they were sent', async () => {
    // The service keeps the order of single records only within one profile. A single identify
    // record of this test therefore sets no properties of a company.
    const alone = identify.map((item) => {
      const { company_id } = (item['company'] ?? {}) as Partial<Item>;
      return company_id === undefined ? item : { ...item, company: { company_id } };
    });
    const step = fc.oneof(alone, company, fc.array(fc.oneof(identify, company), { maxLength: 8 }));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const run = ++count;
        const sent = steps.map((each) => [each].flat().map((item) => inRun(run, item)));
        const statuses = await site.pipeline(
          sent.map((items, at) => {
            const [{ type, ...record } = { type: 'company' as const }] = items;
            return Array.isArray(steps[at])
              ? (['/v1/batch', items] as const)
              : ([routes[type], record] as const);
          }),
        );
        expect(statuses).toEqual(steps.map((each) => (Array.isArray(each) ? 200 : 202)));
        for (const item of sent.flat()) await sendAlone(item, other.key);
        expect(await readRun(run, site.t.environment.environmentId)).toEqual(
          await readRun(run, other.environment.environmentId),
        );
      }),
      { numRuns: runs(60) },
    );
  });

  // proves: acknowledged
  test('a batch whose connection is lost leaves nothing, and is answered 503', async () => {
    const run = ++count;
    const items = [
      { type: 'track', user_id: 'u', event_name: 'x', event_id: 'lost' },
      { type: 'identify', user_id: 'u', company_id: 'c' },
      { type: 'company', company_id: 'c' },
    ] as const;
    const runItems = items.map((item) => inRun(run, item));
    const lock = await site.hold('lock table sluice.companies in share row exclusive mode');
    const answer = site.post('/v1/batch', runItems);
    const [pid] = await site.blocked();
    await site.sql('select pg_terminate_backend($1)', [pid]);
    const { status, headers } = await answer;
    expect([status, Number(headers.get('retry-after')) > 0]).toEqual([503, true]);
    await lock.release();
    const nothing = { users: [], companies: [], events: [] };
    expect(await readRun(run, site.t.environment.environmentId)).toEqual(nothing);
    await sendBatch(runItems);
    expect(await readRun(run, site.t.environment.environmentId)).toMatchObject({
      users: [{ company_id: `${run}-c` }],
      events: [{ event_id: `${run}-lost`, company_id: null }],
    });
  });

  test('batches of two servers with the same keys in opposite orders all end', async () => {
    const run = ++count;
    const items = Array.from({ length: 40 }, (_, n) => [
      inRun(run, { type: 'company', company_id: `c${n}`, metadata: { n } }),
      inRun(run, { type: 'identify', user_id: `u${n}`, company: { company_id: `c${40 - n}`, m: n } }),
      inRun(run, { type: 'track', user_id: `u${n}`, event_name: 'x', event_id: `e${n}` }),
    ]).flat();
    await site.onAnotherProcess(async (process) => {
      const bodies = Array.from({ length: 6 }, (_, n) => (n % 2 === 0 ? items : items.toReversed()));
      const sent = bodies.flatMap((batch) => [site, process].map((each) => each.post('/v1/batch', batch)));
      for (const { status, body } of await Promise.all(sent))
        expect({ status, body }).toEqual({ status: 200, body: { accepted: items.length, rejected: [] } });
    });
    const { events } = (await readRun(run, site.t.environment.environmentId)) as { events: object[] };
    expect(events).toHaveLength(40);
  });
});
