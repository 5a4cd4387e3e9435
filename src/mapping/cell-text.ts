/* Copying cells as the text that COPY reads, byte by byte: nothing is decoded, and no string made but for rare ones. */
import { type CellList, kind } from './cells.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const LETTER_U = 0x75;

/** Up to this length a loop beats a call of `copy`. */
export const SHORT_BYTES = 48;
/** The most bytes that a byte of a cell becomes: `\\u001f`. */
export const MAX_ESCAPED_BYTES = 7;

/** The letter behind the backslash that JSON wants before these bytes, `numbered` where it wants \u00 and two digits; 0 for all others. */
const numbered = 1;
export const jsonEscapes = new Uint8Array(256).fill(numbered, 0, 32);
for (const [byte, letter] of Object.entries({
  '"': '"',
  '\\': '\\',
  '\t': 't',
  '\n': 'n',
  '\r': 'r',
  '\b': 'b',
  '\f': 'f',
}))
  jsonEscapes[byte.charCodeAt(0)] = letter.charCodeAt(0);

/** Copies a cell as a value within JSON; returns where it ends. */
export function copyJson(list: CellList, cell: number, target: Buffer, at: number): number {
  const { bytes } = list;
  const start = list.starts[cell] ?? 0;
  const end = list.ends[cell] ?? 0;
  const is = list.kinds[cell] ?? 0;
  if (is > kind.escaped) {
    return is === kind.container
      ? copyDoubled(bytes, start, end, target, at)
      : copyPlain(bytes, start, end, target, at);
  }
  let to = at;
  target[to++] = QUOTE;
  if (is === kind.text) to = copyPlain(bytes, start, end, target, to);
  else if (is === kind.escaped) to = copyDoubled(bytes, start, end, target, to);
  else to = copyRaw(bytes, start, end, target, to);
  target[to++] = QUOTE;
  return to;
}

export function copyPlain(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > SHORT_BYTES) return at + bytes.copy(target, at, start, end);
  let to = at;
  for (let from = start; from < end; from++) target[to++] = bytes[from] ?? 0;
  return to;
}

/** JSON: its backslashes are two for COPY. */
function copyDoubled(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let to = at;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] ?? 0;
    if (byte === BACKSLASH) target[to++] = BACKSLASH;
    target[to++] = byte;
  }
  return to;
}

/** A text that is escaped for JSON, and that for COPY. */
function copyRaw(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let to = at;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] ?? 0;
    const letter = jsonEscapes[byte] ?? 0;
    if (letter === 0) target[to++] = byte;
    else to = escapeByte(byte, letter, target, to);
  }
  return to;
}

function escapeByte(byte: number, letter: number, target: Buffer, at: number): number {
  let to = at;
  target[to++] = BACKSLASH;
  target[to++] = BACKSLASH;
  if (letter === numbered) {
    target[to++] = LETTER_U;
    target[to++] = ZERO;
    target[to++] = ZERO;
    return to + target.write(byte.toString(16).padStart(2, '0'), to, 'latin1');
  }
  if (letter === BACKSLASH) target[to++] = BACKSLASH;
  target[to++] = letter;
  return to;
}
