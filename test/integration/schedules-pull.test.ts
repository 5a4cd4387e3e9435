import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runJob } from '../../jobs/run.ts';
import { MAX_PULL_DAYS } from '../../src/domain/limits.ts';
import { readLoads } from '../../src/postgres/stores/read-loads.ts';
import type { ScheduleContext } from '../../src/sources/schedules/context.ts';
import { renderSchedules } from '../../src/sources/schedules/inspect-schedules.ts';
import type { Product } from '../../src/sources/schedules/products.ts';
import type { Schedule } from '../../src/sources/schedules/schedules-schema.ts';
import { askForRun } from '../../src/sources/schedules/start-schedules.ts';
import { reconcileTasks } from '../../src/tasks/reconcile.ts';
import { readEvents } from '../support/events.ts';
import { newEnvironment } from '../support/load-file.ts';
import { type ProductServer, productKey, productSecret, startProducts } from '../support/products.ts';
import { runs } from '../support/runs.ts';
import {
  doNext,
  finish,
  readSchedule,
  runNow,
  runsOf,
  scheduleContext,
  takeRun,
} from '../support/schedules.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';
import { expireTaskLeases, makeTasksDue } from '../support/tasks.ts';
import { startWebServer, type WebServer } from '../support/web-server.ts';

let t: TestSystem;
let environmentId: number;
let context: ScheduleContext;
let server: ProductServer;
let other: WebServer;

beforeAll(async () => {
  t = await openTestSystem({ worker: true });
  server = await startProducts();
  other = await startWebServer('http');
  const variables = { SCHEDULE_KEY: productKey, SCHEDULE_SECRET: productSecret };
  context = scheduleContext(t, { allowPrivate: true, variables });
});
afterAll(async () => {
  await server?.stop();
  await other?.stop();
  await t?.close();
});
beforeEach(async () => {
  environmentId = await newEnvironment(context);
  server.events.splice(0);
  server.instead.splice(0);
  server.mostRows = 50_000;
  server.mostEvents = 50_000;
});
afterEach(async () => {
  await sql`truncate schedules cascade`.execute(context.db);
  await sql`delete from tasks where kind = 'run'`.execute(context.db);
});

const keys: Readonly<Record<Product, object>> = {
  mixpanel: { project_id: '7', user: '${env:SCHEDULE_KEY}', secret: '${env:SCHEDULE_SECRET}' },
  amplitude: { api_key: '${env:SCHEDULE_KEY}', secret_key: '${env:SCHEDULE_SECRET}' },
  posthog: { project_id: '7', api_key: '${env:SCHEDULE_KEY}' },
};
const products = Object.keys(keys) as Product[];

function pull(product: Product, more: object = {}): Schedule {
  const reach = { host: server.url, allow_http: true, allow_private: true };
  const source = { ...keys[product], ...reach, from: '2026-03-01', ...more };
  return readSchedule({ load: { [product]: source, if_duplicate: 'load' } });
}

/** The context at a time, at which the product knows what it has received before. */
function at(now: string): ScheduleContext {
  server.now = now;
  server.asked.splice(0);
  return { ...context, schedules: { ...context.schedules, now: () => new Date(now) } };
}

const doAt = (schedule: Schedule, now: string) => runNow(at(now), environmentId, schedule);
const ask = (schedule: Schedule, dueAt = '2026-02-01T00:00:00Z') =>
  askForRun(context.db, environmentId, schedule, new Date(dueAt), new Date());
/** Takes up a run that waits until an error has passed. */
async function takeUp(schedule: Schedule, now: string) {
  await makeTasksDue(context.db, 'run');
  return finish(at(now), schedule);
}

function add(id: string, time: string, more: object = {}): void {
  server.events.push({ id, user: `user-${id}`, at: time, ...more });
}
const eventIds = async (): Promise<string[]> =>
  (await readEvents(context, environmentId)).map(({ id }) => id).sort();
