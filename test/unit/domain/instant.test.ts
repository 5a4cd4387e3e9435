import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dayText, instantText, readEpoch, readInstant, timeOfDayText } from '../../../src/base/instant.ts';

const instants = fc.date({ min: new Date('1000-01-01'), max: new Date('9999-12-30'), noInvalidDate: true });

test('an instant keeps its microseconds in every time zone', () => {
  fc.assert(
    fc.property(
      instants,
      fc.integer({ min: 0, max: 999 }),
      fc.integer({ min: -14 * 60, max: 14 * 60 }),
      (date, micros, offset) => {
        const utc = `${date.toISOString().slice(0, 23)}${String(micros).padStart(3, '0')}Z`;
        expect(readInstant(utc)).toEqual({ text: utc, ms: date.getTime() });
        const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, 23);
        const sign = offset < 0 ? '-' : '+';
        const hours = Math.floor(Math.abs(offset) / 60);
        const minutes = Math.abs(offset) % 60;
        const zone = `${sign}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`;
        const zoned = `${local}${String(micros).padStart(3, '0')}${zone}`;
        expect(readInstant(zoned)).toEqual({ text: utc, ms: date.getTime() });
      },
    ),
  );
});

test('days, instants and times of day agree with Date, and with bigint beyond 2^53', () => {
  const dates = fc.date({ noInvalidDate: true });
  fc.assert(
    fc.property(dates, fc.integer({ min: 0, max: 999_999 }), (date, below) => {
      const iso = date
        .toISOString()
        .replace(/^\+0*/, '')
        .replace(/^-0*(?=\d{4})/, '-');
      const ms = date.getTime();
      const [day, time] = iso.split('T') as [string, string];
      expect(dayText(Math.floor(ms / 86_400_000))).toBe(day);
      expect(instantText(ms, 1_000)).toBe(iso.replace('Z', '000Z'));
      const fraction = String(below).padStart(6, '0');
      const digits = below % 1_000 === 0 ? fraction.slice(0, 3) : fraction;
      expect(instantText(BigInt(ms) * 1_000_000n + BigInt(below), 1_000_000_000)).toBe(
        iso.replace('Z', `${digits}Z`),
      );
      const sinceMidnight = ((ms % 86_400_000) + 86_400_000) % 86_400_000;
      expect(timeOfDayText(sinceMidnight, 1_000)).toBe(time.replace(/\.?0*Z$/, ''));
    }),
  );
});

test.each([
  ['2026-11-20', '2026-11-20T00:00:00.000000Z'],
  ['2026-11-20T12:34', '2026-11-20T12:34:00.000000Z'],
  ['2026-11-20 12:34:56', '2026-11-20T12:34:56.000000Z'],
  ['2026-11-20T12:34:56.1234567Z', '2026-11-20T12:34:56.123456Z'],
  ['2026-11-20T12:34:56,5+0130', '2026-11-20T11:04:56.500000Z'],
  ['2024-02-29T23:59:59-00:30', '2024-03-01T00:29:59.000000Z'],
])('the instant %s is read as %s', (utcText, text) => {
  expect(readInstant(utcText)?.text).toBe(text);
});

test.each([
  '',
  'now',
  '1763642096',
  '20261120',
  '2026-13-01',
  '2026-02-29',
  '2026-11-31',
  '2026-11-20T24:00:00Z',
  '2026-11-20T12:60:00Z',
  '2026-11-20T12:34:56.Z',
  '2026-11-20T12:34:56 Europe/Berlin',
  "2026-11-20T12:34:56Z'; drop table users; --",
  '٢٠٢٦-11-20',
])('%j is refused as an instant', (text) => {
  expect(readInstant(text)).toBeNull();
});

test('epoch seconds and milliseconds from 1974 on are distinguished to the microsecond', () => {
  const since1974 = fc.date({
    min: new Date('1974-01-01'),
    max: new Date('5138-01-01'),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(since1974, fc.integer({ min: 0, max: 999 }), (date, micros) => {
      const below = String(micros).padStart(3, '0');
      const instant = { text: `${date.toISOString().slice(0, 23)}${below}Z`, ms: date.getTime() };
      const ms = String(date.getTime());
      expect(readEpoch(`${ms}.${below}`)).toEqual(instant);
      expect(readEpoch(`${ms.slice(0, -3)}.${ms.slice(-3)}${below}`)).toEqual(instant);
    }),
  );
  expect(readEpoch('1770091506')?.text).toBe('2026-02-03T04:05:06.000000Z');
  for (const text of ['', '7', '20260203', '-1770091506', '1e12', '177009150612345', '1770091506.'])
    expect(readEpoch(text)).toBeNull();
});
