import { MAX_PROPERTY_NAME_CHARS } from '../domain/limits.ts';
import { isPlain } from '../formats/json-position.ts';
import { forbiddenNames } from './column-plan.ts';
import { type KnownName, KnownNames } from './known-names.ts';

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const SLASH = 0x2f;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LETTER_E = 0x65;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const LETTER_U = 0x75;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Members of one object; one that has more is left to the parser. */
const MAX_WALKED_MEMBERS = 1_024;
/** Containers within a member. */
const MAX_WALKED_DEPTH = 8;
/** Longer ones may lie below or beyond what a JavaScript number can be. */
const MAX_WALKED_NUMBER = 300;
/** Digits that a JavaScript number keeps. */
const KEPT_DIGITS = 15;
/** Zeros behind the point before JavaScript writes an exponent. */
const PLAIN_ZEROS = 5;

/** The kinds of a member's value. */
export const TEXT = 0;
/** With escapes. */
export const ESCAPED_TEXT = 1;
export const NUMBER = 2;
export const BOOLEAN = 3;
export const NULL = 4;
/** An object or an array. */
export const CONTAINER = 5;

/** A backslash is somewhere. */
export const ESCAPES = 1;
/** JavaScript writes a number another way, such as 1.50: PostgreSQL keeps the zero. */
export const OTHER_NUMBERS = 2;
/** It may be written another way that means the same: blanks, `\/`, names that JavaScript orders, or gives once. */
export const OTHER_TEXT = 4;

/** The members of an object, in their order; where their values begin and end, quotes included. */
export class MemberList {
  count = 0;
  readonly names: KnownName[] = [];
  readonly starts = new Int32Array(MAX_WALKED_MEMBERS);
  readonly ends = new Int32Array(MAX_WALKED_MEMBERS);
  readonly kinds = new Uint8Array(MAX_WALKED_MEMBERS);
  /** ESCAPES, OTHER_NUMBERS and OTHER_TEXT. */
  marks = 0;
  readonly known: KnownNames;
  /** The marks that blanks between its members add. */
  readonly blankMarks: number;

  constructor(known: KnownNames, blankMarks: number) {
    this.known = known;
    this.blankMarks = blankMarks;
  }

  /** To be called before `next` of the first member. */
  start(): void {
    this.count = 0;
    this.marks = 0;
    this.known.startObject();
  }
}

/**
 * Walks a record byte by byte, and finds the members of its object and of the one in it whose name has `innerRole`. Takes
 * what is JSON beyond doubt, of which each name comes once and nothing has to be decoded to be checked: no \u, no blanks but
 * spaces, no depth. Whatever else it may be is for the parser to say.
 */
export class JsonMembers {
  readonly outer: MemberList;
  readonly inner: MemberList;
  readonly #innerRole: number;
  #kind = TEXT;
  #marks = 0;

  /** `roleOf` and `innerRoleOf`: see `KnownNames`; a negative role is of a name that is left to the parser. */
  constructor(roleOf: (name: string) => number, innerRoleOf: (name: string) => number, innerRole: number) {
    this.outer = new MemberList(new KnownNames(roleOf), 0);
    this.inner = new MemberList(new KnownNames(innerRoleOf), OTHER_TEXT);
    this.#innerRole = innerRole;
  }

  /** Forgets all names. */
  reset(): void {
    this.outer.known.reset();
    this.inner.known.reset();
  }

  /** Returns true if bytes [start, end), known to be UTF-8 and to end a line or the buffer, are such an object and nothing else. */
  walk(bytes: Buffer, start: number, end: number): boolean {
    this.inner.start();
    let at = skipSpaces(bytes, start);
    if (bytes[at] !== OPEN) return false;
    at = this.#members(this.outer, bytes, at);
    return at !== -1 && skipSpaces(bytes, at) === end;
  }

