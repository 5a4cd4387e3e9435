import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';

/*
 * What text in another encoding holds that no character stands for is written as bytes that are not UTF-8 either, so that the
 * record is refused when it is read: a byte as an overlong sequence, and as another one a byte that the file ends with in the middle
 * of a character, half a surrogate pair as its three bytes, anything else as 0xFF. None of them can be part of a valid
 * sequence, whatever stands beside it, and all but the last say what was there.
 */
export const NO_CHARACTER = 0xff;
const UNDECODED_BYTES = 3;

/** Writes a byte that could not be decoded; returns where it ends. */
export function writeUndecoded(byte: number, target: Uint8Array, at: number): number {
  target[at] = 0xe0;
  target[at + 1] = 0x80 | (byte >> 6);
  target[at + 2] = 0x80 | (byte & 0x3f);
  return at + UNDECODED_BYTES;
}

/** Writes the byte of UTF-16 that a file ends with, though its character wants another. */
export function writeCutByte(byte: number, target: Uint8Array): void {
  writeUndecoded(byte, target, 0);
  target[1] = (target[1] as number) | CUT;
}

/** In the second byte of such a sequence. */
const CUT = 0x04;

/** Characters are at most so long. */
const LONGEST = 4;

/** Length of the longest beginning that is UTF-8. By halving as long as that is worth it: linear. */
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

/** Returns the number of bytes at the end that begin an unfinished character: 0 to 3. */
export function splitBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

/** The same bytes, cut so that no character is split between two buffers, as far as they are UTF-8. */
export async function* wholeCharacters(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    const joined = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const whole = joined.subarray(0, joined.length - splitBytes(joined));
    // A copy: the buffer itself may be large, and is somebody else's.
    rest = Buffer.from(joined.subarray(whole.length));
    if (whole.length > 0) yield whole;
  }
  if (rest.length > 0) yield rest;
}

/**
 * The same, once they are known to be UTF-8.
 * @throws InputError `invalid_json` for anything else.
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

/** Describes the bytes at `at` that are not UTF-8. */
export function describeFault(bytes: Buffer, at: number): string {
  const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
  if (first === 0xe0 && second >= 0x80 && second < 0x88 && third >> 6 === 2) {
    const byte = hex(((second & 3) << 6) | (third & 0x3f));
    return (second & CUT) === 0
      ? `${byte}, for which the file's encoding has no character`
      : `${byte}, half of the UTF-16 character in which the file ends`;
  }
  if (first === 0xed && second >= 0xa0 && second < 0xc0 && third >> 6 === 2) {
    return 'half a surrogate pair';
  }
  return hex(first);
}

/** Tells whether the bytes were decoded from another encoding: they hold what no character stood for. */
export function isDecoded(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0xe0); at >= 0; at = bytes.indexOf(0xe0, at + 1)) {
    const second = bytes[at + 1] ?? 0;
    if (second >= 0x80 && second < 0x88 && (bytes[at + 2] ?? 0) >> 6 === 2) return true;
  }
  return false;
}

function hex(byte: number): string {
  return `0x${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}
