import { isAscii, isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { NO_CHARACTER, writeCutByte, writeUndecoded } from './utf8.ts';

/** The character encoding of a file. */
export interface TextEncoding {
  /** The name in the WHATWG Encoding Standard, in small letters. */
  readonly name: string;
  /** Length of the byte order mark at the start; 0 if there is none. */
  readonly bomBytes: 0 | 2 | 3;
}

/**
 * The encoding that a label stands for: `latin1` is `windows-1252`, `utf-16` is `utf-16le`. Labels are those of the WHATWG
 * Encoding Standard, as `TextDecoder` knows them.
 * @throws InputError `invalid_field` for any other.
 */
export function encodingOfLabel(label: string): string {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    const examples = 'utf-8, utf-16le, windows-1252, iso-8859-2, windows-1251, shift_jis or gb18030';
    const message = `"${label}" is no encoding that can be read; give a label of the WHATWG Encoding Standard, such as ${examples}`;
    throw inputError('invalid_field', message, 'encoding');
  }
}

const marks = [
  { name: 'utf-8', mark: Buffer.of(0xef, 0xbb, 0xbf), bomBytes: 3 },
  { name: 'utf-16le', mark: Buffer.of(0xff, 0xfe), bomBytes: 2 },
  { name: 'utf-16be', mark: Buffer.of(0xfe, 0xff), bomBytes: 2 },
] as const;

/** By its byte order mark; null if there is none. */
export function markedEncoding(head: Buffer): TextEncoding | null {
  const found = marks.find(({ mark }) => head.subarray(0, mark.length).equals(mark));
  return found === undefined ? null : { name: found.name, bomBytes: found.bomBytes };
}

/**
 * UTF-8 passes through as it is, its mark and its faults included (a record with a fault is refused when it is read).
 * Anything else becomes UTF-8; where no character stands for its bytes, there stand bytes that are not UTF-8 (`utf8.ts`), so
 * that those records are refused too.
 */
export function toUtf8(
  source: AsyncIterable<Buffer>,
  { name, bomBytes }: TextEncoding,
): AsyncIterable<Buffer> {
  if (name === 'utf-8') return source;
  if (name === 'utf-16le' || name === 'utf-16be') return utf16ToUtf8(source, name === 'utf-16be', bomBytes);
  return isMultiByte(name) ? multiByteToUtf8(source, name) : codePageToUtf8(source, name);
}

/** Bytes of UTF-8 that a code unit takes at most. */
const UNIT_BYTES = 3;

