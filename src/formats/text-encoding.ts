import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { inputError } from '../base/errors.ts';
import { named, say } from '../base/sentence.ts';
import { describeFault, encodeUtf8, splitBytes, validPrefix } from './utf8.ts';

/**
 * Returns the name of the encoding with this label. `utf-16` is a label of `utf-16le`.
 * @throws InputError `invalid_field`
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

function markedEncoding(head: Buffer): string | null {
  const start = head.toString('latin1', 0, 3);
  return marks.find(([, mark]) => start.startsWith(mark))?.[0] ?? null;
}

/**
 * In UTF-16, 1 in 8 characters must be ASCII (ids, delimiters, line ends). In a text shorter than
 * FEW_UNITS, 1 in 2 must be ASCII.
 */
const PLAIN_SHARE = 8;
const PLAIN_SHARE_OF_FEW = 2;
const FEW_UNITS = 64;
/**
 * In UTF-16, most NULs are at the same place of each pair of bytes. At the other place, there may
 * be 1 NUL for every 8 NULs at the first place, as in Ā (U+0100).
 */
const STRAY_SHARE = 8;
/**
 * If the bytes are also valid UTF-8, this share of the pairs must look like letters, so that UTF-8
 * with NULs is not mistaken for UTF-16.
 */
const LETTER_SHARE = 0.75;
const HIGHEST_LETTERS = 0x08;

/**
 * Detects UTF-16 without a byte order mark. In UTF-16, one byte of each pair is often NUL, and the
 * other byte rarely.
 */
function findUtf16(head: Buffer): 'utf-16le' | 'utf-16be' | null {
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

/**
 * Counts the NULs and the low bytes in one half of the pairs. The high byte of letters from Latin
 * to Arabic is low.
 */
function countLow(head: Buffer, from: 0 | 1) {
  const half = { nuls: 0, low: 0 };
  for (let at = from; at < head.length; at += 2) {
    const byte = head[at] as number;
    if (byte === 0) half.nuls++;
    if (byte <= HIGHEST_LETTERS) half.low++;
  }
  return half;
}

/**
 * Corrects Node 20: its windows-1252 reads 0x80 to 0x9F as Latin-1, and its ibm866 permutes 0x1A,
 * 0x1C and 0x7F.
 */
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

  /** Decodes the bytes. If there is no argument, decodes what is left from earlier calls. */
  read(bytes?: Buffer): string {
    const text = this.#decoder.decode(bytes, { stream: bytes !== undefined }).toWellFormed();
    return this.#wrong === null
      ? text
      : text.replace(this.#wrong, (each: string) => this.#right.get(each) ?? each);
  }
}

/** Number of bytes decoded at a time, so that memory does not depend on the size of buffers. */
const PIECE_BYTES = 64 * 1024;
/**
 * Number of bytes kept until more arrive. No character or switch of the character set is longer.
 */
const HELD_BYTES = 16;
/**
 * Controls and private-use characters, which decoders of code pages return for undefined bytes.
 * UTF-16 may contain them.
 */
const noText = /[\u0080-\u009f\ue000-\uf8ff\ufffd]/;
const noUtf16 = /\ufffd/;

/**
 * Leaves UTF-8 unchanged, with its byte order mark and invalid bytes. Decodes other encodings to
 * UTF-8 without the mark. An undefined character becomes a byte that UTF-8 never has, so its record
 * is refused.
 */
export function toUtf8(source: AsyncIterable<Buffer>, name: string): AsyncIterable<Buffer> {
  return name === 'utf-8' ? source : decoded(source, name);
}

async function* decoded(source: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const reader = new TextReader(name);
  const fault = name.startsWith('utf-16') ? noUtf16 : noText;
  // Node 20's decoder allocates output for the bytes of one call, and throws if bytes pending from
  // earlier calls need more. The decoder is therefore never called with few bytes.
  let rest = Buffer.alloc(0);
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = Buffer.concat([rest, bytes.subarray(at, at + PIECE_BYTES)]);
      const end = piece.length < 2 * HELD_BYTES ? 0 : piece.length - HELD_BYTES;
      rest = piece.subarray(end);
      const text = end === 0 ? '' : reader.read(piece.subarray(0, end));
      if (text !== '') yield encodeUtf8(text, fault);
    }
  }
  const text = reader.read(rest) + reader.read();
  if (text !== '') yield encodeUtf8(text, fault);
}

/** `notes` tell the user how the encoding was detected. */
interface FoundEncoding {
  readonly name: string;
  readonly notes: readonly string[];
}

/** Text counts as UTF-8 if it has at most 1 broken character per 10 valid ones outside ASCII. */
const BROKEN_SHARE = 10;

/**
 * Finds the encoding from the byte order mark, `declared` (a name, not a label), or all bytes of
 * `head`.
 * @throws InputError `unsupported_format` if the bytes are ambiguous or contradict `declared`.
 */
export function findEncoding(head: Buffer, isWhole: boolean, declared: string | null): FoundEncoding {
  const marked = markedEncoding(head);
  if (isUtf32(head))
    throw inputError('unsupported_format', 'The file is in UTF-32; send it in UTF-8', 'byte 0');
  if (marked !== null) return { name: marked, notes: notesOfMark(marked, declared) };
  const utf16 = findUtf16(head);
  if (declared !== null) return { name: declared, notes: notesOfDeclared(declared, head, utf16) };
  if (utf16 !== null) return withNotes(utf16);
  const text = isWhole ? head : head.subarray(0, head.length - splitBytes(head));
  if (isUtf8(text) || isNearlyUtf8(text)) return withNotes('utf-8');
  if (!isWestern(text)) throw notUtf8(text);
  return withNotes(
    'windows-1252',
    'The file is not in UTF-8; its letters say that it is in windows-1252, and it was read so (encoding= says otherwise).',
  );
}

