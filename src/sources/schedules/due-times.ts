import { Cron } from 'croner';
import type { relativeRanges } from './schedule.ts';

const secondMs = 1_000;
const names = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly']);

function parse(cron: string, timeZone: string): Cron {
  return new Cron(cron, {
    timezone: timeZone,
    mode: '5-part',
    // `5/10` is minute 5, 15, 25 and so on.
    sloppyRanges: true,
    // When clocks change, `0 1,2 * * *` is as much a fixed time as `0 2 * * *`.
    fixedTimeRule: 'no-wildcard',
  });
}

/** Returns the fault of a cron expression, or null. */
export function cronProblem(text: string): string | null {
  const fields = text.trim().split(/\s+/);
  if (!names.has(text) && fields.length !== 5) {
    return 'must have five fields: minute, hour, day of the month, month, day of the week';
  }
  // The library reads `?` as the moment at which it looks: another one in every process.
  if (text.includes('?')) return 'must not hold ?';
  try {
    return parse(text, 'UTC').nextRun() === null ? 'is no cron expression: there is no such day' : null;
  } catch (error) {
    return `is no cron expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * The instants in (`after`, `until`] at which a schedule is due, in order; of more than `limit` the last. Searched
 * backwards, so that many years cost no more than `limit` steps.
 */
export function dueTimes(
  cron: string,
  timeZone: string,
  after: number,
  until: number,
  limit = 1_000,
): number[] {
  const pattern = parse(cron, timeZone);
  const first = pattern.nextRun(new Date(after));
  if (first === null || first.getTime() > until) return [];
  const found: number[] = [];
  // The library counts whole seconds, and searches strictly before.
  let before = (Math.floor(until / secondMs) + 1) * secondMs;
  while (found.length < limit) {
    const [due] = pattern.previousRuns(1, new Date(before));
    if (due === undefined || due.getTime() <= after) break;
    before = due.getTime();
    found.push(before);
  }
  return found.reverse();
}

/** The first instants after `after` and up to `until` at which a schedule is due, `limit` at most. */
export function nextDueTimes(
  cron: string,
  timeZone: string,
  after: number,
  until: number,
  limit: number,
): number[] {
  const next = parse(cron, timeZone).nextRuns(limit, new Date(after));
  return next.map((due) => due.getTime()).filter((due) => due <= until);
}

/** The next instant after `after` at which a schedule is due; null if there is none in the years to come. */
export function nextDueTime(cron: string, timeZone: string, after: number): number | null {
  return parse(cron, timeZone).nextRun(new Date(after))?.getTime() ?? null;
}

const dayMs = 24 * 60 * 60 * 1_000;

/** ISO 8601 instants; `from` included, `to` excluded. Null `from`: the beginning. */
export interface ExportRange {
  readonly from: string | null;
  readonly to: string;
}

/**
 * What a relative range means for a run that was due at `dueAt`, whenever it is done. `exportedUntil`: where the last
 * successful run ended, null if there was none.
 */
export function resolveRange(
  range: (typeof relativeRanges)[number],
  timeZone: string,
  dueAt: Date,
  exportedUntil: string | null,
): ExportRange {
  const due = dueAt.getTime();
  const day = (move: { days?: number; months?: number }): string =>
    new Date(startOfDay(timeZone, due, move)).toISOString();
  switch (range) {
    case 'today':
      return { from: day({}), to: dueAt.toISOString() };
    case 'yesterday':
      return { from: day({ days: -1 }), to: day({}) };
    case 'last_7_days':
      return { from: day({ days: -7 }), to: day({}) };
    case 'this_month':
      return { from: day({ months: 0 }), to: dueAt.toISOString() };
    case 'last_month':
      return { from: day({ months: -1 }), to: day({ months: 0 }) };
    case 'since_last_success':
      return { from: exportedUntil, to: dueAt.toISOString() };
  }
}

/** The first instant of a day: the day that `ms` is in, moved by `days`; or the first of its month, moved by `months`. */
function startOfDay(
  timeZone: string,
  ms: number,
  { days = 0, months }: { readonly days?: number; readonly months?: number },
): number {
  const now = new Date(ms + offsetAt(timeZone, ms));
  const day = months === undefined ? now.getUTCDate() + days : 1;
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + (months ?? 0), day);
  const [before, after] = [offsetAt(timeZone, midnight - dayMs), offsetAt(timeZone, midnight + dayMs)];
  const early = midnight - Math.max(before, after);
  if (offsetAt(timeZone, early) === midnight - early) return early;
  // Midnight is left out: the day begins when the clocks are changed. Otherwise the offset is the other one.
  const late = midnight - Math.min(before, after);
  return offsetAt(timeZone, late) === midnight - late ? late : findChange(timeZone, early, late);
}

/** The first instant in (`low`, `high`] that has another offset than `low`. Found to the millisecond. */
function findChange(timeZone: string, low: number, high: number): number {
  const before = offsetAt(timeZone, low);
  let [unchanged, changed] = [low, high];
  while (changed - unchanged > 1) {
    const middle = Math.floor((unchanged + changed) / 2);
    if (offsetAt(timeZone, middle) === before) unchanged = middle;
    else changed = middle;
  }
  return changed;
}

/** Returns how far the clocks of a zone are ahead of UTC, in milliseconds. */
function offsetAt(timeZone: string, ms: number): number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign, hours, minutes = '0', seconds = '0'] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? [];
  if (hours === undefined) return 0;
  const size = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
  return sign === '-' ? -size : size;
}
