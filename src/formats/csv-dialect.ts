import { CR, LF } from './record-scanner.ts';

export interface CsvDialect {
  /** The text between cells; `blanks` stands for any number of blanks. */
  readonly delimiter: string;
  /** An ASCII character; empty for none. */
  readonly quote: string;
  /** The quote itself (doubled), a backslash, or empty: nothing. */
  readonly escape: string;
  /** A line that starts with this is no record; empty: none. */
  readonly comment: string;
  /** Cells without quotes that mean the same as an empty one. */
  readonly nulls: readonly string[];
}

/** Returns true if records are walked as they are: RFC 4180, with any single ASCII character between the cells. */
export function isPlain(dialect: CsvDialect): boolean {
  const { delimiter, quote, comment, nulls } = dialect;
  const isAscii = delimiter.length === 1 && delimiter.charCodeAt(0) < 0x80;
  return isAscii && quote === '"' && dialect.escape === '"' && comment === '' && nulls.length === 0;
}

/** RFC 4180, with this delimiter. */
export function plainDialect({ delimiter }: Pick<CsvDialect, 'delimiter'>): CsvDialect {
  return { delimiter, quote: '"', escape: '"', comment: '', nulls: [] };
}

/** The bytes that mean something in a CSV. */
export interface CsvMarks {
  /** Between the cells; of `isBlanks`, a blank. */
  readonly delimiter: Buffer;
  /** Any run of blanks and tabs stands between the cells; those at both ends of a record mean nothing. */
  readonly isBlanks: boolean;
  /** -1: none. */
  readonly quote: number;
  /** A quote may be an apostrophe inside a word (`isInWord`). */
  readonly hasApostrophes: boolean;
  /** Makes an ordinary byte of the next one: the quote itself, within quotes only; another byte, anywhere; -1: none. */
  readonly escape: number;
  /** At the start of a line: the line is none of the records'. Empty: none. */
  readonly comment: Buffer;
}

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const TAB = 9;
const SPACE = 32;

/** The parts of a header that tell how records are written. */
export interface RecordForm {
  readonly delimiter: string;
  readonly dialect?: CsvDialect;
}

/** Returns the marks of the records after this header, as they stand in the file. */
export function marksOf({ delimiter, dialect }: RecordForm): CsvMarks {
  if (dialect === undefined) return plainMarks(delimiter);
  const isBlanks = dialect.delimiter === 'blanks';
  const mark = Buffer.from(isBlanks ? ' ' : dialect.delimiter);
  const quote = byteOf(dialect.quote);
  return {
    delimiter: mark,
    isBlanks,
    quote,
    // The bytes of a delimiter that is not ASCII look like those of letters.
    hasApostrophes: quote === APOSTROPHE && mark.every((byte) => byte < 0x80),
    escape: byteOf(dialect.escape),
    comment: Buffer.from(dialect.comment),
  };
}

/** Returns the marks of RFC 4180. */
export function plainMarks(delimiter: string): CsvMarks {
  const none = Buffer.alloc(0);
  return {
    delimiter: Buffer.from(delimiter),
    isBlanks: false,
    quote: QUOTE,
    hasApostrophes: false,
    escape: QUOTE,
    comment: none,
  };
}

function byteOf(character: string): number {
  return character === '' ? -1 : character.charCodeAt(0);
}

/**
 * Whether the quote at `at` is an apostrophe inside a word, as in `'O'Brien'`: between letters a quote neither opens a cell nor
 * closes one, so no well-formed record is read otherwise.
 */
export function isInWord({ hasApostrophes }: CsvMarks, buf: Buffer, at: number): boolean {
  return hasApostrophes && isWordByte(buf[at - 1]) && isWordByte(buf[at + 1]);
}

/** Returns true for a byte of a letter or digit in any language. */
function isWordByte(byte = 0): boolean {
  const letter = byte | 0x20;
  return byte >= 0x80 || (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39);
}

export function isBlankByte(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

/** The meanings of a byte outside of quotes. */
export const ORDINARY = 0;
export const DELIMITER = 1;
export const QUOTES = 2;
export const ESCAPES = 3;
export const ENDS_LINE = 4;

export function meaningsOf({ delimiter, isBlanks, quote, escape: escapes }: CsvMarks): Uint8Array {
  const meanings = new Uint8Array(256);
  meanings[delimiter[0] ?? 0] = DELIMITER;
  if (isBlanks) meanings[TAB] = DELIMITER;
  if (escapes >= 0 && escapes !== quote) meanings[escapes] = ESCAPES;
  if (quote >= 0) meanings[quote] = QUOTES;
  meanings[LF] = ENDS_LINE;
  meanings[CR] = ENDS_LINE;
  return meanings;
}

/** The result of `delimiterAt` if more bytes are needed. */
export const MORE = -1;

/** Length of the delimiter at `at` in buf[…, end); 0 if none stands there; MORE. */
export function delimiterAt(
  { delimiter, isBlanks }: CsvMarks,
  buf: Buffer,
  at: number,
  end: number,
  final: boolean,
): number {
  if (isBlanks) {
    let to = at;
    while (to < end && isBlankByte(buf[to])) to++;
    return to - at;
  }
  for (let i = 0; i < delimiter.length; i++) {
    if (at + i >= end) return final ? 0 : MORE;
    if (buf[at + i] !== delimiter[i]) return 0;
  }
  return delimiter.length;
}

/** Returns true if a cell may start at `at`: at `lowest`, at the start of a line, or behind a delimiter. */
export function startsCell(
  { delimiter, isBlanks }: CsvMarks,
  buf: Buffer,
  at: number,
  lowest: number,
): boolean {
  if (at === lowest) return true;
  const before = buf[at - 1];
  if (before === LF || before === CR || (isBlanks && isBlankByte(before))) return true;
  const from = at - delimiter.length;
  return from >= Math.max(0, lowest) && delimiter.compare(buf, from, at) === 0;
}

/** Returns true if no cell of buf[start, end), a well-formed record, has anything in it but blanks, in quotes or not. */
export function isBlankRecord(marks: CsvMarks, buf: Buffer, start: number, end: number): boolean {
  const { quote } = marks;
  let inside = false;
  for (let at = start; at < end; ) {
    const byte = buf[at];
    const length = inside ? 0 : delimiterAt(marks, buf, at, end, true);
    if (length > 0) at += length;
    else if (isBlankByte(byte)) at++;
    else if (byte !== quote || (inside && buf[at + 1] === quote && at + 1 < end)) return false;
    else {
      inside = !inside;
      at++;
    }
  }
  return true;
}
