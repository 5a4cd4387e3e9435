export interface CsvDialect {
  /** Text between two cells. `blanks` means any number of spaces and tabs. */
  readonly delimiter: string;
  /** The quote: an ASCII character, or empty if the dialect has no quotes. */
  readonly quote: string;
  /**
   * The escape: a backslash, or the quote itself if quotes are doubled. Empty if there are no
   * escapes.
   */
  readonly escape: string;
  /** Lines that start with this text are not records. Empty if there are no comments. */
  readonly comment: string;
  /** Unquoted words that mean an empty cell. */
  readonly nulls: readonly string[];
}

export interface CsvForm {
  readonly dialect: CsvDialect;
  readonly ragged: 'refuse' | 'pad';
}

/** True for RFC 4180 with any ASCII delimiter, whose records are stored unchanged. */
export function isPlain({ dialect, ragged }: CsvForm): boolean {
  const { delimiter, quote, comment, nulls } = dialect;
  const isAscii = delimiter.length === 1 && delimiter.charCodeAt(0) < 0x80;
  const isBare = comment === '' && nulls.length === 0 && ragged === 'refuse';
  return isAscii && quote === '"' && dialect.escape === '"' && isBare;
}

export function plainMarks({ delimiter }: Pick<CsvDialect, 'delimiter'>): CsvMarks {
  return marksOf({ delimiter, quote: '"', escape: '"', comment: '', nulls: [] });
}

export interface CsvMarks {
  /** The delimiter, or a single space if `isBlanks` is true. */
  readonly delimiter: Buffer;
  /** True if runs of blanks and tabs separate cells. Runs at both ends of a record are ignored. */
  readonly isBlanks: boolean;
  /** Byte of the quote, or -1 if the dialect has no quotes. */
  readonly quote: number;
  /** True if a quote between letters is an apostrophe (`'O'Brien'`) and does not end a cell. */
  readonly hasApostrophes: boolean;
  /**
   * Byte of the escape, or -1 if the dialect has no escape. If the escape is also the quote, it
   * escapes only inside quotes.
   */
  readonly escape: number;
  readonly comment: Buffer;
  readonly nulls: readonly Buffer[];
}

const TAB = 9;
const SPACE = 32;

export function marksOf(dialect: CsvDialect): CsvMarks {
  const isBlanks = dialect.delimiter === 'blanks';
  const delimiter = Buffer.from(isBlanks ? ' ' : dialect.delimiter);
  return {
    delimiter,
    isBlanks,
    // Bytes of 0x80 or more count as letters, so a quote next to a delimiter outside ASCII would
    // look like an apostrophe.
    hasApostrophes: dialect.quote === "'" && delimiter.every((byte) => byte < 0x80),
    quote: byteOf(dialect.quote),
    escape: byteOf(dialect.escape),
    comment: Buffer.from(dialect.comment),
    nulls: dialect.nulls.map((word) => Buffer.from(word)),
  };
}

function byteOf(character: string): number {
  return character === '' ? -1 : character.charCodeAt(0);
}

export function isBlankByte(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

/** True for a quote between letters or digits if the dialect has apostrophes. */
export function isApostrophe({ hasApostrophes }: CsvMarks, buf: Buffer, at: number): boolean {
  return hasApostrophes && isWordByte(buf[at - 1]) && isWordByte(buf[at + 1]);
}

function isWordByte(byte = 0): boolean {
  const letter = byte | 0x20;
  return byte >= 0x80 || (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39);
}
