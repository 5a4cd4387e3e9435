const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether this is a time zone, such as `Europe/Berlin`. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(timeZone, format);
  return format;
}

/** What a clock on the wall shows, as milliseconds of a day in UTC that shows the same. */
export function wallTime(timeZone: string, ms: number): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(ms)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((ms % 1000) + 1000) % 1000);
}

/** How far the clocks on the wall are ahead of UTC, in milliseconds. */
export function offsetAt(timeZone: string, ms: number): number {
  return wallTime(timeZone, ms) - ms;
}

/**
 * The instants at which the clocks show `wall`: one as a rule, two in the hour that comes twice, none in the hour that is
 * left out; `moved` is then the instant at which they would have shown it, had they not been put forward.
 */
export function instantsAt(
  timeZone: string,
  wall: number,
): { readonly instants: readonly number[]; readonly moved: number } {
  const before = offsetAt(timeZone, wall - dayMs);
  const offsets = new Set([before, offsetAt(timeZone, wall + dayMs)]);
  const instants = [...offsets]
    .map((offset) => wall - offset)
    .filter((instant) => wallTime(timeZone, instant) === wall)
    .sort((a, b) => a - b);
  return { instants, moved: wall - before };
}

/** The first instant of a day; `months` or `days` move away from the day that `ms` is in, or from the first of its month. */
export function startOfDay(
  timeZone: string,
  ms: number,
  move: { readonly days?: number; readonly months?: number },
): number {
  const wall = new Date(wallTime(timeZone, ms));
  const { days = 0, months } = move;
  const day = months === undefined ? wall.getUTCDate() + days : 1;
  const midnight = Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth() + (months ?? 0), day);
  // Where midnight is left out the day begins later; by its clocks no instant of it is before the change.
  const { instants, moved } = instantsAt(timeZone, midnight);
  return instants[0] ?? changeBefore(timeZone, moved);
}

/** The instant, at most a day before `ms`, at which the clocks were changed last. Found to the millisecond. */
function changeBefore(timeZone: string, ms: number): number {
  const after = offsetAt(timeZone, ms);
  let [low, high] = [ms - dayMs, ms];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(timeZone, middle) === after) high = middle;
    else low = middle;
  }
  return high;
}
