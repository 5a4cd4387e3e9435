import { type CellType, isIsoDate } from '../../domain/data-type.ts';
import type { Reason } from '../../domain/reject.ts';
import { numberInRange } from '../../formats/json-text.ts';
import { kind } from './cells.ts';
import {
  readDayFirst,
  readMonthFirst,
  readNamedMonth,
  readYearFirst,
  type TimeReading,
} from './written-times.ts';

/* Reads the cells of CSV columns whose type the load declares in its option `types`. */

interface Typed {
  readonly kind: number;
  readonly code: Reason['code'];
  /** Completes the message `column is not …`. */
  readonly what: string;
  /**
   * Returns the value of a cell as JSON, but strings without their quotes. Returns `null` if `text`
   * is not a value of this type.
   */
  readonly read: (text: string) => string | null;
}

/**
 * Returns a type for numbers. Digits may be in groups of three, separated by `group`, a space or an
 * apostrophe.
 */
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

/** Reads dates that begin with a year of four digits. */
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

/** Reads a cell as a value of `type`. A blank cell has no value, so its text is empty. */
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
 * Returns the types that fit all the values, the most likely type first. Digits that start with 0
 * or + do not count as numbers, because they are mostly ids, postcodes or phone numbers.
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
