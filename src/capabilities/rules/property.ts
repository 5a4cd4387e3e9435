import { readEpoch, readInstant } from '../../base/instant.ts';
import { resemblesIsoDateBytes } from '../../domain/data-type.ts';
import {
  isObject,
  markedNumber,
  markNumber,
  numberInRange,
  numberText,
  parseJsonText,
} from '../../formats/json-text.ts';
import type { PropertyRule, Remedy } from './document.ts';
import { Pattern } from './pattern.ts';

type Keyword = Exclude<keyof PropertyRule, 'unique' | 'otherwise' | 'personal'>;

export class RuledProperty {
  readonly name: string;
  readonly rule: PropertyRule;
  readonly otherwise: Remedy;
  /** The last judged value, converted to the type. */
  value: unknown;
  /** The last record with a value of this property. */
  seenIn = 0;
  readonly #pattern: Pattern | null;
  /*
   * The next fields copy members of `rule`, because `rule` objects have many shapes and are
   * therefore slower to read.
   */
  readonly #isDate: boolean;
  readonly #minimum: number;
  readonly #maximum: number;
  readonly #minLength: number;
  readonly #maxLength: number;
  /** True if a plain string can be checked without creating a JavaScript string. */
  readonly #maySkip: boolean;
  readonly #allowedTexts: readonly Buffer[] | null;
  /** True if a plain whole number can be checked by its digits alone. */
  readonly #isPlainNumber: boolean;
  readonly #allowed: ReadonlySet<unknown> | null;

  /** Personal values are dropped or hashed, so every value needs the full check. */
  constructor(name: string, rule: PropertyRule, isPersonal: boolean) {
    this.name = name;
    this.rule = rule;
    this.otherwise = rule.otherwise ?? 'report';
    this.#pattern = rule.pattern === undefined ? null : Pattern.of(rule.pattern);
    this.#allowed = rule.enum === undefined ? null : new Set(rule.enum);
    this.#allowedTexts = rule.enum?.map((each) => Buffer.from(String(each))) ?? null;
    this.#maySkip =
      !isPersonal &&
      (rule.type === undefined || rule.type === 'text' || rule.type === 'date') &&
      (rule.enum?.every((each) => typeof each === 'string') ?? true) &&
      rule.minimum === undefined &&
      rule.maximum === undefined;
    const { pattern, minLength, maxLength } = rule;
    this.#isDate = rule.type === 'date';
    this.#minimum = rule.minimum ?? -Infinity;
    this.#maximum = rule.maximum ?? Infinity;
    this.#minLength = minLength ?? 0;
    this.#maxLength = maxLength ?? Infinity;
    const others = [pattern, rule.enum, minLength, maxLength];
    const isMore = others.some((each) => each !== undefined);
    this.#isPlainNumber = (rule.type === 'integer' || rule.type === 'number') && !isMore && !isPersonal;
  }

  keepsAsNumber(bytes: Buffer, start: number, end: number): boolean {
    const isPlain = this.#isPlainNumber && end > start && end - start <= MAX_PLAIN_DIGITS;
    if (!isPlain || (bytes[start] === ZERO && end - start > 1)) return false;
    const number = readDigits(bytes, start, end);
    return number >= this.#minimum && number <= this.#maximum;
  }

