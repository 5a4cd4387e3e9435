import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS } from '../../../src/base/limits.ts';
import {
  openRecordSite,
  type ProblemText,
  type RecordSite,
  type StoredEvent,
} from '../../support/servers/records.ts';
import type { Tenant } from '../../support/servers/system.ts';

const path = '/v1/track';
let site: RecordSite;
let other: Tenant;
beforeAll(async () => {
  site = await openRecordSite();
  other = await site.t.addEnvironment('other');
});
afterAll(() => site?.close());

const track = (record: unknown) => site.accept(path, record);
const refuse = (record: unknown, ...problems: readonly ProblemText[]) =>
  site.refuse(path, record, ...problems);
const onlyEvent = async (userId: string): Promise<StoredEvent> => {
  const [event, ...more] = await site.events(userId);
  if (event === undefined || more.length > 0) throw new Error(`${userId} has not one event`);
  return event;
};
const clock = async () => {
  const [row] = await site.sql<{ now: string }>(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
  );
  return row?.now ?? '';
};
const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('an event', () => {
  test('an event is stored with its fields, a generated id and the time of its arrival', async () => {
    const before = await clock();
    await track({ user_id: 'plain', event_name: 'report exported', metadata: { format: 'csv', rows: 12 } });
    const after = await clock();
    const event = await onlyEvent('plain');
    expect(event).toEqual({
      event_id: expect.stringMatching(uuidv7),
      event_type: 'track',
      event_name: 'report exported',
      user_id: 'plain',
      company_id: null,
      source: 'backend-http',
      inserted_at: event.inserted_at,
      metadata: { format: 'csv', rows: 12 },
      exact: expect.any(String),
      partition: `sluice.events_${before.slice(0, 7).replace('-', '_')}`.replace('sluice.', ''),
    });
    expect([before, event.inserted_at, after].toSorted()).toEqual([before, event.inserted_at, after]);
  });

  test('an event leaves users and companies unchanged', async () => {
    await site.accept('/v1/identify', { user_id: 'known', company: { company_id: 'known', size: 1 } });
    const before = [await site.countRows(), await site.user('known'), await site.company('known')] as const;
    await track({ user_id: 'known', event_name: 'x', metadata: { a: 1 } });
    await track({ user_id: 'nobody', event_name: 'x', company_id: 'no-company' });
    const after = [await site.countRows(), await site.user('known'), await site.company('known')] as const;
    expect(after).toEqual([{ ...before[0], events: before[0].events + 2 }, before[1], before[2]]);
  });

  test('metadata of an event may have any JSON, and keys beside the documented ones are added to it', async () => {
    const metadata = { n: null, list: [1, [null], { a: {} }], deep: { a: { b: [true] } }, text: '\u2028 ' };
    await track({ user_id: 'any', event_name: 'x', page: '/home', list: 'loses', count: 3, metadata });
    expect((await onlyEvent('any')).metadata).toEqual({ page: '/home', count: 3, ...metadata });
  });

  test('a wrong event is refused with every fault', async () => {
    await refuse(
      {
        event_name: ['x'],
        event_id: [7],
        inserted_at: 'yesterday',
        company_id: {},
        metadata: 'x',
        prototype: 1,
      },
      ['missing_field', 'user_id'],
      ['invalid_field', 'event_name: expected a string, got array'],
      ['invalid_field', 'event_id: expected a string or a whole number, got array'],
      ['invalid_date', 'inserted_at'],
      ['invalid_field', 'company_id: expected a string or a whole number, got object'],
      ['invalid_field', 'metadata: expected an object, got string'],
      ['invalid_metadata_value', 'prototype'],
    );
  });
});

describe('the company of an event', () => {
  const companyOf = async (userId: string) => (await site.events(userId)).map(({ company_id }) => company_id);

  test('the company of an event is the company of its user at that moment', async () => {
    for (const company_id of ['first', 'second', null]) {
      await site.accept('/v1/identify', { user_id: 'member', company_id });
      await track({ user_id: 'member', event_name: 'x' });
      await track({ user_id: 'member', event_name: 'x', event_id: `member ${company_id}`, company_id: null });
    }
    expect(await companyOf('member')).toEqual(['first', 'first', 'second', 'second', null, null]);
  });

  test('an event of a user that its environment does not know has no company', async () => {
    await site.accept('/v1/identify', { user_id: 'theirs', company_id: 'theirs' }, { key: other.key });
    await track({ user_id: 'theirs', event_name: 'x' });
    await track({ user_id: 'theirs', event_name: 'x', event_id: 'theirs' });
    expect(await companyOf('theirs')).toEqual([null, null]);
  });

  test('an event may name its company by an object, whose other keys are properties of the event', async () => {
    const event = { user_id: 'by-object', event_name: 'x' };
    await track({ ...event, company: { id: 7 }, timestamp: '2026-02-01' });
    await track({ ...event, company: { company_id: 'acme', size: 3 }, timestamp: '2026-02-02' });
    await track({
      ...event,
      company: { company_id: 'acme', id: 'acme' },
      company_id: 'acme',
      timestamp: '2026-02-03',
    });
    await track({ ...event, company: { name: 'Acme' }, timestamp: '2026-02-04' });
    await track({ ...event, company: 'Acme', company_id: 8, timestamp: '2026-02-05' });
    for (const [i, company] of [{}, [], null].entries())
      await track({ ...event, company, timestamp: `2026-02-0${6 + i}` });
    expect(
      (await site.events('by-object')).map(({ company_id, metadata }) => [company_id, metadata]),
    ).toEqual([
      ['7', {}],
      ['acme', { company: { size: 3 } }],
      ['acme', {}],
      [null, { company: { name: 'Acme' } }],
      ['8', { company: 'Acme' }],
      [null, {}],
      [null, {}],
      [null, {}],
    ]);
    await refuse({ ...event, company: { id: 'a' }, company_id: 'b' }, [
      'invalid_field',
      'company.id and company_id',
    ]);
  });
});