const days = (items: readonly { readonly item: string }[]) => items.map(({ item }) => item.split(' ')[1]);
async function progress(schedule: Schedule, now: string) {
  const [shown] = await renderSchedules(context.db, { environmentId }, [schedule], new Date(now));
  return [shown?.days_loaded, shown?.days_over];
}
async function countsOf(jobs: readonly { readonly jobId: string | null }[]) {
  const loads = await readLoads(
    context,
    environmentId,
    jobs.flatMap(({ jobId }) => jobId ?? []),
  );
  return loads.map(({ tally: { inserted, unchanged } }) => `${inserted} new, ${unchanged} known`).sort();
}

describe.each(products)('the export API of %s', (product) => {
  // proves: pull-days
  test('is asked for each day that is over, once, also for days without events', async () => {
    add('a', '2026-03-01T00:00:00.000Z');
    add('b', '2026-03-01T23:59:59.999Z');
    add('c', '2026-03-03T12:00:00.000Z', { properties: '{"amount":12345678901234567890.5,"note":"é\\n"}' });
    add('d', '2026-03-04T00:00:00.000Z');
    const schedule = pull(product, { overlap_days: 0 });
    expect(await progress(schedule, '2026-03-04T09:00:00Z')).toEqual([0, 3]);
    const first = await doAt(schedule, '2026-03-04T09:00:00Z');
    expect(first).toMatchObject({ status: 'completed', code: null });
    expect(days(first.items)).toEqual(['2026-03-01', '2026-03-03']);
    expect([...new Set(server.asked.map((each) => each.slice(0, 10)))]).toEqual([
      '2026-03-03',
      '2026-03-02',
      '2026-03-01',
    ]);
    expect(await eventIds()).toEqual(['a', 'b', 'c']);
    const { rows } = await sql<{ text: string }>`select metadata::text as text from events
      where event_id = 'c'`.execute(context.db);
    expect(rows[0]?.text).toContain('12345678901234567890.5');
    expect(await progress(schedule, '2026-03-04T09:00:00Z')).toEqual([3, 3]);
    expect(await doAt(schedule, '2026-03-04T21:00:00Z')).toMatchObject({ status: 'unchanged', items: [] });
    expect(server.asked).toEqual([]);
    expect(days((await doAt(schedule, '2026-03-05T09:00:00Z')).items)).toEqual(['2026-03-04']);
  });

  // proves: pull-days
  test('is asked again for the days of the overlap, and what was known is unchanged', async () => {
    add('a', '2026-03-01T10:00:00.000Z');
    add('b', '2026-03-02T10:00:00.000Z');
    const schedule = pull(product, { overlap_days: 2 });
    await doAt(schedule, '2026-03-03T09:00:00Z');
    const receivedAt = product === 'amplitude' ? '2026-03-02T23:30:00.000Z' : '2026-03-03T23:30:00.000Z';
    add('late', '2026-03-02T11:00:00.000Z', { receivedAt });
    const next = await doAt(schedule, '2026-03-04T09:00:00Z');
    expect([...server.asked].sort()[0]).toBe('2026-03-01');
    expect(await countsOf(next.items)).toEqual(['0 new, 1 known', '1 new, 1 known']);
    await doAt(schedule, '2026-03-05T09:00:00Z');
    await doAt(schedule, '2026-03-06T09:00:00Z');
    expect([...server.asked].sort()[0]).toBe('2026-03-03');
    expect(await eventIds()).toEqual(['a', 'b', 'late']);
  });

  // proves: pull-partial
  test.each([
    ['a cut-off body', cutOff],
    [
      'a status that may pass',
      (_: IncomingMessage, response: ServerResponse) => void response.writeHead(503).end(),
    ],
  ])('that gives %s is asked again, and until then the day is not loaded', async (_, instead) => {
    add('a', '2026-03-01T10:00:00.000Z', { properties: `{"x":"${'x'.repeat(5_000)}"}` });
    const schedule = pull(product);
    await ask(schedule);
    server.instead.push(instead);
    await doNext(at('2026-03-02T09:00:00Z'));
    expect(await runsOf(context, schedule)).toMatchObject([{ status: 'queued' }]);
    expect(await eventIds()).toEqual([]);
    expect(await progress(schedule, '2026-03-02T09:00:00Z')).toEqual([0, 1]);
    const done = await takeUp(schedule, '2026-03-02T09:00:00Z');
    expect(done).toMatchObject({ status: 'completed', attempts: 2 });
    expect(await eventIds()).toEqual(['a']);
  });

  // proves: pull-secrets
  test('that refuses the key ends the run after one request, and the key is nowhere', async () => {
    const schedule = pull(product);
    const refuse = (_: IncomingMessage, response: ServerResponse) => void response.writeHead(401).end();
    server.instead.push(refuse, refuse);
    const before = server.requests.length;
    const run = await doAt(schedule, '2026-03-09T09:00:00Z');
    expect(run).toMatchObject({ status: 'failed', code: 'access_denied' });
    expect(server.requests.length - before).toBe(1);
    const { rows } = await sql`select r::text as run, i::text as items from schedule_runs r
      left join schedule_run_items i using (run_id)`.execute(context.db);
    expect(JSON.stringify(rows)).not.toContain('geheim');
    await doAt(pull(product, { from: '2026-03-08' }), '2026-03-09T09:00:00Z');
    expect(JSON.stringify(server.requests.at(-1)?.headers)).toContain('authorization');
  });

  // proves: pull-secrets
  test('that redirects elsewhere does not pass the key on', async () => {
    other.answer('/elsewhere', (_, response) => void response.writeHead(200).end());
    server.instead.push(
      (_, response) => void response.writeHead(307, { location: `${other.url}/elsewhere` }).end(),
    );
    const before = other.requests.length;
    const { status, code } = await doAt(pull(product), '2026-03-02T09:00:00Z');
    const passed = other.requests.slice(before);
    expect([status, code, passed.length]).toEqual(
      product === 'posthog' ? ['failed', 'too_many_redirects', 0] : ['unchanged', null, 1],
    );
    expect(JSON.stringify(passed.map(({ headers }) => headers))).not.toContain('authorization');
  });

  test('on a private address is refused unless the file and the setting allow it', async () => {
    const strict = { ...at('2026-03-02T09:00:00Z') };
    const before = server.requests.length;
    for (const [allow_private, allowPrivate] of [
      [false, true],
      [true, false],
    ] as const) {
      const own = { ...strict, schedules: { ...strict.schedules, allowPrivate } };
      const run = await runNow(own, environmentId, pull(product, { allow_private }));
      expect(run).toMatchObject({ status: 'failed', code: 'private_address' });
    }
    expect(server.requests).toHaveLength(before);
  });
});

