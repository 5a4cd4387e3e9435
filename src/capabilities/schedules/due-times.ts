import { Cron } from 'croner';

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

/** Returns the instants after `after` at which a schedule is due, at most `limit` of them. */
export function nextDueTimes(cron: string, timeZone: string, after: number, limit: number): number[] {
  const pattern = parse(cron, timeZone);
  const found: number[] = [];
  let last = after;
  while (found.length < limit) {
    const due = pattern.nextRun(new Date(last));
    if (due === null) break;
    last = due.getTime();
    found.push(last);
  }
  return found;
}

export const relativeRanges = [
  'today',
  'yesterday',
  'last_7_days',
  'this_month',
  'last_month',
  'since_last_success',
] as const;

type CalendarRange = Exclude<(typeof relativeRanges)[number], 'since_last_success'>;

/** ISO 8601 instants; `from` included, `to` excluded. */
export interface ExportRange {
  readonly from: string;
  readonly to: string;
}

/** Returns what a range of days or months means for a run that was due at `dueAt`, whenever it is done. */
export function resolveRange(range: CalendarRange, timeZone: string, dueAt: Date): ExportRange {
  const to = dueAt.toISOString();
  /** The beginning of the day or month of the due time, or of one before it. */
  const start = (cron: string, before: number): string =>
    (lastRuns(cron, timeZone, dueAt.getTime(), before + 1).at(-1) ?? dueAt).toISOString();
  const day = (before: number) => start('0 0 * * *', before);
  const month = (before: number) => start('0 0 1 * *', before);
  const ranges: Readonly<Record<typeof range, readonly [from: string, to: string]>> = {
    today: [day(0), to],
    yesterday: [day(1), day(0)],
    last_7_days: [day(7), day(0)],
    this_month: [month(0), to],
    last_month: [month(1), month(0)],
  };
  const [from, end] = ranges[range];
  return { from, to: end };
}

/** The last instants up to `until` at which a schedule is due, latest first. */
function lastRuns(cron: string, timeZone: string, until: number, count: number): Date[] {
  // The library counts whole seconds, and searches strictly before.
  return parse(cron, timeZone).previousRuns(count, new Date((Math.floor(until / secondMs) + 1) * secondMs));
}