  /** The members of the object that opens at `open`; returns where it ends, or -1. */
  #members(list: MemberList, bytes: Buffer, open: number): number {
    const { blankMarks } = list;
    list.start();
    this.#marks = 0;
    let at = this.#blanks(bytes, open + 1, blankMarks);
    if (bytes[at] === CLOSE) return at + 1;
    for (;;) {
      at = this.#member(list, bytes, at);
      if (at === -1) return -1;
      at = this.#blanks(bytes, at, blankMarks);
      const byte = bytes[at];
      if (byte === CLOSE) break;
      if (byte !== COMMA) return -1;
      at = this.#blanks(bytes, at + 1, blankMarks);
    }
    list.marks = this.#marks;
    return at + 1;
  }

  #member(list: MemberList, bytes: Buffer, start: number): number {
    if (bytes[start] !== QUOTE || list.count === MAX_WALKED_MEMBERS) return -1;
    const name = list.known.find(bytes, start + 1);
    if (name === null || name.role < 0) return -1;
    if (name.isNumeric) this.#marks |= OTHER_TEXT;
    const from = this.#colon(bytes, list.known.end, list.blankMarks);
    if (from === -1) return -1;
    const isInner = list === this.outer && name.role === this.#innerRole && bytes[from] === OPEN;
    const to = isInner ? this.#innerMembers(bytes, from) : this.#value(bytes, from, 0);
    const number = list.count++;
    list.names[number] = name;
    list.starts[number] = from;
    list.ends[number] = to;
    list.kinds[number] = this.#kind;
    return to;
  }

  #innerMembers(bytes: Buffer, open: number): number {
    const marks = this.#marks;
    const end = this.#members(this.inner, bytes, open);
    this.#marks = marks;
    this.#kind = CONTAINER;
    return end;
  }

  /** Returns where the value behind a colon begins, or -1. */
  #colon(bytes: Buffer, start: number, blankMarks: number): number {
    const at = this.#blanks(bytes, start, blankMarks);
    return bytes[at] === COLON ? this.#blanks(bytes, at + 1, blankMarks) : -1;
  }

  #blanks(bytes: Buffer, at: number, marks: number): number {
    if (bytes[at] !== SPACE) return at;
    this.#marks |= marks;
    return skipSpaces(bytes, at);
  }

  /** Returns where the value at `at` ends, or -1; leaves in `#kind` what it is. */
  #value(bytes: Buffer, at: number, depth: number): number {
    const byte = bytes[at];
    if (byte === QUOTE) return this.#text(bytes, at + 1);
    if (byte === OPEN || byte === OPEN_ARRAY) {
      const end = depth === MAX_WALKED_DEPTH ? -1 : this.#container(bytes, at, depth + 1);
      this.#kind = CONTAINER;
      return end;
    }
    if (byte === LETTER_T) return this.#literal('true', BOOLEAN, bytes, at);
    if (byte === LETTER_F) return this.#literal('false', BOOLEAN, bytes, at);
    if (byte === LETTER_N) return this.#literal('null', NULL, bytes, at);
    this.#kind = NUMBER;
    return this.#number(bytes, at);
  }

  #literal(text: string, kind: number, bytes: Buffer, start: number): number {
    this.#kind = kind;
    for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return -1;
    return start + text.length;
  }

  /** `start` is behind the quote. */
  #text(bytes: Buffer, start: number): number {
    let at = start;
    this.#kind = TEXT;
    for (;;) {
      while (isPlain[bytes[at] as number] === 1) at++;
      if (bytes[at] === QUOTE) return at + 1;
      if (bytes[at] !== BACKSLASH) return -1;
      const escaped = bytes[at + 1] ?? 0;
      // Only a parser could tell an invalid `\\u`.
      const marks = escapeMarks[escaped] ?? 0;
      if (marks === 0 || (escaped === BACKSLASH && bytes[at + 2] === LETTER_U)) return -1;
      this.#kind = ESCAPED_TEXT;
      this.#marks |= marks;
      at += 2;
    }
  }

  #container(bytes: Buffer, open: number, depth: number): number {
    const isObject = bytes[open] === OPEN;
    const close = isObject ? CLOSE : CLOSE_ARRAY;
    if (isObject) this.#marks |= OTHER_TEXT;
    let at = this.#blanks(bytes, open + 1, OTHER_TEXT);
    if (bytes[at] === close) return at + 1;
    for (;;) {
      if (isObject) at = this.#name(bytes, at);
      if (at !== -1) at = this.#value(bytes, at, depth);
      if (at === -1) return -1;
      at = this.#blanks(bytes, at, OTHER_TEXT);
      const byte = bytes[at];
      if (byte === close) return at + 1;
      if (byte !== COMMA) return -1;
      at = this.#blanks(bytes, at + 1, OTHER_TEXT);
    }
  }

  /** The name of a member further in, and its colon; returns where the value begins, or -1. */
  #name(bytes: Buffer, at: number): number {
    const end = bytes[at] === QUOTE ? this.#text(bytes, at + 1) : -1;
    if (end === -1 || this.#kind === ESCAPED_TEXT) return -1;
    const length = end - at - 2;
    if (length > MAX_PROPERTY_NAME_CHARS) return -1;
    if (forbiddenLengths.has(length) && forbiddenNames.has(bytes.toString('latin1', at + 1, end - 1)))
      return -1;
    return this.#colon(bytes, end, OTHER_TEXT);
  }

  #number(bytes: Buffer, start: number): number {
    const first = bytes[start] === MINUS ? start + 1 : start;
    const point = skipDigits(bytes, first);
    const isZero = bytes[first] === ZERO;
    if (point === first || (isZero && point > first + 1)) return -1;
    let end = point;
    if (bytes[point] === DOT) {
      end = skipDigits(bytes, point + 1);
      if (end === point + 1) return -1;
    }
    // An exponent; lower case differs by one bit.
    if (end - start > MAX_WALKED_NUMBER || ((bytes[end] ?? 0) | 0x20) === LETTER_E) return -1;
    if (!isKept(bytes, start, point, end)) this.#marks |= OTHER_NUMBERS;
    return end;
  }
}

/** Returns true if the number comes out of the parser as it is written; `point` is where its whole part ends. */
function isKept(bytes: Buffer, start: number, point: number, end: number): boolean {
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  const isBelowOne = bytes[first] === ZERO;
  if (point === end) return !(isNegative && isBelowOne);
  let digit = point + 1;
  if (isBelowOne) while (digit < end && bytes[digit] === ZERO) digit++;
  const zeros = digit - point - 1;
  const digits = end - digit + (isBelowOne ? 0 : point - first);
  if (digits > KEPT_DIGITS) return true;
  return bytes[end - 1] !== ZERO && (!isBelowOne || zeros <= PLAIN_ZEROS);
}

function skipSpaces(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at] === SPACE) at++;
  return at;
}

function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at++;
  return at;
}

/** The marks that a byte behind a backslash adds; 0 if the escape is not taken. */
const escapeMarks = new Uint8Array(256);
for (const letter of '"\\bfnrt') escapeMarks[letter.charCodeAt(0)] = ESCAPES;
escapeMarks[SLASH] = ESCAPES | OTHER_TEXT;

const forbiddenLengths: ReadonlySet<number> = new Set([...forbiddenNames].map(({ length }) => length));
