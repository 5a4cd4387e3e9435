import { isUtf8 } from 'node:buffer';
import { undoDefuse } from '../../domain/formula.ts';
import { isNullWord } from '../../domain/reject.ts';
import { isWestern } from '../../formats/detect-encoding.ts';
import { TextReader } from '../../formats/text-encoding.ts';
import { likelyKind, type Mend } from './mend.ts';

/** White space, and characters that nobody sees. */
const unseen = /[\s\u200b-\u200f\u2060\ufeff]/;

/** Removes hidden characters at both ends, from the outside in: an expression that ends with `+$` would start again at every blank inside. */
function trimUnseen(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && unseen.test(text.charAt(start))) start++;
  while (start < end && unseen.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

export const mendsOfWords: readonly Mend[] = [
  {
    name: 'trim',
    sentence: 'read without the blanks around it',
    codes: ['invalid_date', 'unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const trimmed = trimUnseen(text);
      return trimmed === text || trimmed === '' ? null : trimmed;
    },
  },
  {
    name: 'no-value',
    sentence: 'read as no value',
    codes: ['invalid_date', 'invalid_type', 'invalid_json'],
    value: (text) => (isNullWord(text) || (text !== '' && text.trim() === '') ? '' : null),
    json: (value) => (value === '' ? null : undefined),
  },
  {
    name: 'known-kind',
    sentence: 'read as the kind of record of that name',
    codes: ['unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const kind = likelyKind(text);
      return kind === text ? null : kind;
    },
  },
  {
    name: 'apostrophes-removed',
    sentence: 'read without the apostrophes before formulas',
    codes: ['unclear_apostrophe'],
    cells: (raw, readings) => readings.own(raw)?.map(undoDefuse) ?? null,
  },
  {
    name: 'apostrophes-kept',
    sentence: 'read with the apostrophes before formulas as part of the values',
    codes: ['unclear_apostrophe'],
    cells: (raw, readings) => readings.own(raw),
  },
  {
    name: 'no-nul',
    sentence: 'read without the characters U+0000 in it',
    codes: ['nul_character'],
    json: (value) =>
      typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '') : undefined,
    bytes: (raw) => (raw.includes(0) ? raw.toString('utf8').replaceAll('\0', '') : null),
  },
];

/** A character of UTF-8 beyond ASCII, in a byte string. */
const utf8Character = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/;

/** Reads bytes that are not UTF-8 in windows-1252, if they can be nothing else; for another encoding the file is sent again. */
export const mendOfEncoding: Mend = {
  name: 'windows-1252',
  sentence: 'read in windows-1252',
  codes: ['invalid_utf8'],
  bytes(raw) {
    // Text that is partly UTF-8 was written by two programs, so either reading would be wrong.
    if (isUtf8(raw) || utf8Character.test(raw.toString('latin1')) || !isWestern(raw)) return null;
    return new TextReader('windows-1252').read(raw);
  },
};

/* Times that are written otherwise than ISO 8601 has them. Years of two digits are of this century: no record is older. */

const clock = String.raw`(?:(?:[T,]\s*|\s+)(\d{1,2})[:.](\d\d)(?:[:.](\d\d)(?:[.,](\d{1,9}))?)?\s*([AaPp])?(?:\.?[Mm]\.?)?\s*(Z|UTC|GMT|(?:GMT|UTC)?[+-]\d\d(?::?\d\d)?)?)?`;
const threeNumbers = new RegExp(String.raw`^(\d{1,4})([/.\- ])(\d{1,2})\2(\d{1,4})${clock}$`);
const dayAndMonth = new RegExp(
  String.raw`^(?:[A-Za-z]{3,9}\.?,?\s+)?(\d{1,2})(?:st|nd|rd|th)?[\s./-]+([A-Za-z]{3,9})\.?,?[\s./-]+(\d{4}|\d\d)${clock}$`,
);
const monthAndDay = new RegExp(
  String.raw`^(?:[A-Za-z]{3,9}\.?,?\s+)?([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})${clock}$`,
);
const compact = /^(\d{4})(\d\d)(\d\d)(?:[T ]?(\d\d):?(\d\d)(?::?(\d\d))?(Z|[+-]\d\d:?\d\d)?)?$/;
const months = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
];
/** A longer text is no time. */
const longestTime = 100;