/** UTF-16 as UTF-8, without its mark. Half a surrogate pair and an odd last byte become what is not UTF-8. */
async function* utf16ToUtf8(
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

/** Encodes a leftover: the first half of a pair, a byte, or both. */
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

/** Encodes halves of surrogate pairs as if they were characters; `Buffer.from` would replace them. */
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

/** Counts of one byte of all pairs. */
interface Half {
  nuls: number;
  /** NULs, and what follows them: in UTF-16, of letters from Latin to Arabic. */
  low: number;
}

/** At least one in so many characters of UTF-16 is ASCII (ids, delimiters, line ends); one in two of a short sample. */
const PLAIN_SHARE = 8;
const PLAIN_SHARE_OF_FEW = 2;
const FEW_UNITS = 64;
/** At most one in so many NULs may stand in the other byte, as in Ā. */
const STRAY_SHARE = 8;
/** The share of letters in one half of bytes that are valid UTF-8 too, so that text with NULs is not taken for UTF-16. */
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

/*
 * Text in a code page, as UTF-8. `TextDecoder` says what each byte means, but for four things. ICU exchanges some control
 * characters of ASCII (ibm866), and Node 20 reads 0x80 to 0x9F of windows-1252 as Latin-1. A byte that is no character
 * becomes a control character (U+0080 to U+009F) or one for private use, which are no text: in a file they say that the
 * encoding is another one. The exception is the apple of Macintosh.
 */

/** Bytes that are looked at together: if they are ASCII, they are copied whole. */
const BLOCK_BYTES = 512;
/** Bytes that are transcoded at a time, so that memory is flat however large the buffers are. */
const PIECE_BYTES = 64 * 1024;
/** Bytes of UTF-8 that one byte of a code page becomes at most. */
const LONGEST = 3;

const multiByte: ReadonlySet<string> = new Set([
  'gbk',
  'gb18030',
  'big5',
  'euc-jp',
  'iso-2022-jp',
  'shift_jis',
  'euc-kr',
]);

function isMultiByte(encoding: string): boolean {
  return multiByte.has(encoding);
}

/** windows-1252 from 0x80; what it does not have is blank. */
const windows1252 = '€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ';
const APPLE = '\uf8ff';
const noText = /[\u0080-\u009f\ufffd\ue000-\uf8ff]/;

const pages = new Map<string, readonly (string | null)[]>();

/** The characters of a single-byte code page, by their bytes; null where it has none. */
export function readCodePage(encoding: string): readonly (string | null)[] {
  const known = pages.get(encoding);
  if (known !== undefined) return known;
  const page = Array.from({ length: 256 }, (_, byte) => characterOf(encoding, byte));
  pages.set(encoding, page);
  return page;
}

function characterOf(encoding: string, byte: number): string | null {
  if (byte < 0x80) return String.fromCharCode(byte);
  if (encoding === 'windows-1252' && byte < 0xa0) {
    const character = windows1252.charAt(byte - 0x80);
    return character === ' ' ? null : character;
  }
  const character = new TextDecoder(encoding).decode(Uint8Array.of(byte));
  if (character === APPLE && encoding === 'macintosh') return character;
  return character.length !== 1 || noText.test(character) ? null : character;
}

/** UTF-8 by byte: each has four places, its length and up to three bytes. */
function createTable(encoding: string): Uint8Array {
  const table = new Uint8Array(256 * (LONGEST + 1));
  for (const [byte, character] of readCodePage(encoding).entries()) {
    const at = byte * (LONGEST + 1);
    const end =
      character === null
        ? writeUndecoded(byte, table, at + 1)
        : at + 1 + Buffer.from(table.buffer).write(character, at + 1, 'utf8');
    table[at] = end - at - 1;
  }
  return table;
}

/** Measured on one core: 360 MB/s of a list of customers, 200 MB/s where two bytes of three are beyond ASCII. */
async function* codePageToUtf8(source: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const table = createTable(encoding);
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      yield isAscii(piece) ? piece : transcode(piece, table);
    }
  }
}

function transcode(bytes: Buffer, table: Uint8Array): Buffer {
  const target = Buffer.allocUnsafe(LONGEST * bytes.length);
  let to = 0;
  for (let start = 0; start < bytes.length; start += BLOCK_BYTES) {
    const end = Math.min(bytes.length, start + BLOCK_BYTES);
    const block = bytes.subarray(start, end);
    if (isAscii(block)) {
      target.set(block, to);
      to += block.length;
    } else to = transcodeBlock(block, table, target, to);
  }
  return target.subarray(0, to);
}

function transcodeBlock(block: Buffer, table: Uint8Array, target: Buffer, start: number): number {
  let to = start;
  for (let at = 0; at < block.length; at++) {
    const byte = block[at] as number;
    if (byte < 0x80) {
      target[to++] = byte;
      continue;
    }
    const entry = byte * (LONGEST + 1);
    const length = table[entry] as number;
    for (let i = 1; i <= length; i++) target[to++] = table[entry + i] as number;
  }
  return to;
}

/** Bytes that wait for those after them; more than any character or switch of a character set has. */
const HELD_BYTES = 16;

/**
 * Encodings whose characters may have several bytes. What they do not have comes out of the decoder as U+FFFD, and so is not
 * told from one that was there. The decoder of Node 20 makes room by the bytes of one call, and throws where bytes that it
 * kept from the last one need more: so it never gets few.
 */
async function* multiByteToUtf8(source: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding);
  let held = Buffer.alloc(0);
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = Buffer.concat([held, bytes.subarray(at, at + PIECE_BYTES)]);
      const end = piece.length < 2 * HELD_BYTES ? 0 : piece.length - HELD_BYTES;
      held = piece.subarray(end);
      const text = end === 0 ? '' : decoder.decode(piece.subarray(0, end), { stream: true });
      if (text !== '') yield encodeText(text);
    }
  }
  const text = decoder.decode(held);
  if (text !== '') yield encodeText(text);
}

const eachNoText = new RegExp(noText, 'g');

function encodeText(decoded: string): Buffer {
  const text = decoded.toWellFormed();
  const bytes = Buffer.from(text, 'utf8');
  if (!noText.test(text)) return bytes;
  let from = 0;
  for (const [character] of text.matchAll(eachNoText)) {
    const at = bytes.indexOf(character, from);
    from = at + Buffer.byteLength(character);
    bytes.fill(NO_CHARACTER, at, from);
  }
  return bytes;
}
