import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';

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
