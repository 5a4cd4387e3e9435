import { Cron } from 'croner';

const secondMs = 1_000;
const names = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly']);

function parse(cron: string, timeZone: string): Cron {
  return new Cron(cron, {
    timezone: timeZone,
    mode: '5-part',
    // `5/10` is minute 5, 15, 25 and so on.
    sloppyRanges: true,
    // Where the clocks are changed, `0 1,2 * * *` is as much a fixed time as `0 2 * * *`.
    fixedTimeRule: 'no-wildcard',
  });
}

/** What is wrong with a cron expression, or null. */
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

/** The next instant after `after` at which a schedule is due; null if there is none in the years to come. */
export function nextDueTime(cron: string, timeZone: string, after: number): number | null {
  return parse(cron, timeZone).nextRun(new Date(after))?.getTime() ?? null;
}

/** Whether this is a time zone, such as `Europe/Berlin`. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
