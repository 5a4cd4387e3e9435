import type { relativeRanges } from './schedule.ts';

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

/** How far the clocks of a zone are ahead of UTC, in milliseconds. */
function offsetAt(timeZone: string, ms: number): number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  const name = format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign, hours, minutes = '0', seconds = '0'] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? [];
  if (hours === undefined) return 0;
  const size = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
  return sign === '-' ? -size : size;
}