/** Promises more than it sends, and hangs up. */
function cutOff(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 100_000 });
  response.write(
    '{"event":"Paid","properties":{"distinct_id":"u","time":1772359200,"$insert_id":"cut"}}\n',
    () => response.socket?.resetAndDestroy(),
  );
}

describe('Mixpanel', () => {
  // proves: pull-partial
  test.each([
    ['a line that says so', (text: string) => gzipSync(`${text}terminated early\n`)],
    ['half of a gzip', (text: string) => gzipSync(text).subarray(0, 60)],
    ['half of a line', (text: string) => gzipSync(text.slice(0, -20))],
  ])('ends an export early with %s, and the day is not done', async (_, bytes) => {
    add('a', '2026-03-01T10:00:00.000Z');
    const line = '{"event":"Paid","properties":{"distinct_id":"u","time":1772359200,"$insert_id":"x"}}\n';
    server.instead.push((__, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes(line.repeat(3)));
    });
    const schedule = pull('mixpanel');
    await ask(schedule);
    await doNext(at('2026-03-02T09:00:00Z'));
    expect(await eventIds()).toEqual([]);
    expect(await progress(schedule, '2026-03-02T09:00:00Z')).toEqual([0, 1]);
    await takeUp(schedule, '2026-03-02T09:00:00Z');
    await doAt(schedule, '2026-03-02T10:00:00Z');
    expect(await eventIds()).toEqual(['a']);
  });

  // proves: pull-days
  test('has days in the time zone of the schedule', async () => {
    const zoned = { ...pull('mixpanel'), timezone: 'America/Los_Angeles' };
    await doAt(zoned, '2026-03-03T09:59:00Z');
    expect(server.asked).toEqual(['2026-03-01']);
    await doAt(zoned, '2026-03-03T10:00:00Z');
    expect(server.asked).toEqual(['2026-03-02', '2026-03-01']);
  });

  // proves: pull-days
  test('is asked for so many days by a run, the newest ones first, and the next run goes on', async () => {
    const schedule = pull('mixpanel', { from: '2025-12-01', overlap_days: 5 });
    await doAt(schedule, '2026-03-01T09:00:00Z');
    expect([server.asked.length, server.asked[0]]).toEqual([MAX_PULL_DAYS, '2026-02-28']);
    expect(await progress(schedule, '2026-03-01T09:00:00Z')).toEqual([MAX_PULL_DAYS, 90]);
    await doAt(schedule, '2026-03-01T10:00:00Z');
    expect([server.asked.length, server.asked.at(-1)]).toEqual([40, '2025-12-01']);
    expect(await progress(schedule, '2026-03-01T09:00:00Z')).toEqual([90, 90]);
  });

  // proves: pull-days
  test('that refuses one day holds up no other, and the next run asks for that day again', async () => {
    add('a', '2026-03-01T10:00:00.000Z');
    add('b', '2026-03-02T10:00:00.000Z');
    server.instead.push((_, response) => void response.writeHead(400).end());
    const schedule = pull('mixpanel', { overlap_days: 0 });
    const failed = await doAt(schedule, '2026-03-03T09:00:00Z');
    expect(failed).toMatchObject({ status: 'failed', code: 'unexpected_status' });
    expect(failed.reason).toContain('1 of 2 failed; mixpanel 2026-03-02: ');
    expect(await eventIds()).toEqual(['a']);
    await doAt(schedule, '2026-03-03T10:00:00Z');
    expect(server.asked).toEqual(['2026-03-02']);
    expect(await eventIds()).toEqual(['a', 'b']);
  });

  test.each([
    ['seconds', () => '1800'],
    ['a date', () => new Date(Date.now() + 1_800_000).toUTCString()],
  ])('that asks for a pause, in %s, gets it', async (_, retryAfter) => {
    server.instead.push(
      (__, response) => void response.writeHead(429, { 'retry-after': retryAfter() }).end(),
    );
    await ask(pull('mixpanel'));
    await doNext(at('2026-03-02T09:00:00Z'));
    const { rows } = await sql<{ pause: number }>`
      select extract(epoch from not_before - now())::float8 as pause from tasks where kind = 'run'`.execute(
      context.db,
    );
    expect(rows[0]?.pause).toBeGreaterThan(1_500);
    expect(rows[0]?.pause).toBeLessThanOrEqual(1_800);
  });

  // proves: pull-days
  test('has its run taken up by another worker where the one that is killed left off', async () => {
    for (const day of ['01', '02', '03']) add(day, `2026-03-${day}T10:00:00.000Z`);
    const schedule = pull('mixpanel', { overlap_days: 0 });
    await ask(schedule);
    const own = at('2026-03-04T09:00:00Z');
    const claim = await takeRun(own);
    // It dies as soon as the first day is safe: from there on its writes are refused.
    const dying = new AbortController();
    const log = Object.assign(Object.create(own.log), { info: () => dying.abort(new Error('killed')) });
    if (claim !== null) await runJob.run({ ...own, log }, claim, dying.signal).catch(() => undefined);
    await expireTaskLeases(context.db, 'run');
    await reconcileTasks(context, [runJob]);
    const run = await takeUp(schedule, '2026-03-04T09:00:00Z');
    expect(run).toMatchObject({ status: 'completed', attempts: 2 });
    expect(server.asked).toEqual(['2026-03-02', '2026-03-01']);
    expect(await eventIds()).toEqual(['01', '02', '03']);
  });
});

