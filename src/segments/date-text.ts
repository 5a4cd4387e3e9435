import { isIsoDate } from '../domain/iso-date.ts';
import { MAX_COMPARED_CHARS } from '../domain/limits.ts';

const zone = /(?:Z|[+-](?:0[0-9]|1[0-5]):[0-9]{2})$/;
const otherZone = /[+-][0-9]{2}:[0-9]{2}$/;
const beyondMicroseconds = /(\.[0-9]{6})[0-9]+/;

/**
 * Whether a text is a date to a segment: what the lookups call one, but for what Postgres cannot read as an instant, the
 * year 0000 and zones of 16 hours and more. `compile-text.ts` says the same in SQL.
 */
export function isDateText(text: string): boolean {
  return (
    text.length <= MAX_COMPARED_CHARS &&
    isIsoDate(text) &&
    !text.startsWith('0000') &&
    (zone.test(text) || !otherZone.test(text))
  );
}

/** A date without a time. */
export function isDay(date: string): boolean {
  return date.length === 'YYYY-MM-DD'.length;
}

/** The instant a date stands for, in a form whose meaning depends on no setting of the session. */
export function instantText(date: string): string {
  const instant = date.replace(beyondMicroseconds, '$1');
  return zone.test(instant) ? instant : `${instant}Z`;
}
