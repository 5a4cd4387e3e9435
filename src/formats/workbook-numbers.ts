/*
 * Writes the numbers of a workbook as text. A date is a number of days since the end of 1899 (or
 * the start of 1904), without a time zone. Only the style of the cell shows that the number is a
 * date. Date and time are both written even if the format shows only one.
 */

/** Kind of a number, from its number format. `digits` is the minimum number of digits. */
export type NumberKind = 'number' | 'date' | 'datetime' | 'time' | 'duration' | { readonly digits: number };

/**
 * Returns the kind of a built-in format. Built-in formats have no code. 27 to 36 and 50 to 58 are
 * East Asian dates.
 */
function builtinKind(id: number): NumberKind {
  if (id === 22) return 'datetime';
  if (id >= 14 && id <= 17) return 'date';
  if ((id >= 18 && id <= 21) || id === 45 || id === 47 || id === 32 || id === 33) return 'time';
  if (id === 46) return 'duration';
  return (id >= 27 && id <= 36) || (id >= 50 && id <= 58) ? 'date' : 'number';
}

/** `codes` has the formats that the workbook defines. */
export function kindOfFormat(id: number, codes: ReadonlyMap<number, string>): NumberKind {
  const code = codes.get(id);
  return code === undefined ? builtinKind(id) : kindOfCode(code);
}

/** Parts without a meaning: quoted strings, escaped characters, fills and gaps. */
const literal = /"[^"]*"?|[\\_*][\s\S]?/g;
const elapsed = /\[(?:h+|m+|s+)\]/i;
const bracket = /\[[^\]]*\]?/g;

/**
 * Returns the kind that a format code specifies. Only the section of the code for positive numbers
 * counts.
 */
function kindOfCode(code: string): NumberKind {
  const digits = /^0{2,}$/.exec(code)?.[0].length;
  if (digits !== undefined) return { digits };
  const [section = ''] = code.replace(literal, '').split(';', 1);
  if (elapsed.test(section)) return 'duration';
  const plain = section.replace(bracket, '').toLowerCase();
  if (plain.includes('general')) return 'number';
  const tokens = plain.replace(/am\/pm|a\/p/g, 'h').replace(/e[+-]/g, '');
  const hasTime = /[hs]/.test(tokens);
  const hasDate = /[ydeg]|b{2}/.test(tokens) || /m{3}/.test(tokens) || (tokens.includes('m') && !hasTime);
  if (hasDate) return hasTime ? 'datetime' : 'date';
  return hasTime ? 'time' : 'number';
}

const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/**
 * Returns the fewest digits of the same number (1.1000000000000001 is 1.1), with an exponent only
 * from 1e21 or below 1e-6. Whole numbers keep every digit. `null` if the text is not a number.
 */
export function numberText(text: string): string | null {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) return text;
  if (!number.test(text)) return null;
  const value = Number(text);
  if (!Number.isFinite(value)) return null;
  return String(value === 0 ? 0 : value);
}

const DAY_MS = 24 * 60 * 60 * 1000;
/**
 * Day 0 of a workbook. Excel treats 1900 as a leap year, so dates before March 1900 are one day
 * off.
 */
const DAY_0_OF_1900 = Date.UTC(1899, 11, 30);
const DAY_0_OF_1904 = Date.UTC(1904, 0, 1);
/** The number of 29 February 1900, which does not exist. */
const NO_DAY = 60;
const LAST_DAY = Date.UTC(9999, 11, 31);

/** Returns a date or time in ISO 8601 with milliseconds, or `null` if the number is not a date. */
export function temporalText(
  kind: 'date' | 'datetime' | 'time' | 'duration',
  serial: number,
  from1904: boolean,
): string | null {
  const ms = Math.round(serial * DAY_MS);
  if (!Number.isSafeInteger(ms)) return null;
  if (kind === 'duration') return durationText(ms);
  if (ms < 0) return null;
  const timeMs = ms % DAY_MS;
  const day = (ms - timeMs) / DAY_MS;
  if (day === 0 && kind === 'time') return timeText(timeMs);
  // Day 0 is not a date, so the cell contains only a time, or nothing.
  if (day === 0 && !from1904) return timeMs === 0 ? null : timeText(timeMs);
  const date = dateText(day, from1904);
  if (date === null || (kind === 'date' && timeMs === 0)) return date;
  return `${date}T${timeText(timeMs)}`;
}

function dateText(day: number, from1904: boolean): string | null {
  if (!from1904 && day === NO_DAY) return null;
  const shift = !from1904 && day < NO_DAY ? 1 : 0;
  const time = (from1904 ? DAY_0_OF_1904 : DAY_0_OF_1900) + (day + shift) * DAY_MS;
  return time > LAST_DAY ? null : new Date(time).toISOString().slice(0, 10);
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().slice(11, ms % 1000 === 0 ? 19 : 23);
}

function durationText(ms: number): string {
  const rest = Math.abs(ms);
  const hours = Math.floor(rest / 3_600_000);
  const minutes = Math.floor(rest / 60_000) % 60;
  const seconds = (rest % 60_000) / 1000;
  const parts = [hours > 0 && `${hours}H`, minutes > 0 && `${minutes}M`, seconds > 0 && `${seconds}S`];
  const text = parts.filter((part) => part !== false).join('');
  return `${ms < 0 ? '-' : ''}PT${text === '' ? '0S' : text}`;
}
