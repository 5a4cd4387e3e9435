/** A moment in microseconds. A Date has only milliseconds. */
export interface Instant {
  /** ISO 8601 with microseconds: `2026-11-20T12:34:56.123456Z`. */
  readonly text: string;
  readonly ms: number;
}

const shape =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?$/;
const minuteMs = 60_000;

/**
 * Reads an ISO 8601 date or time, to the microsecond. A time without a zone is in UTC. Returns
 * `null` for other text.
 */
export function readInstant(text: string): Instant | null {
  const match = shape.exec(text);
  if (match === null) return null;
  const part = (at: number): number => Number(match[at] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(part) as [
    ...[number, number, number],
    ...[number, number, number],
  ];
  const offsetHours = part(9);
  const offsetMinutes = part(10);
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 15 || offsetMinutes > 59) return null;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  // Refuses days such as 30 February, which Date turns into a day in March.
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return null;
  local.setUTCHours(hour, minute, second);
  const east = (offsetHours * 60 + offsetMinutes) * (match[8] === '-' ? -1 : 1);
  const seconds = new Date(local.getTime() - east * minuteMs);
  const micros = (match[7] ?? '').slice(0, 6).padEnd(6, '0');
  if (seconds.getUTCFullYear() < 0 || seconds.getUTCFullYear() > 9999) return null;
  return {
    text: `${seconds.toISOString().slice(0, 19)}.${micros}Z`,
    ms: seconds.getTime() + Number(micros.slice(0, 3)),
  };
}

const DAY_SECONDS = 24 * 60 * 60;
type PerSecond = 1_000 | 1_000_000 | 1_000_000_000;

export function instantOfMicros(micros: number | bigint): string {
  return instantText(micros, 1_000_000);
}

/** Formats an instant with six fractional digits, or with nine if they are needed. */
export function instantText(since1970: number | bigint, perSecond: PerSecond): string {
  const [seconds, rest] = divide(since1970, perSecond);
  const [days, second] = divide(seconds, DAY_SECONDS);
  const fraction = String(rest).padStart(String(perSecond).length - 1, '0');
  const digits = fraction.length === 9 && fraction.endsWith('000') ? fraction.slice(0, 6) : fraction;
  return `${dayText(Number(days))}T${clockText(second)}.${digits.padEnd(6, '0')}Z`;
}

/**
 * Formats a time of day, such as `13:45:07.5`. `null` if the time is negative or longer than a day.
 */
export function timeOfDayText(sinceMidnight: number | bigint, perSecond: PerSecond): string | null {
  const [seconds, rest] = divide(sinceMidnight, perSecond);
  const second = Number(seconds);
  if (second < 0 || second > DAY_SECONDS || (second === DAY_SECONDS && rest > 0)) return null;
  const fraction = String(rest)
    .padStart(String(perSecond).length - 1, '0')
    .replace(/0+$/, '');
  return `${clockText(second)}${fraction === '' ? '' : `.${fraction}`}`;
}

function divide(value: number | bigint, by: number): [quotient: number | bigint, rest: number] {
  const number = Number(value);
  if (Number.isSafeInteger(number)) {
    // `Math.floor(number / by)` is wrong near 2^53, because the quotient is rounded.
    const rest = ((number % by) + by) % by;
    return [(number - rest) / by, rest];
  }
  const exact = BigInt(value);
  const divisor = BigInt(by);
  const rest = ((exact % divisor) + divisor) % divisor;
  return [(exact - rest) / divisor, Number(rest)];
}

/** Formats a second of a day, such as `13:45:07`. The end of the day is `24:00:00`. */
function clockText(second: number): string {
  const two = (number: number) => String(number).padStart(2, '0');
  return `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`;
}

/**
 * Formats a date as in XML Schema: `2024-02-29`. Years after 9999 have more digits without a plus
 * sign, as PostgreSQL reads them. Years before 0 have a minus sign.
 */
export function dayText(days: number): string {
  // A Date cannot represent years after 275760. Therefore, days are counted from 1 March of year 0,
  // in periods of 400 years.
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + 400 * era + (month <= 2 ? 1 : 0);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${year < 0 ? '-' : ''}${String(Math.abs(year)).padStart(4, '0')}-${two(month)}-${two(day)}`;
}

/**
 * One end of a range: an instant or a whole day. For an instant, `after` equals `start`. For a day,
 * `after` is the beginning of the next day.
 */
export interface RangeEnd {
  readonly start: string;
  readonly after: string;
  readonly isDay: boolean;
}

const dayMs = 24 * 60 * 60 * 1000;
/**
 * The last instant that both PostgreSQL and four-digit years of ISO 8601 can express. People write
 * this date to mean "forever".
 */
const lastInstant = '9999-12-31T23:59:59.999999Z';

/**
 * Reads a UTC date or an instant, `null` for other text. All results have the same length, so their
 * alphabetical order is chronological.
 */
export function readRangeEnd(text: string | undefined): RangeEnd | null {
  const instant = text === undefined ? null : readInstant(text);
  // PostgreSQL has no year 0.
  if (text === undefined || instant === null || instant.text.startsWith('0000')) return null;
  const isDay = text.length === 'YYYY-MM-DD'.length;
  return { start: instant.text, after: isDay ? nextDay(instant.ms) : instant.text, isDay };
}

function nextDay(ms: number): string {
  const next = new Date(ms + dayMs).toISOString();
  return next.startsWith('+') ? lastInstant : next.replace('Z', '000Z');
}

const epochShape = /^(\d{9,14})(?:\.(\d{1,9}))?$/;
/**
 * Numbers below this are read as seconds since 1970 (up to the year 5138). Other numbers are read
 * as milliseconds (from 1973).
 */
const firstMilliseconds = 1e11;

/**
 * Reads a number of seconds or milliseconds since 1970. Times from 1974 to 5138 are unambiguous.
 * Returns `null` for other text.
 */
export function readEpoch(text: string): Instant | null {
  const match = epochShape.exec(text);
  if (match === null) return null;
  const [, whole = '', fraction = ''] = match;
  const number = Number(whole);
  const isSeconds = number < firstMilliseconds;
  const micros = fraction.slice(0, isSeconds ? 6 : 3).padEnd(isSeconds ? 6 : 3, '0');
  const seconds = isSeconds ? number : Math.floor(number / 1000);
  const below = isSeconds ? micros : whole.slice(-3) + micros;
  return {
    text: `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${below}Z`,
    ms: seconds * 1000 + Number(below.slice(0, 3)),
  };
}

export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
