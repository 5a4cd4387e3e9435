import { type CellType, isIsoDate } from '../../domain/data-type.ts';
import type { Reason } from '../../domain/reject.ts';
import { numberInRange } from '../../formats/json-text.ts';
import { kind } from './cells.ts';

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
 * Returns a time in ISO 8601, or `null` if the year or hour is invalid. `rest` contains the matches
 * of `clock`: hour, minute, second, fraction, `a` or `p` (from am or pm), and time zone.
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

type TimeReading = (text: string) => string | null;

/** Reads times that start with three numbers, which `read` puts in the order year, month, day. */
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

const readDayFirst = ofThree((day, month, year) => (day.length > 2 ? null : [year, month, day]));
const readMonthFirst = ofThree((month, day, year) => (month.length > 2 ? null : [year, month, day]));
const readYearFirst = ofThree((year, month, day) => (day.length > 2 ? null : [year, month, day]));

function readNamedMonth(text: string): string | null {
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

/* Reads the cells of CSV columns whose type the load declares in its option `types`. */

interface Typed {
  readonly kind: number;
  readonly code: Reason['code'];
  /** Completes the message `column is not …`. */
  readonly what: string;
  /**
   * Returns `text` as JSON, but without the quotes of a string. Returns `null` if `text` is not a
   * value of this type.
   */
  readonly read: (text: string) => string | null;
}

/** Digits may be in groups of three, separated by `group`, a space or an apostrophe. */
function number(what: string, point: string, group: string): Typed {
  const mark = `[${group} \u00a0\u202f'’]`;
  const form = new RegExp(
    `^([+-]?)(\\d+|\\d{1,3}(${mark})\\d{3}(?:\\3\\d{3})*)(?:[${point}](\\d+))?(?:[eE]([+-]?\\d{1,4}))?$`,
  );
  const read = (text: string): string | null => {
    const [, sign = '', grouped = '', , fraction, exponent] = form.exec(text) ?? [];
    const whole = grouped.replace(/\D/g, '').replace(/^0+(?=\d)/, '');
    if (whole === '') return null;
    const parts = [sign === '-' ? '-' : '', whole, fraction && `.${fraction}`, exponent && `e${exponent}`];
    const json = parts.join('');
    return numberInRange(json) ? json : null;
  };
  return { kind: kind.number, code: 'invalid_type', what, read };
}

function date(what: string, ...readings: readonly TimeReading[]): Typed {
  const read = (text: string): string | null => {
    if (isIsoDate(text)) return text;
    for (const reading of readings) {
      const iso = reading(text);
      if (iso !== null) return isIsoDate(iso) ? iso : null;
    }
    return null;
  };
  return { kind: kind.text, code: 'invalid_date', what, read };
}

const readYear: TimeReading = (text) => (/^\d{4}/.test(text) ? readYearFirst(text) : null);

const words: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['true', 't', 'yes', 'y', 'on', '1'].map((word) => [word, 'true'])),
  ...Object.fromEntries(['false', 'f', 'no', 'n', 'off', '0'].map((word) => [word, 'false'])),
};
const readWord = (text: string): string | null =>
  Object.hasOwn(words, text.toLowerCase()) ? (words[text.toLowerCase()] ?? null) : null;

const typed: Readonly<Record<CellType, Typed>> = {
  number: number('a number', '.', ','),
  decimal_comma: number('a number with a decimal comma', ',', '.'),
  boolean: { kind: kind.boolean, code: 'invalid_type', what: 'true or false', read: readWord },
  date: date('a date', readYear, readNamedMonth),
  day_first: date('a date with its day first', readDayFirst, readYear, readNamedMonth),
  month_first: date('a date with its month first', readMonthFirst, readYear, readNamedMonth),
};

interface TypedCell {
  readonly kind: number;
  readonly text: string;
}

/** A blank cell has no value, so its text is empty. */
export function readTyped(type: CellType, text: string, column: string): TypedCell | Reason {
  const { kind: valueKind, code, what, read } = typed[type];
  const trimmed = text.trim();
  if (trimmed === '') return { kind: kind.text, text: '' };
  const value = read(trimmed);
  if (value !== null) return { kind: valueKind, text: value };
  return {
    code,
    message: `${column} is not ${what}, but types declares it as ${type}`,
    column,
  };
}

const numberedLike = /^(?:\+|-?0\d)/;

/**
 * Types that fit all the values, the most likely one first. Digits that start with 0 or + do not
 * count as numbers, because they are mostly ids, postcodes or phone numbers.
 */
export function typesOf(texts: readonly string[]): CellType[] {
  const types = Object.keys(typed) as CellType[];
  if (texts.length === 0) return [];
  return types.filter((type) =>
    texts.every((text) => {
      const trimmed = text.trim();
      return (
        typed[type].read(trimmed) !== null &&
        !(typed[type].kind === kind.number && numberedLike.test(trimmed))
      );
    }),
  );
}
