import { Cron } from 'croner';

const secondMs = 1_000;
const names = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly']);

function parse(cron: string, timeZone: string): Cron {
  return new Cron(cron, {
    timezone: timeZone,
    mode: '5-part',
    // Allows `5/10`, which means the minutes 5, 15, 25 and so on.
    sloppyRanges: true,
    // Treats `0 1,2 * * *` as fixed times, like `0 2 * * *`, when clocks change.
    fixedTimeRule: 'no-wildcard',
  });
}

export function cronProblem(text: string): string | null {
  const fields = text.trim().split(/\s+/);
  if (!names.has(text) && fields.length !== 5) {
    return 'must have five fields: minute, hour, day of the month, month, day of the week';
  }
  // The library replaces `?` with the current time, which differs between processes.
  if (text.includes('?')) return 'must not hold ?';
  try {
    return parse(text, 'UTC').nextRun() === null ? 'is no cron expression: there is no such day' : null;
  } catch (error) {
    return `is no cron expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Returns the last `limit` times in (`after`, `until`], oldest first. */
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
  const instants: number[] = [];
  // The library supports only whole seconds, and excludes the start of the search.
  let before = (Math.floor(until / secondMs) + 1) * secondMs;
  while (instants.length < limit) {
    const [due] = pattern.previousRuns(1, new Date(before));
    if (due === undefined || due.getTime() <= after) break;
    before = due.getTime();
    instants.push(before);
  }
  return instants.reverse();
}

export function nextDueTimes(cron: string, timeZone: string, after: number, limit: number): number[] {
  const pattern = parse(cron, timeZone);
  const instants: number[] = [];
  let last = after;
  while (instants.length < limit) {
    const due = pattern.nextRun(new Date(last));
    if (due === null) break;
    last = due.getTime();
    instants.push(last);
  }
  return instants;
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

/** ISO 8601 instants. `to` is excluded. */
export interface ExportRange {
  readonly from: string;
  readonly to: string;
}

export function resolveRange(range: CalendarRange, timeZone: string, dueAt: Date): ExportRange {
  const to = dueAt.toISOString();
  /** Start of a day or month, `before` days or months before the due time. */
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

function lastRuns(cron: string, timeZone: string, until: number, count: number): Date[] {
  return parse(cron, timeZone).previousRuns(count, new Date((Math.floor(until / secondMs) + 1) * secondMs));
}
