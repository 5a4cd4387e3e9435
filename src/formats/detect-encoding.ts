import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { findUtf16, markedEncoding, TextReader } from './text-encoding.ts';
import { describeFault, splitBytes, validPrefix } from './utf8.ts';

/** A character encoding by its name in the WHATWG Encoding Standard, and what a person should know of how it was found. */
export interface FoundEncoding {
  readonly name: string;
  readonly notes: readonly string[];
}

/** A file is UTF-8 if at most one in so many of its characters beyond ASCII is broken. */
const BROKEN_SHARE = 10;

/**
 * The encoding of a text: by its mark, as `said` (a name, not a label), or by what it begins with. All of `head` is looked at;
 * `isWhole` if nothing follows it.
 * @throws InputError `unsupported_format` where the bytes leave it open, or contradict what is said.
 */
export function findEncoding(head: Buffer, isWhole: boolean, said: string | null): FoundEncoding {
  const marked = markedEncoding(head);
  if (isUtf32(head))
    throw inputError('unsupported_format', 'The file is in UTF-32; send it in UTF-8', 'byte 0');
  if (marked !== null) return { name: marked, notes: notesOfMark(marked, said) };
  const utf16 = findUtf16(head);
  if (said !== null) return { name: said, notes: notesOfSaid(said, head, utf16) };
  if (utf16 !== null) return found(utf16);
  const text = isWhole ? head : head.subarray(0, head.length - splitBytes(head));
  if (isUtf8(text) || isNearlyUtf8(text)) return found('utf-8');
  if (!isWestern(text)) throw notUtf8(text);
  return found(
    'windows-1252',
    'The file is not in UTF-8; its letters say that it is in windows-1252, and it was read so (encoding= says otherwise).',
  );
}

function found(name: string, ...notes: readonly string[]): FoundEncoding {
  return { name, notes };
}

/** In UTF-16 LE it would begin with U+0000, which no text does. */
function isUtf32(head: Buffer): boolean {
  const start = head.toString('latin1', 0, 4);
  return start === '\xff\xfe\0\0' || start === '\0\0\xfe\xff';
}

function notesOfMark(name: string, said: string | null): string[] {
  if (said === null || said === name) return [];
  return [
    `The file begins with the byte order mark of ${name} and was read so, not in ${said} as encoding= says.`,
  ];
}

/**
 * Follows what is said, unless it makes Chinese of what is plainly something else: the halves of UTF-16 exchanged, or text in
 * bytes read as UTF-16.
 */
function notesOfSaid(said: string, head: Buffer, utf16: string | null): string[] {
  const saysUtf16 = said.startsWith('utf-16');
  if (utf16 !== null && utf16 !== said) {
    throw contradiction(said, saysUtf16 ? `the bytes are those of ${utf16}` : `the file is in ${utf16}`);
  }
  if (!saysUtf16 || head.length === 0) {
    const isMisread =
      said !== 'utf-8' && isUtf8(head.subarray(0, head.length - splitBytes(head))) && hasHigh(head);
    return isMisread
      ? [`The file was read in ${said}, as encoding= says; its bytes are valid UTF-8 too.`]
      : [];
  }
  if (!head.includes(0) && isUtf8(head)) throw contradiction(said, 'its bytes are plain text');
  return [];
}

function hasHigh(head: Buffer): boolean {
  return head.some((byte) => byte >= 0x80);
}

function contradiction(said: string, but: string): Error {
  return inputError('unsupported_format', `encoding= says ${said}, but ${but}`, 'encoding');
}

/** Returns true if nearly all of its characters beyond ASCII are UTF-8, as in a file of which a few records are broken. */
function isNearlyUtf8(text: Buffer): boolean {
  let valid = 0;
  let broken = 0;
  for (let at = 0; at < text.length; ) {
    const first = text[at] as number;
    if (first < 0x80) {
      at++;
      continue;
    }
    const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    const isBegun = first >= 0xc2 && (text[at + 1] ?? 0) >> 6 === 2 && at + length <= text.length;
    const isCharacter = isBegun && isUtf8(text.subarray(at, at + length));
    if (isCharacter) valid++;
    else broken++;
    at += isCharacter ? length : 1;
  }
  return broken * BROKEN_SHARE <= valid;
}

/**
 * Patterns that text in windows-1252 does not hold. A byte is ø there and ř in windows-1250, ý there and ı in windows-1254; what stands
 * beside it tells Western European words from others. The rules refuse too much rather than too little: a refusal costs an option.
 */
const foreign: readonly RegExp[] = [
  // Controls, and bytes that are no character.
  /[^\P{Cc}\t\n\f\r\cZ]/u,
  // Letters of Icelandic or rare ones, elsewhere those of Slavic, Turkish and Baltic words; signs that ISO-8859-15 has not.
  /[ŠšŽžŸÿÝýÞþÐð¤¦¨¸¼½¾ƒˆ˜‰†‡]/,
  // Words of other scripts.
  /[À-ÿŒœ]{3}|(?<!\p{L})[À-ÿŒœ]{2}(?!\p{L})/u,
  /[aeiouyà-åè-ïò-öù-ü][æø]|[æø][aeiouyà-åè-ïò-öù-ü]|è[aeiouyà-ü]|ñ(?![aeiouà-ü])|ç(?![aouà-ü])/i,
  /ã(?![oe])|õ(?!e)|œ(?![uid])|[ìòù]\p{L}|[êîû][bdgjkz]|[a-z][À-ÖØ-Þ](?![A-Z])|\p{Ll}\p{Lu}(?!\p{Lu})/u,
  // Signs where no word has them; an apostrophe only after an article or before an ending.
  /\p{L}[^\p{L}\p{ASCII}’´·\u00a0\u00ad]\p{L}|\p{L}[‚„«‹¡¿“‘¹±×÷¬¯¶]|[”»›…±×÷¬¯¶¹³]\p{L}|(?<!m)[²³](?<=\p{L}.)/u,
  /(?<!(?<!\p{L})(?:\p{L}|un|qu|dell|aujourd))’(?!(?:s|t|d|m|ll|re|ve)(?!\p{L}))(?<=\p{L}.)(?=\p{L})/iu,
];

/** Matches what shows that it is: a letter within a word, a currency or degree beside a number, a quote before a word. */
const western =
  /[A-Za-z][À-ÿŒœ]|[À-ÿŒœ][A-Za-z]|\d[ \u00a0]?[€£°]|[€£][ \u00a0]?\d|\p{L}’\p{L}|[“„«¿¡]\p{L}/u;

/** Tells whether bytes that are not UTF-8 are plainly windows-1252. */
export function isWestern(bytes: Buffer): boolean {
  const text = new TextReader('windows-1252').read(bytes);
  return western.test(text) && !foreign.some((pattern) => pattern.test(text));
}

function notUtf8(text: Buffer): Error {
  const at = validPrefix(text);
  const lineStart = text.lastIndexOf(10, at) + 1;
  const line = text.subarray(0, lineStart).toString('latin1').split('\n').length;
  const column = [...text.toString('utf8', lineStart, at)].length + 1;
  const advice =
    'say which encoding it is in, such as encoding=windows-1252; with encoding=utf-8, the records that are not are refused one by one';
  return inputError(
    'unsupported_format',
    `The file is not in UTF-8, and what it holds does not say clearly what it is in: ${advice}`,
    `byte ${at}, line ${line}, column ${column}: ${describeFault(text, at)}`,
  );
}
