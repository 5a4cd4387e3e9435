import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { inputError } from '../domain/errors.ts';
import { encodeUtf8 } from './utf8.ts';

/**
 * Returns the encoding that a label of the WHATWG Encoding Standard stands for: `latin1` is `windows-1252`, `utf-16` is `utf-16le`.
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

const marks: readonly (readonly [name: string, mark: string])[] = [
  ['utf-8', '\xef\xbb\xbf'],
  ['utf-16le', '\xff\xfe'],
  ['utf-16be', '\xfe\xff'],
];

/** Returns the encoding that a byte order mark stands for; null if there is none. */
export function markedEncoding(head: Buffer): string | null {
  const start = head.toString('latin1', 0, 3);
  return marks.find(([, mark]) => start.startsWith(mark))?.[0] ?? null;
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
 * Detects UTF-16 without a mark: NULs stand in one byte of each pair and not in the other, and there are as many of them as text
 * with delimiters and line ends has.
 */
export function findUtf16(head: Buffer): 'utf-16le' | 'utf-16be' | null {
  if (!head.includes(0)) return null;
  const units = head.length >> 1;
  if (units < 2) return null;
  const first = countLow(head, 0);
  const second = countLow(head, 1);
  const isText = isUtf8(head);
  const share = units < FEW_UNITS ? PLAIN_SHARE_OF_FEW : PLAIN_SHARE;
  const isHighHalf = (half: typeof first, other: typeof first) =>
    half.nuls > 0 &&
    other.nuls * STRAY_SHARE <= half.nuls &&
    (isText ? half.low >= LETTER_SHARE * units : half.nuls * share >= units);
  if (isHighHalf(second, first)) return 'utf-16le';
  return isHighHalf(first, second) ? 'utf-16be' : null;
}

/** Counts NULs in one byte of all pairs, and with what follows them: in UTF-16, the high bytes of letters from Latin to Arabic. */
function countLow(head: Buffer, from: 0 | 1) {
  const half = { nuls: 0, low: 0 };
  for (let at = from; at < head.length; at += 2) {
    const byte = head[at] as number;
    if (byte === 0) half.nuls++;
    if (byte <= HIGHEST_LETTERS) half.low++;
  }
  return half;
}

/** Corrects `TextDecoder` where it is wrong: Node 20 reads 0x80 to 0x9F of windows-1252 as Latin-1, and ICU exchanges control characters. */
const corrections: ReadonlyMap<string, readonly [wrong: string, right: string]> = new Map([
  [
    'windows-1252',
    [
      '\x80\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8e\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9e\x9f',
      '€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ',
    ],
  ],
  ['ibm866', ['\x1a\x1c\x7f', '\x7f\x1a\x1c']],
]);

/** The decoder of an encoding, corrected. */
export class TextReader {
  readonly #decoder: TextDecoder;
  readonly #wrong: RegExp | null;
  readonly #right: ReadonlyMap<string, string>;

  constructor(name: string) {
    this.#decoder = new TextDecoder(name);
    const [wrong = '', right = ''] = corrections.get(name) ?? [];
    this.#wrong = wrong === '' ? null : new RegExp(`[${wrong}]`, 'g');
    this.#right = new Map([...wrong].map((character, at) => [character, right.charAt(at)]));
  }

  /** Decodes the next bytes; without any, the end. */
  read(bytes?: Buffer): string {
    const text = this.#decoder.decode(bytes, { stream: bytes !== undefined }).toWellFormed();
    return this.#wrong === null
      ? text
      : text.replace(this.#wrong, (each: string) => this.#right.get(each) ?? each);
  }
}

/** Bytes that are decoded at a time, so that memory is flat however large the buffers are. */
const PIECE_BYTES = 64 * 1024;
/** Bytes that wait for those after them; more than any character or switch of a character set has. */
const HELD_BYTES = 16;
/** Controls and characters for private use stand for bytes that are no character of a code page; in UTF-16 they may be text. */
const noText = /[\u0080-\u009f\ue000-\uf8ff\ufffd]/;
const noUtf16 = /\ufffd/;

/**
 * UTF-8 passes through as it is, its mark and its faults included (a record with a fault is refused when it is read).
 * Anything else becomes UTF-8 without its mark; a byte that is never UTF-8 stands for what is no character, so that those records
 * are refused too.
 */
export function toUtf8(source: AsyncIterable<Buffer>, name: string): AsyncIterable<Buffer> {
  return name === 'utf-8' ? source : decoded(source, name);
}

async function* decoded(source: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const reader = new TextReader(name);
  const fault = name.startsWith('utf-16') ? noUtf16 : noText;
  // The decoder of Node 20 makes room by the bytes of one call, and throws where bytes that it kept need more: it never gets few.
  let held = Buffer.alloc(0);
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = Buffer.concat([held, bytes.subarray(at, at + PIECE_BYTES)]);
      const end = piece.length < 2 * HELD_BYTES ? 0 : piece.length - HELD_BYTES;
      held = piece.subarray(end);
      const text = end === 0 ? '' : reader.read(piece.subarray(0, end));
      if (text !== '') yield encodeUtf8(text, fault);
    }
  }
  const text = reader.read(held) + reader.read();
  if (text !== '') yield encodeUtf8(text, fault);
}
