import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';

/** The character encoding of a file, as detected from its first bytes. */
interface TextEncoding {
  readonly name: 'utf-8' | 'utf-16le' | 'utf-16be';
  /** Length of the byte order mark at the start; 0 if there is none. */
  readonly bomBytes: 0 | 2 | 3;
}

/** Without a byte order mark, UTF-16 is recognised by the NUL halves of its first two characters. */
export function detectEncoding(head: Buffer): TextEncoding {
  const [a, b, c, d] = head;
  if (a === 0xef && b === 0xbb && c === 0xbf) return { name: 'utf-8', bomBytes: 3 };
  if (a === 0xff && b === 0xfe) return { name: 'utf-16le', bomBytes: 2 };
  if (a === 0xfe && b === 0xff) return { name: 'utf-16be', bomBytes: 2 };
  if (head.length >= 4 && a !== 0 && b === 0 && c !== 0 && d === 0) return { name: 'utf-16le', bomBytes: 0 };
  if (head.length >= 4 && a === 0 && b !== 0 && c === 0 && d !== 0) return { name: 'utf-16be', bomBytes: 0 };
  return { name: 'utf-8', bomBytes: 0 };
}

/**
 * UTF-8 passes through as it is, its mark and its faults included (a record with a fault is refused when it is
 * read). UTF-16 becomes UTF-8 without a mark; a lone surrogate or an odd last byte becomes U+FFFD.
 */
export function toUtf8(source: AsyncIterable<Buffer>, encoding: TextEncoding): AsyncIterable<Buffer> {
  return encoding.name === 'utf-8' ? source : transcodeUtf16(source, encoding);
}

async function* transcodeUtf16(
  source: AsyncIterable<Buffer>,
  encoding: TextEncoding,
): AsyncGenerator<Buffer> {
  const bigEndian = encoding.name === 'utf-16be';
  let skip: number = encoding.bomBytes;
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    // A copy in any case: swapping changes it, and the bytes belong to somebody else.
    const units = Buffer.concat([rest, bytes]);
    const end = wholeCharacters(units, bigEndian);
    rest = Buffer.from(units.subarray(end));
    if (bigEndian) units.subarray(0, end).swap16();
    const text = units.toString('utf16le', Math.min(skip, end), end);
    skip = Math.max(0, skip - end);
    if (text !== '') yield Buffer.from(text, 'utf8');
  }
  if (rest.length > 0) yield Buffer.from('\ufffd', 'utf8');
}

/** Length of the part that splits no code unit and no surrogate pair. */
function wholeCharacters(units: Buffer, bigEndian: boolean): number {
  const end = units.length - (units.length % 2);
  if (end === 0) return 0;
  const high = units[bigEndian ? end - 2 : end - 1] as number;
  return high >= 0xd8 && high <= 0xdb ? end - 2 : end;
}

/**
 * The same bytes, cut so that no character is split between two buffers, once they are known to be UTF-8.
 * @throws InputError `invalid_json` for anything else.
 */
export async function* checkedUtf8(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  let position = 0;
  for await (const bytes of source) {
    const joined = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const whole = joined.subarray(0, joined.length - splitBytes(joined));
    if (!isUtf8(whole)) throw invalid(position + validPrefix(whole));
    // A copy: the buffer itself may be large, and is somebody else's.
    rest = Buffer.from(joined.subarray(whole.length));
    position += whole.length;
    if (whole.length > 0) yield whole;
  }
  if (rest.length > 0) throw invalid(position);
}

/** How many bytes at the end are the beginning of a character that goes on after them: 0 to 3. */
function splitBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

/** Length of the longest valid beginning, by halving. */
function validPrefix(bytes: Buffer): number {
  let valid = 0;
  let invalidFrom = bytes.length;
  while (invalidFrom - valid > 1) {
    const middle = (valid + invalidFrom) >> 1;
    const whole = middle - splitBytes(bytes.subarray(0, middle));
    if (whole > valid && isUtf8(bytes.subarray(valid, whole))) valid = whole;
    else if (whole > valid) invalidFrom = middle;
    else break;
  }
  return valid;
}

function invalid(byte: number): Error {
  return inputError('invalid_json', 'The body is not valid JSON: it is not UTF-8', `byte ${byte}`);
}
