import { isUtf8 } from 'node:buffer';
import { inputError } from '../base/errors.ts';

/** A byte that never occurs in valid UTF-8. */
const NO_CHARACTER = Buffer.of(0xff);

/** Encodes text as UTF-8. Each match of `fault` becomes a byte that never occurs in UTF-8. */
export function encodeUtf8(text: string, fault: RegExp): Buffer {
  if (!fault.test(text)) return Buffer.from(text);
  const pieces = text.split(fault).flatMap((piece) => [Buffer.from(piece), NO_CHARACTER]);
  return Buffer.concat(pieces.slice(0, -1));
}

const LONGEST = 4;

/**
 * Returns the length of the longest valid prefix. Takes linear time, because each step halves the
 * bytes that are left to check.
 */
export function validPrefix(bytes: Buffer): number {
  let valid = 0;
  let invalidFrom = bytes.length;
  while (invalidFrom - valid > 4 * LONGEST) {
    const middle = (valid + invalidFrom) >> 1;
    const whole = middle - splitBytes(bytes.subarray(0, middle));
    if (isUtf8(bytes.subarray(valid, whole))) valid = whole;
    else invalidFrom = middle;
  }
  for (let length = 1; length <= LONGEST && valid + length <= bytes.length; length++) {
    if (!isUtf8(bytes.subarray(valid, valid + length))) continue;
    valid += length;
    length = 0;
  }
  return valid;
}

/** Returns how many bytes at the end, from 0 to 3, belong to an unfinished character. */
export function splitBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    let length = 2;
    if (byte >= 0xf0) length = 4;
    else if (byte >= 0xe0) length = 3;
    return length > back ? back : 0;
  }
  return 0;
}

/** Yields the same bytes without splitting a UTF-8 character between two buffers. */
export async function* wholeCharacters(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    const joined = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const whole = joined.subarray(0, joined.length - splitBytes(joined));
    // A copy, so that the caller's buffer can be freed.
    rest = Buffer.from(joined.subarray(whole.length));
    if (whole.length > 0) yield whole;
  }
  if (rest.length > 0) yield rest;
}

/**
 * Yields the same bytes after checking them.
 * @throws InputError `invalid_json` for bytes that are not UTF-8
 */
export async function* checkedUtf8(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let position = 0;
  for await (const bytes of wholeCharacters(source)) {
    if (!isUtf8(bytes)) throw invalid(position, bytes);
    position += bytes.length;
    yield bytes;
  }
}

function invalid(position: number, bytes: Buffer): Error {
  const at = validPrefix(bytes);
  const details = `byte ${position + at}: ${describeFault(bytes, at)}`;
  return inputError('invalid_json', 'The body is not valid JSON: it is not UTF-8', details);
}

export function explainNotUtf8(bytes: Buffer): string {
  const at = validPrefix(bytes);
  return `byte ${at + 1} is not UTF-8: ${describeFault(bytes, at)}`;
}

export function describeFault(bytes: Buffer, at: number): string {
  const byte = bytes[at] ?? 0;
  const hex = `0x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return byte === NO_CHARACTER[0] ? `${hex}, or bytes that are not a character of the file's encoding` : hex;
}
