/** A moment with the microseconds that a Date does not keep. */
export interface Instant {
  /** As Postgres reads it: `2026-11-20T12:34:56.123456Z`. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly ms: number;
}

const shape =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?$/;
const minuteMs = 60_000;

/**
 * Reads an ISO 8601 date or instant; null if it is none. Without a zone it is UTC, as everything here; of a fraction of
 * a second six digits count.
 */
export function readInstant(text: string): Instant | null {
  const match = shape.exec(text);
  if (match === null) return null;
  const part = (at: number): number => Number(match[at] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(part) as [
    ...[number, number, number],
    ...[number, number, number],
  ];
  const [offsetHours, offsetMinutes] = [part(9), part(10)];
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 15 || offsetMinutes > 59) return null;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  // 30 February would have become 2 March.
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

/** As text with six digits of a second, of so many microseconds since 1970. */
export function instantOfMicros(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  return `${whole}.${String(micros - seconds * 1_000_000).padStart(6, '0')}Z`;
}

/** One end of a range of time as it was written: where it begins, and where it ends. The two differ where it is a whole day. */
export interface RangeEnd {
  readonly start: string;
  readonly after: string;
  readonly isDay: boolean;
}

const dayMs = 24 * 60 * 60 * 1000;
/** What Postgres and ISO 8601 both have; people write the last day of it for "for ever". */
const lastInstant = '9999-12-31T23:59:59.999999Z';

/** A day of UTC, or an instant; null for what is neither. All its texts are of one form and length, and sort as the instants do. */
export function readRangeEnd(text: string | undefined): RangeEnd | null {
  const instant = text === undefined ? null : readInstant(text);
  // There is no year 0 in Postgres.
  if (text === undefined || instant === null || instant.text.startsWith('0000')) return null;
  const isDay = text.length === 'YYYY-MM-DD'.length;
  return { start: instant.text, after: isDay ? nextDay(instant.ms) : instant.text, isDay };
}

function nextDay(ms: number): string {
  const next = new Date(ms + dayMs).toISOString();
  return next.startsWith('+') ? lastInstant : next.replace('Z', '000Z');
}

const epochShape = /^(\d{9,14})(?:\.(\d{1,9}))?$/;
/** As seconds they would lie in the year 5138 or later, as milliseconds before 1974. */
const firstMilliseconds = 1e11;

/**
 * Reads seconds or milliseconds since 1970, written as digits; null if they are none. Which of them it is, is no guess:
 * of the years 1974 to 5138 the two have no number in common.
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
