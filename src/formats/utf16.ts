import { isUtf8 } from 'node:buffer';
import { writeCutByte } from './utf8.ts';

/** Bytes of UTF-8 that a code unit takes at most. */
const UNIT_BYTES = 3;

/** UTF-16 as UTF-8, without its mark. Half a surrogate pair and an odd last byte become what is not UTF-8. */
export async function* utf16ToUtf8(
  source: AsyncIterable<Buffer>,
  bigEndian: boolean,
  bomBytes: number,
): AsyncGenerator<Buffer> {
  let skip = bomBytes;
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    // A copy in any case: swapping changes it, and the bytes belong to somebody else.
    const units = Buffer.concat([rest, bytes]);
    const end = wholeCharacters(units, bigEndian);
    rest = Buffer.from(units.subarray(end));
    if (bigEndian) units.subarray(0, end).swap16();
    const text = units.toString('utf16le', Math.min(skip, end), end);
    skip = Math.max(0, skip - end);
    if (text !== '') yield encode(text);
  }
  if (rest.length > 0) yield encodeRest(rest, bigEndian);
}

/** Length of the part that splits no code unit and no surrogate pair. */
function wholeCharacters(units: Buffer, bigEndian: boolean): number {
  const end = units.length - (units.length % 2);
  if (end === 0) return 0;
  const high = units[bigEndian ? end - 2 : end - 1] as number;
  return high >= 0xd8 && high <= 0xdb ? end - 2 : end;
}

/** What no character came of: the first half of a pair, a byte, or both. */
function encodeRest(rest: Buffer, bigEndian: boolean): Buffer {
  const whole = rest.subarray(0, rest.length - (rest.length % 2));
  if (bigEndian) whole.swap16();
  const half = encode(whole.toString('utf16le'));
  if (whole.length === rest.length) return half;
  const last = Buffer.alloc(UNIT_BYTES);
  writeCutByte(rest.at(-1) ?? 0, last);
  return Buffer.concat([half, last]);
}

function encode(text: string): Buffer {
  return text.isWellFormed() ? Buffer.from(text, 'utf8') : encodeHalves(text);
}

/** As UTF-8, but for halves of surrogate pairs, which are written as if they were characters: `Buffer.from` would replace them. */
function encodeHalves(text: string): Buffer {
  const target = Buffer.allocUnsafe(UNIT_BYTES * text.length);
  let to = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0xd800 || code > 0xdfff) {
      to += target.write(character, to, 'utf8');
      continue;
    }
    target[to++] = 0xe0 | (code >> 12);
    target[to++] = 0x80 | ((code >> 6) & 0x3f);
    target[to++] = 0x80 | (code & 0x3f);
  }
  return target.subarray(0, to);
}

/** What stands in one byte of all pairs. */
interface Half {
  nuls: number;
  /** NULs, and what follows them: in UTF-16, of letters from Latin to Arabic. */
  low: number;
}

/** One in so many characters of UTF-16 is of ASCII at least (ids, delimiters, line ends); of a few that are looked at, one in two. */
const PLAIN_SHARE = 8;
const PLAIN_SHARE_OF_FEW = 2;
const FEW_UNITS = 64;
/** One in so many NULs may stand in the other byte: that of Ā does. */
const STRAY_SHARE = 8;
/** Of bytes that are valid UTF-8 too, so many in one half are those of letters, for the file not to be text with NULs in it. */
const LETTER_SHARE = 0.75;
const HIGHEST_LETTERS = 0x08;

/**
 * UTF-16 without a mark: NULs stand in one byte of each pair and not in the other, and there are as many of them as text with
 * delimiters and line ends has. Null if `head` does not look like that.
 */
export function findUtf16(head: Buffer): 'utf-16le' | 'utf-16be' | null {
  // Nearly every file has none.
  if (!head.includes(0)) return null;
  const units = head.length >> 1;
  if (units < 2) return null;
  const first = countLow(head, 0);
  const second = countLow(head, 1);
  const isText = isUtf8(head);
  const share = units < FEW_UNITS ? PLAIN_SHARE_OF_FEW : PLAIN_SHARE;
  const isHighHalf = (half: Half, other: Half) =>
    half.nuls > 0 &&
    other.nuls * STRAY_SHARE <= half.nuls &&
    (isText ? half.low >= LETTER_SHARE * units : half.nuls * share >= units);
  if (isHighHalf(second, first)) return 'utf-16le';
  return isHighHalf(first, second) ? 'utf-16be' : null;
}

function countLow(head: Buffer, from: 0 | 1): Half {
  const half = { nuls: 0, low: 0 };
  for (let at = from; at < head.length; at += 2) {
    const byte = head[at] as number;
    if (byte === 0) half.nuls++;
    if (byte <= HIGHEST_LETTERS) half.low++;
  }
  return half;
}