describe('Amplitude', () => {
  // proves: pull-days
  test('that has too many events on a day is asked for each hour of it, and an hour that it refuses holds up no other', async () => {
    add('a', '2026-03-01T05:00:00.000Z');
    for (const id of ['b', 'c']) add(id, '2026-03-01T17:30:00.000Z');
    server.mostEvents = 1;
    const schedule = pull('amplitude');
    const failed = await doAt(schedule, '2026-03-02T09:00:00Z');
    expect(server.asked).toHaveLength(25);
    expect(failed).toMatchObject({ status: 'failed', code: 'too_large' });
    expect(failed.reason).toContain('amplitude 2026-03-01T17');
    expect(await eventIds()).toEqual(['a']);
    expect(await progress(schedule, '2026-03-02T09:00:00Z')).toEqual([0, 1]);
    server.mostEvents = 2;
    await doAt(schedule, '2026-03-02T10:00:00Z');
    expect(server.asked).toEqual(['2026-03-01', '2026-03-01T17']);
    expect(await eventIds()).toEqual(['a', 'b', 'c']);
    expect(await progress(schedule, '2026-03-02T10:00:00Z')).toEqual([1, 1]);
    await doAt(schedule, '2026-03-02T11:00:00Z');
    expect(server.asked).toEqual([]);
  });
});