type Parts = readonly (string | undefined)[];

/** ISO 8601, or null where it is no day. What follows the day: hour, minute, second, fraction, a or p, zone. */
function isoTime(year: string, month: string | number, day: string, rest: Parts): string | null {
  if (year.length !== 4 && year.length !== 2) return null;
  const date = `${year.padStart(4, '20')}-${String(month).padStart(2, '0')}-${day.padStart(2, '0')}`;
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
  return offset.length === 3 ? `${offset}:00` : offset;
}

type Reading = (text: string) => string | null;

/** `read`: what the three numbers are, in their order. */
function ofThree(
  read: (a: string, b: string, c: string) => readonly [string, string, string] | null,
): Reading {
  return (text) => {
    const [, a = '', , b = '', c = '', ...rest] = threeNumbers.exec(text) ?? [];
    const found = a === '' ? null : read(a, b, c);
    return found === null ? null : isoTime(...found, rest);
  };
}

function readNamedMonth(text: string): string | null {
  const plain = text.replace(/\s*\([^()]*\)$/, '');
  const [, day = '', name = '', year = '', ...rest] = dayAndMonth.exec(plain) ?? [];
  if (day !== '') return ofMonth(name, (month) => isoTime(year, month, day, rest));
  const [, name2 = '', day2 = '', year2 = '', ...rest2] = monthAndDay.exec(plain) ?? [];
  return day2 === '' ? null : ofMonth(name2, (month) => isoTime(year2, month, day2, rest2));
}

function ofMonth(name: string, read: (month: number) => string | null): string | null {
  const at = months.findIndex((month) => month.startsWith(name.toLowerCase()));
  return at === -1 ? null : read(at + 1);
}

function readCompact(text: string): string | null {
  const [, year = '', month = '', day = '', hour, minute, second, zone] = compact.exec(text) ?? [];
  return year === '' ? null : isoTime(year, month, day, [hour, minute, second, undefined, undefined, zone]);
}

/** `1.700.000.000`: one mark between groups of three. */
const grouped = /^\d{1,3}([ .,'’_\u00a0\u202f])\d{3}(?:\1\d{3})+$/;

function mendOfTime(name: string, sentence: string, read: Reading): Mend {
  const value = (text: string): string | null =>
    text.length > longestTime ? null : read(text.trim().replace(/\s+/g, ' '));
  return { name, sentence, codes: ['invalid_date'], value };
}

export const mendsOfDates: readonly Mend[] = [
  mendOfTime(
    'day-first',
    'read as day first',
    ofThree((day, month, year) => (day.length > 2 ? null : [year, month, day])),
  ),
  mendOfTime(
    'month-first',
    'read as month first',
    ofThree((month, day, year) => (month.length > 2 ? null : [year, month, day])),
  ),
  mendOfTime(
    'year-first',
    'read as year, month and day',
    ofThree((year, month, day) => (day.length > 2 ? null : [year, month, day])),
  ),
  mendOfTime('month-name', 'read with the name of the month', readNamedMonth),
  mendOfTime('compact-date', 'read as a date without separators', readCompact),
  mendOfTime('decimal-comma', 'read with a decimal comma', (text) =>
    /^\d{9,14},\d{1,9}$/.test(text) ? text.replace(',', '.') : null,
  ),
  mendOfTime('thousands', 'read without the marks between thousands', (text) =>
    grouped.test(text) ? text.replace(/\D/g, '') : null,
  ),
  mendOfTime('microseconds', 'read as microseconds since 1970', (text) =>
    /^\d{16}$/.test(text) ? `${text.slice(0, 10)}.${text.slice(10)}` : null,
  ),
  mendOfTime('nanoseconds', 'read as nanoseconds since 1970', (text) =>
    /^\d{19}$/.test(text) ? `${text.slice(0, 10)}.${text.slice(10)}` : null,
  ),
];