describe('an id of the caller', () => {
  // proves: event-id
  test.each(['event_id', 'insert_id'])(
    'an event id in %s is kept, and the user has one event with it',
    async (name) => {
      const user = `once by ${name}`;
      const id = `${name} ' ü`;
      await track({ user_id: user, event_name: 'first', [name]: id });
      await track({ user_id: user, event_name: 'second', [name]: id });
      await track({ user_id: `${user} too`, event_name: 'third', [name]: id });
      expect(await onlyEvent(user)).toMatchObject({ event_id: id, event_name: 'first' });
      expect(await onlyEvent(`${user} too`)).toMatchObject({ event_id: id, event_name: 'third' });
      await site.accept(path, { user_id: user, event_name: 'fourth', [name]: id }, { key: other.key });
      const elsewhere = await site.events(user, other.environment.environmentId);
      expect(elsewhere).toMatchObject([{ event_id: id, event_name: 'fourth' }]);
    },
  );

  test('an event id is the same in event_id and insert_id', async () => {
    await track({ user_id: 'either', event_name: '1', event_id: 'either' });
    await track({ user_id: 'either', event_name: '2', insert_id: 'either' });
    await track({ user_id: 'either', event_name: '3', insert_id: 'either', event_id: 'either' });
    await track({ user_id: 'either', event_name: '4', insert_id: 'either', event_id: null });
    await track('{"user_id":12345678901234567890,"event_name":"5","insert_id":12345678901234567890}');
    expect(await onlyEvent('12345678901234567890')).toMatchObject({ event_id: '12345678901234567890' });
    expect(await onlyEvent('either')).toMatchObject({ event_name: '1', event_id: 'either' });
    await refuse({ user_id: 'u', event_name: 'x', insert_id: 'a', event_id: 'b' }, [
      'invalid_field',
      'event_id and insert_id',
    ]);
  });

  test('thirty events at once with three ids are stored three times, in one statement and from two processes', async () => {
    const records = Array.from(
      { length: 15 },
      (_, i) =>
        [path, { user_id: 'two-bursts', event_name: `n${i}`, event_id: `two-bursts ${i % 3}` }] as const,
    );
    await site.onAnotherProcess(async (process) => {
      const statuses = await Promise.all([site.pipeline(records), process.pipeline(records)]);
      expect(statuses.flat()).toEqual(Array.from({ length: 30 }, () => 202));
    });
    expect((await site.events('two-bursts')).map(({ event_id }) => event_id).toSorted()).toEqual([
      'two-bursts 0',
      'two-bursts 1',
      'two-bursts 2',
    ]);
  });

  test('an event id is unique over all months, and the first event keeps its time', async () => {
    const event = { user_id: 'months', event_name: 'x', event_id: 'months' };
    await track({ ...event, timestamp: '2021-05-01T00:00:00Z' });
    await track({ ...event, timestamp: '2021-06-01T00:00:00Z' });
    await track(event);
    expect(await onlyEvent('months')).toMatchObject({ inserted_at: '2021-05-01T00:00:00.000000Z' });
  });
});