function withNotes(name: string, ...notes: readonly string[]): FoundEncoding {
  return { name, notes };
}

/** As UTF-16 LE, this text would begin with U+0000, which real text never does. */
function isUtf32(head: Buffer): boolean {
  const start = head.toString('latin1', 0, 4);
  return start === '\xff\xfe\0\0' || start === '\0\0\xfe\xff';
}

function notesOfMark(name: string, declared: string | null): string[] {
  if (declared === null || declared === name) return [];
  return [
    `The file begins with the byte order mark of ${name} and was read so, not in ${declared} as encoding= says.`,
  ];
}

/**
 * Accepts the declared encoding unless it would produce garbage: UTF-16 with swapped bytes, or
 * other bytes read as UTF-16.
 */
function notesOfDeclared(declared: string, head: Buffer, utf16: string | null): string[] {
  const isUtf16Declared = declared.startsWith('utf-16');
  if (utf16 !== null && utf16 !== declared) {
    throw contradiction(
      declared,
      isUtf16Declared ? `the bytes are those of ${utf16}` : `the file is in ${utf16}`,
    );
  }
  if (!isUtf16Declared || head.length === 0) {
    const isMisread =
      declared !== 'utf-8' &&
      isUtf8(head.subarray(0, head.length - splitBytes(head))) &&
      head.some((byte) => byte >= 0x80);
    return isMisread
      ? [`The file was read in ${declared}, as encoding= says; its bytes are valid UTF-8 too.`]
      : [];
  }
  if (!head.includes(0) && isUtf8(head)) throw contradiction(declared, 'its bytes are plain text');
  return [];
}

function contradiction(declared: string, but: string): Error {
  return inputError('unsupported_format', say`${named('encoding')} says ${declared}, but ${but}`, 'encoding');
}

function isNearlyUtf8(text: Buffer): boolean {
  // U+FFFD in the source itself is valid, so it does not count as a broken character.
  let valid = text.toString('latin1').split('\xef\xbf\xbd').length - 1;
  let broken = -valid;
  for (const character of text.toString('utf8')) {
    if (character === '\ufffd') broken++;
    else if (character > '\x7f') valid++;
  }
  return broken * BROKEN_SHARE <= valid;
}

/**
 * Patterns foreign to Western text, which indicate another code page: the byte of ø is ř in
 * windows-1250, and the byte of ý is ı in windows-1254. Most of them test which letters are next to
 * each other. The patterns match too much rather than too little: a refused caller can set an
 * option.
 */
const foreign: readonly RegExp[] = [
  // Controls, and bytes that are not characters.
  /[^\P{Cc}\t\n\f\r\cZ]/u,
  // Letters that are rare in Western languages, and whose bytes are Slavic, Turkish or Baltic
  // letters in other code pages. Icelandic letters and symbols that ISO-8859-15 lacks are included.
  /[ŠšŽžŸÿÝýÞþÐð¤¦¨¸¼½¾ƒˆ˜‰†‡]/,
  // Sequences of accented letters are probably words in another script.
  /[À-ÿŒœ]{3}|(?<!\p{L})[À-ÿŒœ]{2}(?!\p{L})/u,
  /[aeiouyà-åè-ïò-öù-ü][æø]|[æø][aeiouyà-åè-ïò-öù-ü]|è[aeiouyà-ü]|ñ(?![aeiouà-ü])|ç(?![aouà-ü])/i,
  /ã(?![oe])|õ(?!e)|œ(?![uid])|[ìòù]\p{L}|[êîû][bdgjkz]|[a-z][À-ÖØ-Þ](?![A-Z])|\p{Ll}\p{Lu}(?!\p{Lu})/u,
  // The first of these patterns matches symbols in or next to words. The second matches
  // apostrophes, except after an article or before an English ending.
  /\p{L}[^\p{L}\p{ASCII}’´·\u00a0\u00ad]\p{L}|\p{L}[‚„«‹¡¿“‘¹±×÷¬¯¶]|[”»›…±×÷¬¯¶¹³]\p{L}|(?<!m)[²³](?<=\p{L}.)/u,
  /(?<!(?<!\p{L})(?:\p{L}|un|qu|dell|aujourd))’(?!(?:s|t|d|m|ll|re|ve)(?!\p{L}))(?<=\p{L}.)(?=\p{L})/iu,
];

/**
 * Evidence of a Western language: an accented letter in a word, a currency or degree sign at a
 * number, or a quote before a word.
 */
const western =
  /[A-Za-z][À-ÿŒœ]|[À-ÿŒœ][A-Za-z]|\d[ \u00a0]?[€£°]|[€£][ \u00a0]?\d|\p{L}’\p{L}|[“„«¿¡]\p{L}/u;

function isWestern(bytes: Buffer): boolean {
  const text = new TextReader('windows-1252').read(bytes);
  return western.test(text) && !foreign.some((pattern) => pattern.test(text));
}

function notUtf8(text: Buffer): Error {
  const at = validPrefix(text);
  const lineStart = text.lastIndexOf(10, at) + 1;
  const line = text.subarray(0, lineStart).toString('latin1').split('\n').length;
  const column = [...text.toString('utf8', lineStart, at)].length + 1;
  const advice = say`say which encoding it is in, such as ${named('encoding', 'windows-1252')}; with ${named('encoding', 'utf-8')}, the records that are not are refused one by one`;
  return inputError(
    'unsupported_format',
    say`The file is not in UTF-8, and what it holds does not say clearly what it is in: ${advice}`,
    `byte ${at}, line ${line}, column ${column}: ${describeFault(text, at)}`,
  );
}