  /** True if a string breaks no rule and is stored unchanged. Creates no JavaScript string. */
  keeps(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#maySkip || start === end) return false;
    if (this.#isDate && !isPlainDate(bytes, start, end)) return false;
    const length = end - start;
    // A character has one to four bytes, so the number of bytes is often sufficient.
    const isMeasured = length <= this.#maxLength && length >= 4 * this.#minLength;
    if (!isMeasured && !this.#fits(countCharacterBytes(bytes, start, end))) return false;
    if (this.#pattern !== null && !this.#pattern.testBytes(bytes, start, end)) return false;
    return this.#allowedTexts === null || isAmong(this.#allowedTexts, bytes, start, end);
  }

  #fits(characters: number): boolean {
    return characters >= this.#minLength && characters <= this.#maxLength;
  }

  /** Sets `value` to the converted value. Returns the broken keyword, or `null`. */
  judge(value: unknown): Keyword | null {
    this.value = value;
    const { type } = this.rule;
    if (type !== undefined) {
      const converted = convert[type](value);
      if (converted === undefined) return 'type';
      this.value = converted;
    }
    const items = Array.isArray(this.value) ? this.value : [this.value];
    for (const item of items) {
      const broken = this.#judgeItem(item);
      if (broken !== null) return broken;
    }
    return null;
  }

  #judgeItem(value: unknown): Keyword | null {
    const { minimum, maximum, minLength, maxLength } = this.rule;
    const digits = typeof value === 'number' ? String(value) : markedNumber(value);
    const plain = digits === null ? value : Number(digits);
    if (this.#allowed?.has(plain) === false) return 'enum';
    if (minimum !== undefined && !(Number(plain) >= minimum)) return 'minimum';
    if (maximum !== undefined && !(Number(plain) <= maximum)) return 'maximum';
    const isText = this.#pattern !== null || minLength !== undefined || maxLength !== undefined;
    if (!isText) return null;
    const text = digits ?? (typeof value === 'boolean' ? String(value) : value);
    if (typeof text !== 'string') return 'pattern';
    if (this.#pattern?.test(text) === false) return 'pattern';
    // If the number of UTF-16 units fits `maxLength`, so does the number of characters.
    if (minLength !== undefined && countCharacters(text) < minLength) return 'minLength';
    if (maxLength !== undefined && text.length > maxLength && countCharacters(text) > maxLength)
      return 'maxLength';
    return null;
  }

  #isTooLong(): boolean {
    const { maxLength } = this.#pattern ?? { maxLength: Infinity };
    return [this.value].flat().some((value) => typeof value === 'string' && value.length > maxLength);
  }

  /** Omits the value, because it may be personal. */
  explain(keyword: Keyword): string {
    const { rule } = this;
    if (keyword === 'required') return 'is missing; the rules require it';
    if (keyword === 'type') return `is not of the type ${rule.type}, as the rules require`;
    if (keyword === 'enum') return 'is not one of the values that the rules allow';
    if (keyword === 'pattern' && this.#isTooLong()) {
      return `has a text of more than ${this.#pattern?.maxLength} characters, too long for the pattern of its rule`;
    }
    return `breaks the rule ${keyword}: ${rule[keyword]}`;
  }
}

function isAmong(texts: readonly Buffer[], bytes: Buffer, start: number, end: number): boolean {
  for (const text of texts) {
    if (text.length !== end - start) continue;
    let at = 0;
    while (at < text.length && text[at] === bytes[start + at]) at++;
    if (at === text.length) return true;
  }
  return false;
}

/** Skips continuation bytes, which begin with the bits 10. */
function countCharacterBytes(bytes: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if (((bytes[at] as number) & 0xc0) !== 0x80) count++;
  return count;
}

const ZERO = 0x30;
const COLON = 0x3a;
const LETTER_Z = 0x5a;
/** With this many decimal digits, every number is exact in JavaScript. */
const MAX_PLAIN_DIGITS = 15;

function readDigits(bytes: Buffer, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return Number.NaN;
    number = 10 * number + digit;
  }
  return number;
}

/**
 * True for a date such as 2026-11-20 or 2026-11-20T12:34:56Z, up to the 28th of a month. `judge`
 * checks other dates.
 */
function isPlainDate(bytes: Buffer, start: number, end: number): boolean {
  if (!resemblesIsoDateBytes(bytes, start, end)) return false;
  const month = readDigits(bytes, start + 5, start + 7);
  const day = readDigits(bytes, start + 8, start + 10);
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= 28;
  if (!isDay || Number.isNaN(readDigits(bytes, start, start + 4))) return false;
  if (end - start === 10) return true;
  return (
    end - start === 20 &&
    bytes[start + 13] === COLON &&
    bytes[start + 16] === COLON &&
    bytes[end - 1] === LETTER_Z &&
    readDigits(bytes, start + 11, start + 13) < 24 &&
    readDigits(bytes, start + 14, start + 16) < 60 &&
    readDigits(bytes, start + 17, start + 19) < 60
  );
}

function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function toNumber(value: unknown): unknown {
  if (typeof value === 'number' || markedNumber(value) !== null) return value;
  return typeof value === 'string' && jsonNumber.test(value) && numberInRange(value)
    ? markNumber(value)
    : undefined;
}

function toInteger(value: unknown): unknown {
  const number = toNumber(value);
  return Number.isInteger(Number(markedNumber(number) ?? number)) ? number : undefined;
}

/** Returns the value if `is` accepts it. Otherwise, parses the value as JSON text. */
function parsedIf(value: unknown, is: (value: unknown) => boolean): unknown {
  if (is(value)) return value;
  if (typeof value !== 'string') return undefined;
  const parsed = parseJsonText(value);
  return 'code' in parsed || !is(parsed.value) ? undefined : parsed.value;
}

/** Each function returns `undefined` if it cannot convert the value. */
const convert: Readonly<Record<NonNullable<PropertyRule['type']>, (value: unknown) => unknown>> = {
  text: (value) => {
    const text = numberText(value) ?? (typeof value === 'boolean' ? String(value) : value);
    return typeof text === 'string' ? text : undefined;
  },
  number: toNumber,
  integer: toInteger,
  boolean: (value) => {
    if (typeof value === 'boolean') return value;
    const text = typeof value === 'string' ? value.toLowerCase() : '';
    return text === 'true' || (text === 'false' ? false : undefined);
  },
  date: (value) => {
    const text = numberText(value) ?? value;
    if (typeof text !== 'string') return undefined;
    return readInstant(text) === null ? readEpoch(text)?.text : text;
  },
  list: (value) => parsedIf(value, Array.isArray),
  object: (value) => parsedIf(value, isObject),
};