describe('the time of an event', () => {
  test.each([
    ['2026-02-03T04:05:06.123456Z', '2026-02-03T04:05:06.123456Z'],
    ['2026-02-03T04:05:06.123456789Z', '2026-02-03T04:05:06.123456Z'],
    ['2026-02-03', '2026-02-03T00:00:00.000000Z'],
    ['2024-02-29T23:59:59.999999-00:30', '2024-03-01T00:29:59.999999Z'],
    [1_770_091_506, '2026-02-03T04:05:06.000000Z'],
    ['1770091506123.456', '2026-02-03T04:05:06.123456Z'],
  ])(
    'the time %s is stored to the microsecond, in the partition of its month, from either field',
    async (value, time) => {
      for (const name of ['inserted_at', 'timestamp']) {
        const user = `${name} ${value}`;
        await track({ user_id: user, event_name: 'x', [name]: value });
        await track({ user_id: user, event_name: 'x', [name]: value, event_id: user });
        const [event, again] = await site.events(user);
        expect([event?.inserted_at, again?.inserted_at]).toEqual([time, time]);
        expect(event?.partition).toBe(`events_${time.slice(0, 7).replace('-', '_')}`);
      }
    },
  );

  test.each(['now', '', '2026-02-30', '2026-02-03T04:05:06Z; drop', 20_260_203, {}, true])(
    'an event at the time %j is refused',
    async (value) => {
      for (const name of ['inserted_at', 'timestamp'])
        await refuse({ user_id: 'u', event_name: 'x', [name]: value }, ['invalid_date', name]);
    },
  );

  test('both times of an event may be sent if they agree, and null is now', async () => {
    const event = { user_id: 'both', event_name: 'x' };
    const time = '2026-02-03T04:05:06Z';
    await track({ ...event, inserted_at: time, timestamp: time });
    await refuse({ ...event, inserted_at: time, timestamp: '2026-02-03' }, [
      'invalid_field',
      'inserted_at and timestamp',
    ]);
    const before = await clock();
    await track({ ...event, inserted_at: null, timestamp: null });
    const [first, second] = await site.events('both');
    expect(first?.inserted_at).toBe('2026-02-03T04:05:06.000000Z');
    expect((second?.inserted_at ?? '') > before).toBe(true);
  });

  test('the time of an event is between the year 2000 and a day from now', async () => {
    const at = (ms: number) => ({ user_id: 'edges', event_name: 'x', timestamp: new Date(ms).toISOString() });
    await refuse(at(EARLIEST_EVENT - 1), ['invalid_date', 'timestamp']);
    await refuse({ ...at(0), timestamp: '2000-01-01T00:30:00+01:00' }, ['invalid_date', 'timestamp']);
    await refuse({ ...at(0), timestamp: '0001-01-01' }, ['invalid_date', 'timestamp']);
    await refuse({ ...at(0), timestamp: '9999-12-31T23:59:59Z' }, ['invalid_date', 'timestamp']);
    await refuse(at(Date.now() + MAX_EVENT_AHEAD_MS + 60_000), ['invalid_date', 'timestamp']);
    expect(await site.events('edges')).toEqual([]);
    await track(at(EARLIEST_EVENT));
    await track(at(Date.now() + MAX_EVENT_AHEAD_MS - 60_000));
    expect(await site.events('edges')).toHaveLength(2);
  });
});

describe('partitions', () => {
  const partitions = async () => {
    const rows = await site.sql<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'sluice.events'::regclass`,
    );
    return rows.map(({ name }) => name);
  };
  const partitionOf = (date: Date) => `events_${date.toISOString().slice(0, 7).replace('-', '_')}`;

  test('partitions of many months are created at once by two processes at the same time', async () => {
    const months = Array.from({ length: 18 }, (_, i) => new Date(Date.UTC(2004, i, 15)));
    const before = await partitions();
    expect(before).not.toEqual(expect.arrayContaining([partitionOf(months[0] as Date)]));
    await site.onAnotherProcess(async (process) => {
      await Promise.all(
        [site, process].flatMap((each, p) =>
          months.map((month, i) =>
            each.accept(path, {
              user_id: 'backfill',
              event_name: 'x',
              timestamp: month.toISOString(),
              ...(i % 2 === 0 ? {} : { event_id: `backfill ${p} ${i}` }),
            }),
          ),
        ),
      );
    });
    const events = await site.events('backfill');
    expect(events.map(({ partition }) => partition)).toEqual(
      months.flatMap((m) => [partitionOf(m), partitionOf(m)]),
    );
    expect((await partitions()).length).toBe(before.length + months.length);
  });

  test('a removed partition is created again, and the first caller needs at most one retry', async () => {
    const event = { user_id: 'removed', event_name: 'x', timestamp: '2001-07-15', event_id: 'removed 1' };
    await track(event);
    await site.sql('drop table sluice.events_2001_07');
    const retried = async (record: object) => {
      const first = await site.post(path, record);
      if (first.status === 503) {
        expect(Number(first.headers.get('retry-after'))).toBeGreaterThan(0);
        await track(record);
      } else expect(first.status).toBe(202);
    };
    await retried({ ...event, event_id: 'removed 2' });
    expect(await onlyEvent('removed')).toMatchObject({ event_id: 'removed 2', partition: 'events_2001_07' });
    await site.sql('drop table sluice.events_2001_07');
    await retried({ ...event, event_id: undefined });
    await onlyEvent('removed');
  });
});
