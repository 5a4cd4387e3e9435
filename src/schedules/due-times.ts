import { CronExpressionParser } from 'cron-parser';
import { instantsAt, offsetAt } from './zoned-time.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** More than clocks are put forward or back. */
const changeMs = 2 * 60 * 60 * 1000;
/** Times that a search looks at, should the hour that comes twice leave it without any. */
const mostSteps = 1_000;
const names = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@hourly']);

/** What is wrong with a cron expression, or null. */
export function cronProblem(text: string): string | null {
  const fields = text.trim().split(/\s+/);
  if (!names.has(text) && fields.length !== 5) {
    return 'must have five fields: minute, hour, day of the month, month, day of the week';
  }
  // An H is a place that the library picks by chance: another one in every process.
  if (/[Hh?]/.test(text.replace(/thu|march|@hourly/gi, ''))) return 'must not hold H or ?';
  try {
    CronExpressionParser.parse(text, { tz: 'UTC' }).next();
    return null;
  } catch (error) {
    return `is no cron expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * The instants in (`after`, `until`] at which a schedule is due, in order; of a great many the last `limit`. Where the
 * clocks are put forward, what falls into the hour that is left out is due as much later; where they are put back, what
 * falls into the hour that comes twice is due the first time only, unless it is due every hour.
 *
 * The library counts wall times, as if all was UTC; what zones do to them is done here, since by the library a midnight
 * that is left out is left out.
 */
export function dueTimes(
  cron: string,
  timeZone: string,
  after: number,
  until: number,
  limit = 1_000,
): number[] {
  if (until <= after) return [];
  const offsets = [after - dayMs, after, until, until + dayMs].map((ms) => offsetAt(timeZone, ms));
  const [from, to] = [after + Math.min(...offsets), until + Math.max(...offsets)];
  const walls = CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(from) });
  const isHourly = walls.fields.hour.values.length === 24;
  const found = new Set<number>();
  for (let wall = walls.next().getTime(); wall <= to; wall = walls.next().getTime()) {
    for (const instant of dueAt(timeZone, wall, isHourly)) {
      if (instant > after && instant <= until) found.add(instant);
    }
    if (found.size > limit * 2) for (const early of [...found].slice(0, limit)) found.delete(early);
  }
  return [...found].sort((a, b) => a - b).slice(-limit);
}

function dueAt(timeZone: string, wall: number, isHourly: boolean): readonly number[] {
  const { instants, moved } = instantsAt(timeZone, wall);
  if (instants.length === 0) return [moved];
  return isHourly ? instants : instants.slice(0, 1);
}

/** The next instant after `after` at which a schedule is due; null if there is none in the next years. */
export function nextDueTime(cron: string, timeZone: string, after: number): number | null {
  const from = after + Math.min(offsetAt(timeZone, after), offsetAt(timeZone, after + dayMs));
  const walls = CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: new Date(from) });
  for (let step = 0; step < mostSteps; step++) {
    let wall: number;
    try {
      wall = walls.next().getTime();
    } catch {
      return null;
    }
    // What could come before it is at most a change of the clocks away.
    const [first] = dueTimes(cron, timeZone, after, wall - offsetAt(timeZone, wall) + changeMs);
    if (first !== undefined) return first;
  }
  return null;
}
