import { type InputError, inputError } from '../base/errors.ts';

const MARK_BYTES = 3;

/** Line and column of a position, for messages. `at` is a position in the current buffer. */
export class JsonPosition {
  /** Where the current buffer and line begin in the document. */
  #bufferStart = 0;
  #lineStart = 0;
  #line = 1;
  /** Where the last error was found in the current buffer. */
  brokenAt = 0;

  newLine(at: number): void {
    this.#line++;
    this.#lineStart = this.#bufferStart + at;
  }

  /** Returns the length of the byte order mark, or 0. The byte after it has column 1. */
  skipMark(bytes: Buffer): number {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    this.#lineStart = hasMark ? MARK_BYTES : 0;
    return this.#lineStart;
  }

  isLineStart(at: number): boolean {
    return this.#bufferStart + at === this.#lineStart;
  }

  pass(bytes: number): void {
    this.#bufferStart += bytes;
  }

  unexpected(byte: number, at: number, context: string): InputError {
    const name = byte > 32 && byte < 127 ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16)}`;
    return this.invalid(`unexpected ${name} ${context}`, at);
  }

  invalid(what: string, at: number): InputError {
    this.brokenAt = at;
    const byte = this.#bufferStart + at;
    const details = `line ${this.#line}, column ${byte - this.#lineStart + 1} (byte ${byte})`;
    return inputError('invalid_json', `The body is not valid JSON: ${what}`, details);
  }
}

/**
 * Text up to this length is not checked. It cannot slow down a parser, and a check would cost more
 * than it saves.
 */
const harmlessChars = 1024;
const [QUOTE, BACKSLASH] = [34, 92];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/**
 * True if the text is nested too deep. Call this before parsing, because a parser needs 150 ms for
 * a MiB of brackets. Text up to `harmlessChars` is never refused. For invalid JSON, the result is
 * inexact but still limits the parser's work.
 */
export function isNestedDeeper(text: string, maxDepth: number): boolean {
  return text.length > harmlessChars && hasMoreContainers(text, maxDepth) && depthExceeds(text, maxDepth);
}

/**
 * Most records have fewer opening brackets than `count`, so the slower check of the depth is rarely
 * needed.
 */
function hasMoreContainers(text: string, count: number): boolean {
  let containers = 0;
  for (const open of '{[') {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1))
      if (++containers > count) return true;
  }
  return false;
}

function depthExceeds(text: string, maxDepth: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at++;
      while (at < text.length && text.charCodeAt(at) !== QUOTE)
        at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++depth > maxDepth) return true;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
  }
  return false;
}

/**
 * States for the bytes of strings, numbers and literals. A token may span buffers, because its
 * state can be kept. Bytes from 0x80 are allowed only in strings. UTF-8 is checked elsewhere.
 */
export const tokenState = { string: 1, lastOfString: 6 } as const;

/** Values from `tokenStopped` up are not states. They end the token. */
export const tokenStopped = 253; // a number ended before this byte
export const tokenEnded = 254; // this byte is the token's last
export const tokenBroken = 255;

const digits = '0123456789';

/** Table of states. The state that follows a byte has the index `state * 256 + byte`. */
export const tokenTable: Uint8Array = buildTable();

/** Table of all bytes: 1 for each byte that keeps the state inside a string. */
export const isPlain: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  tokenTable[tokenState.string * 256 + byte] === tokenState.string ? 1 : 0,
);

/**
 * Returns the state after the first byte of a token. Returns `tokenBroken` if no token can start
 * with the byte.
 */
export function firstState(byte: number): number {
  return firstStates[byte] as number;
}

const firstStates: Uint8Array = buildFirstStates();

function buildFirstStates(): Uint8Array {
  const states = new Uint8Array(256).fill(tokenBroken);
  for (const digit of digits) states[code(digit)] = digit === '0' ? 8 : 9;
  for (const [first, state] of Object.entries({ '"': 1, '-': 7, t: 15, f: 18, n: 22 }))
    states[code(first)] = state;
  return states;
}

function buildTable(): Uint8Array {
  const table = new Uint8Array(256 * 26).fill(tokenBroken);
  const on = (state: number, bytes: string, next: number) => {
    for (const byte of bytes) table[state * 256 + code(byte)] = next;
  };
  addStrings(table, on);
  addNumbers(on);
  addLiteral(on, 15, 'rue');
  addLiteral(on, 18, 'alse');
  addLiteral(on, 22, 'ull');
  return table;
}

type On = (state: number, bytes: string, next: number) => void;

/**
 * States inside strings. 1: ordinary. 2: after a backslash. 3 to 6: before each digit of \uXXXX.
 */
function addStrings(table: Uint8Array, on: On): void {
  table.fill(1, 256 + 0x20, 512);
  on(1, '"', tokenEnded);
  on(1, '\\', 2);
  on(2, '"\\/bfnrt', 1);
  on(2, 'u', 3);
  for (let state = 3; state <= 6; state++) on(state, `${digits}abcdefABCDEF`, state === 6 ? 1 : state + 1);
}

/**
 * States inside numbers, shown by an example of the text so far. 7: -; 8: 0; 9: 12; 10: 1.; 11:
 * 1.5; 12: 1e; 13: 1e-; 14: 1e5. Numbers may end in states 8, 9, 11 and 14.
 */
function addNumbers(on: On): void {
  const anything = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join('');
  for (const complete of [8, 9, 11, 14]) on(complete, anything, tokenStopped);
  on(7, digits, 9);
  on(7, '0', 8);
  on(9, digits, 9);
  for (const state of [8, 9]) on(state, '.', 10);
  for (const state of [8, 9, 11]) on(state, 'eE', 12);
  for (const state of [10, 11]) on(state, digits, 11);
  on(12, '+-', 13);
  for (const state of [12, 13, 14]) on(state, digits, 14);
}

function addLiteral(on: On, first: number, rest: string): void {
  [...rest].forEach((letter, index) => {
    on(first + index, letter, index === rest.length - 1 ? tokenEnded : first + index + 1);
  });
}

function code(character: string): number {
  return character.charCodeAt(0);
}
