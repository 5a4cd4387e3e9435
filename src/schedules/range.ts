import type { relativeRanges } from './schedule.ts';
import { startOfDay } from './zoned-time.ts';

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
