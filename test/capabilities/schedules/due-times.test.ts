import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cronProblem,
  dueTimes,
  nextDueTimes,
  resolveRange,
} from '../../../src/capabilities/schedules/due-times.ts';

/** Returns the due times after `from`, up to and including `to`, without seconds. */
function due(cron: string, zone: string, from: string, to: string): string[] {
  const times = dueTimes(cron, zone, Date.parse(`${from}Z`), Date.parse(`${to}Z`));
  return times.map((ms) => new Date(ms).toISOString().slice(0, 16));
}

describe('the due times of a cron expression', () => {
  test('due times follow the clocks of the time zone', () => {
    expect(due('0 3 * * *', 'Europe/Berlin', '2026-03-27T12:00', '2026-03-31T12:00')).toEqual([
      '2026-03-28T02:00',
      '2026-03-29T01:00',
      '2026-03-30T01:00',
      '2026-03-31T01:00',
    ]);
    expect(due('30 9 * * 1-5', 'Asia/Kolkata', '2026-11-20T00:00', '2026-11-24T00:00')).toEqual([
      '2026-11-20T04:00',
      '2026-11-23T04:00',
    ]);
  });

  test('a fixed time that a clock change omits is due once, right after the change', () => {
    expect(due('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00', '2026-03-30T12:00')).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ]);
    expect(due('0,30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00', '2026-03-29T12:00')).toEqual([
      '2026-03-29T01:00',
    ]);
    // In this zone, the clock change skips midnight.
    expect(due('0 0 * * *', 'America/Havana', '2026-03-07T12:00', '2026-03-09T12:00')).toEqual([
      '2026-03-08T05:00',
      '2026-03-09T04:00',
    ]);
  });

  test('a fixed time that a clock change repeats is due only the first time', () => {
    expect(due('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00', '2026-10-26T12:00')).toEqual([
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ]);
    expect(due('0 0,1,2,3 * * *', 'Europe/Berlin', '2026-10-24T20:00', '2026-10-25T12:00')).toEqual([
      '2026-10-24T22:00',
      '2026-10-24T23:00',
      '2026-10-25T00:00',
      '2026-10-25T02:00',
    ]);
  });

  test('due times at intervals continue through a clock change', () => {
    expect(due('30 * * * *', 'Europe/Berlin', '2026-03-28T23:45', '2026-03-29T02:45')).toEqual([
      '2026-03-29T00:30',
      '2026-03-29T01:30',
      '2026-03-29T02:30',
    ]);
    expect(due('30 * * * *', 'Europe/Berlin', '2026-10-24T23:45', '2026-10-25T02:45')).toEqual([
      '2026-10-25T00:30',
      '2026-10-25T01:30',
      '2026-10-25T02:30',
    ]);
    expect(due('*/20 * * * *', 'Australia/Lord_Howe', '2026-10-03T15:00', '2026-10-03T16:00')).toEqual([
      '2026-10-03T15:10',
      '2026-10-03T15:40',
      '2026-10-03T16:00',
    ]);
  });

  test('small windows together have the due times of the whole period', () => {
    const zone = fc.constantFrom('Europe/Berlin', 'America/Havana', 'Australia/Lord_Howe', 'UTC');
    const cron = fc.constantFrom('*/20 * * * *', '30 2 * * *', '0 0,1,2,3 * * *', '15 */2 * * *');
    const start = fc.constantFrom(
      '2026-03-07',
      '2026-03-28',
      '2026-04-04',
      '2026-10-03',
      '2026-10-24',
      '2026-10-31',
    );
    fc.assert(
      fc.property(
        zone,
        cron,
        start,
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 5, maxLength: 12 }),
        (z, c, s, steps) => {
          const from = Date.parse(`${s}T12:00Z`);
          const cuts = [from];
          for (const step of steps) cuts.push((cuts.at(-1) ?? 0) + step * 60_000);
          const windows = cuts.slice(1).flatMap((to, index) => dueTimes(c, z, cuts[index] ?? 0, to));
          expect(windows).toEqual(dueTimes(c, z, from, cuts.at(-1) ?? 0));
          const [firstDue] = windows;
          if (firstDue !== undefined) expect(nextDueTimes(c, z, from, 1)).toEqual([firstDue]);
          const [end = 0] = cuts.slice(-1);
          expect(nextDueTimes(c, z, from, windows.length + 1).filter((due) => due <= end)).toEqual(windows);
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each(['', '* * * *', '* * * * * *', '60 * * * *', '0 0 30 2 *', 'H 3 * * *', '0 3 ? * *', 'soon'])(
    'the cron expression %j is refused',
    (cron) => expect(cronProblem(cron)).not.toBeNull(),
  );
  test.each(['*/5 * * * *', '0 0 29 2 *', '0 8 * MAR,DEC THU', '@daily', '@hourly', '0 3 L * *'])(
    'the cron expression %j is accepted',
    (cron) => expect(cronProblem(cron)).toBeNull(),
  );
});

describe('the ranges of exports', () => {
  const due = new Date('2026-03-30T01:00:00Z');
  test.each([
    ['today', '2026-03-29T22:00', '2026-03-30T01:00'],
    // The clocks change on this day, so it has 23 hours.
    ['yesterday', '2026-03-28T23:00', '2026-03-29T22:00'],
    ['last_7_days', '2026-03-22T23:00', '2026-03-29T22:00'],
    ['this_month', '2026-02-28T23:00', '2026-03-30T01:00'],
    ['last_month', '2026-01-31T23:00', '2026-02-28T23:00'],
  ] as const)('the range %s depends on the clocks of the time zone', (range, from, to) => {
    const resolved = resolveRange(range, 'Europe/Berlin', due);
    expect([resolved.from.slice(0, 16), resolved.to.slice(0, 16)]).toEqual([from, to]);
  });

  test('a day without midnight starts at its clock change', () => {
    const noon = new Date('2026-03-08T16:00:00Z');
    expect(resolveRange('today', 'America/Havana', noon).from).toBe('2026-03-08T05:00:00.000Z');
  });
});
