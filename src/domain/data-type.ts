/** The types of properties. A property whose values have several types has the type `string`. */
export const dataTypes = ['string', 'numeric', 'boolean', 'date'] as const;
export type DataType = (typeof dataTypes)[number];

export function dataTypeOf(value: unknown): DataType | null {
  switch (typeof value) {
    case 'string':
      return isIsoDate(value) ? 'date' : 'string';
    case 'number':
      return 'numeric';
    case 'boolean':
      return 'boolean';
    default:
      return value === null || value === undefined ? null : 'string';
  }
}

export function widen(one: DataType, other: DataType): DataType {
  return one === other ? one : 'string';
}

const DASH = 0x2d;
const ZERO = 0x30;
const LETTER_T = 0x54;

const form =
  /^\d\d\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

const monthDays = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

export function isIsoDate(text: string): boolean {
  if (!resemblesIsoDate(text) || !form.test(text)) return false;
  const day = twoDigits(text, 8);
  return day <= 28 || hasDay(twoDigits(text, 0), twoDigits(text, 2), twoDigits(text, 5), day);
}

/**
 * Quick test whether a string may be a date. It takes a tenth of the time of the full pattern. A
 * few strings that are not dates also pass.
 */
export function resemblesIsoDate(text: string): boolean {
  return (
    text.length >= 10 &&
    text.charCodeAt(4) === DASH &&
    text.charCodeAt(7) === DASH &&
    (text.length === 10 || text.charCodeAt(10) === LETTER_T)
  );
}

export function resemblesIsoDateBytes(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start;
  return (
    length >= 10 &&
    bytes[start + 4] === DASH &&
    bytes[start + 7] === DASH &&
    (length === 10 || bytes[start + 10] === LETTER_T)
  );
}

function hasDay(century: number, yearOfCentury: number, month: number, day: number): boolean {
  if (month === 2 && day === 29) return (yearOfCentury === 0 ? century : yearOfCentury) % 4 === 0;
  return day <= (monthDays[month] ?? 0);
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO;
}

/** Cells of a column without a type are strings. */
export const cellTypes = ['number', 'decimal_comma', 'boolean', 'date', 'day_first', 'month_first'] as const;
export type CellType = (typeof cellTypes)[number];

/** Reads `Their Header=number`. Returns `undefined` for any other text. */
export function readCellType(text: string): readonly [column: string, type: CellType] | undefined {
  const at = text.lastIndexOf('=');
  const column = text.slice(0, Math.max(0, at)).trim();
  const type = cellTypes.find((each) => each === text.slice(at + 1).trim());
  return column === '' || type === undefined ? undefined : [column, type];
}