describe('PostHog', () => {
  // proves: pull-days
  test('gives every event of a day once, however few a page has, also where times are equal', async () => {
    server.mostRows = 2;
    for (const id of ['e', 'a', 'c', 'b', 'd']) add(id, '2026-03-01T00:00:00.000Z');
    add('f', '2026-03-01T00:00:00.001Z');
    await doAt(pull('posthog'), '2026-03-02T09:00:00Z');
    expect(await eventIds()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(server.asked).toHaveLength(4);
  });

  // proves: pull-partial
  test('that fails between two pages is asked for the whole day again', async () => {
    server.mostRows = 1;
    for (const id of ['a', 'b']) add(id, '2026-03-01T10:00:00.000Z');
    const schedule = pull('posthog');
    await ask(schedule);
    server.instead.push(null, (_, response) => void response.writeHead(500).end());
    await doNext(at('2026-03-02T09:00:00Z'));
    expect(await eventIds()).toEqual([]);
    await takeUp(schedule, '2026-03-02T09:00:00Z');
    expect(await eventIds()).toEqual(['a', 'b']);
  });
});

// proves: pull-days
test('whatever fails meanwhile, events that come within the overlap are there once in the end', async () => {
  const failures = [
    cutOff,
    (_: IncomingMessage, response: ServerResponse) => void response.writeHead(500).end(),
    (_: IncomingMessage, response: ServerResponse) => void response.writeHead(400).end(),
  ];
  const event = fc.record({
    hour: fc.integer({ min: 0, max: 71 }),
    lateHours: fc.integer({ min: 0, max: 24 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom<Product>('mixpanel', 'posthog'),
      fc.array(event, { minLength: 1, maxLength: 8 }),
      fc.array(fc.constantFrom(...failures, null), { maxLength: 6 }),
      async (product, events, faults) => {
        environmentId = await newEnvironment(context);
        server.events.splice(0);
        for (const [index, { hour, lateHours }] of events.entries()) {
          const time = (hours: number) => new Date(Date.UTC(2026, 2, 1, hours)).toISOString();
          add(`e${index}`, time(hour), { receivedAt: time(hour + lateHours) });
        }
        const schedule = pull(product, { overlap_days: 2 });
        const left = [...faults];
        for (const day of ['02', '03', '04', '05', '06', '07']) {
          const fault = left.shift() ?? null;
          if (fault !== null) server.instead.push(fault);
          await ask(schedule, `2026-03-${day}T00:00:00Z`);
          await doNext(at(`2026-03-${day}T09:00:00Z`));
          await takeUp(schedule, `2026-03-${day}T09:00:00Z`);
        }
        expect(await eventIds()).toEqual(events.map((_, index) => `e${index}`).sort());
      },
    ),
    { numRuns: runs(6) },
  );
});
