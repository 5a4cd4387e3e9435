/*
 * Converts times in other formats to ISO 8601. A year of two digits is a year from 1970 to 2069.
 */

const clock = String.raw`(?:(?:[T,]\s*|\s+)(\d{1,2})[:.](\d\d)(?:[:.](\d\d)(?:[.,](\d{1,9}))?)?\s*([AaPp])?(?:\.?[Mm]\.?)?\s*(Z|UTC|GMT|(?:GMT|UTC)?[+-]\d\d(?::?\d\d)?)?)?`;
const threeNumbers = new RegExp(String.raw`^(\d{1,4})([/.\- ])(\d{1,2})\2(\d{1,4})${clock}$`);
const dayAndMonth = new RegExp(
  String.raw`^(?:[A-Za-z]{3,9}\.?,?\s+)?(\d{1,2})(?:st|nd|rd|th)?[\s./-]+([A-Za-z]{3,9})\.?,?[\s./-]+(\d{4}|\d\d)${clock}$`,
);
const monthAndDay = new RegExp(
  String.raw`^(?:[A-Za-z]{3,9}\.?,?\s+)?([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})${clock}$`,
);
const months = 'january february march april may june july august september october november december'.split(
  ' ',
);
const longestTime = 100;

type Parts = readonly (string | undefined)[];

/**
 * Returns the time in ISO 8601, or `null` if its year or hour is invalid. `rest` contains the
 * matches of `clock`: hour, minute, second, fraction, `a` or `p` (from am or pm), and time zone.
 */
function isoTime(year: string, month: string | number, day: string, rest: Parts): string | null {
  if (year.length !== 4 && year.length !== 2) return null;
  const date = `${year.padStart(4, Number(year) < 70 ? '20' : '19')}-${String(month).padStart(2, '0')}-${day.padStart(2, '0')}`;
  const [hour, minute = '00', second = '00', fraction, half, zone] = rest;
  if (hour === undefined) return date;
  const hours = hourOf(Number(hour), half?.toLowerCase());
  if (hours === null) return null;
  const time = `${String(hours).padStart(2, '0')}:${minute}:${second}${fraction === undefined ? '' : `.${fraction}`}`;
  return `${date}T${time}${zoneOf(zone)}`;
}

function hourOf(hour: number, half: string | undefined): number | null {
  if (half === undefined) return hour;
  if (hour < 1 || hour > 12) return null;
  return (hour % 12) + (half === 'p' ? 12 : 0);
}

function zoneOf(zone: string | undefined): string {
  const offset = zone?.replace(/^(?:GMT|UTC)(?=[+-])/, '');
  if (offset === undefined) return '';
  if (!/^[+-]/.test(offset)) return 'Z';
  return `${offset.slice(0, 3)}:${offset.slice(3).replace(':', '') || '00'}`;
}

export type TimeReading = (text: string) => string | null;

/**
 * Reads times that start with three numbers. `read` puts these numbers in the order year, month,
 * day.
 */
function ofThree(
  read: (a: string, b: string, c: string) => readonly [string, string, string] | null,
): TimeReading {
  return (text) => {
    const [, a = '', , b = '', c = '', ...rest] = threeNumbers.exec(tidied(text)) ?? [];
    const date = a === '' ? null : read(a, b, c);
    return date === null ? null : isoTime(...date, rest);
  };
}

function tidied(text: string): string {
  return text.length > longestTime ? '' : text.trim().replace(/\s+/g, ' ');
}

export const readDayFirst = ofThree((day, month, year) => (day.length > 2 ? null : [year, month, day]));
export const readMonthFirst = ofThree((month, day, year) => (month.length > 2 ? null : [year, month, day]));
export const readYearFirst = ofThree((year, month, day) => (day.length > 2 ? null : [year, month, day]));

export function readNamedMonth(text: string): string | null {
  const plain = tidied(text).replace(/\s*\([^()]*\)$/, '');
  const [, day = '', name = '', year = '', ...rest] = dayAndMonth.exec(plain) ?? [];
  if (day !== '') return ofMonth(name, (month) => isoTime(year, month, day, rest));
  const [, name2 = '', day2 = '', year2 = '', ...rest2] = monthAndDay.exec(plain) ?? [];
  return day2 === '' ? null : ofMonth(name2, (month) => isoTime(year2, month, day2, rest2));
}

function ofMonth(name: string, read: (month: number) => string | null): string | null {
  const at = months.findIndex((month) => month.startsWith(name.toLowerCase()));
  return at === -1 ? null : read(at + 1);
}
