import type { Problem } from '../domain/errors.ts';
import { readInstant } from '../domain/instant.ts';

/** `from` included, `to` excluded. */
export interface Range {
  readonly from: string | null;
  readonly to: string;
}

/** One end as it was written: where it begins, and where it ends. The two differ where it is a whole day. */
interface End {
  readonly start: string;
  readonly after: string;
  readonly isDay: boolean;
}

const dayMs = 24 * 60 * 60 * 1000;
/** What Postgres and ISO 8601 both have; people write the last day of it for "for ever". */
const lastInstant = '9999-12-31T23:59:59.999999Z';

/**
 * Reads both ends: a whole day of UTC each, or an instant. Without `to` it ends now. Notes what is wrong with them, and
 * then gives a range that nobody is to use.
 */
export function readRange(from: unknown, to: unknown, now: Date, problems: Problem[]): Range {
  const begin = readEnd(from, 'from', problems);
  const end = readEnd(to, 'to', problems);
  const until = end?.after ?? now.toISOString().replace('Z', '000Z');
  if (begin !== null && isReversed(begin, end, until)) {
    const message = 'from lies after to, or after this moment where there is no to';
    problems.push({ code: 'invalid_range', message, details: 'from' });
  }
  return { from: begin?.start ?? null, to: until };
}

/** Of one form and length, these texts sort as the instants do. */
function isReversed(begin: End, end: End | null, until: string): boolean {
  if (begin.start < until) return false;
  // Two equal instants hold nothing between them, but are in order; a day never equals the end of another.
  return !(end !== null && !end.isDay && begin.start === until);
}

function readEnd(value: unknown, name: string, problems: Problem[]): End | null {
  if (value === undefined || value === null || value === '') return null;
  const instant = typeof value === 'string' ? readInstant(value) : null;
  // There is no year 0 in Postgres.
  if (instant === null || instant.text.startsWith('0000')) {
    const message = `${name} must be a day such as 2026-11-20, or an ISO 8601 instant such as 2026-11-20T12:00:00Z`;
    problems.push({ code: 'invalid_date', message, details: name });
    return null;
  }
  const isDay = typeof value === 'string' && value.length === 'YYYY-MM-DD'.length;
  return { start: instant.text, after: isDay ? nextDay(instant.ms) : instant.text, isDay };
}

function nextDay(ms: number): string {
  const next = new Date(ms + dayMs).toISOString();
  return next.startsWith('+') ? lastInstant : next.replace('Z', '000Z');
}
