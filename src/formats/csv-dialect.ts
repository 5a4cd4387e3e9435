export interface CsvDialect {
  /** Delimiter between cells. `blanks` means any number of spaces and tabs. */
  readonly delimiter: string;
  /** The quote: an ASCII character, or empty if the dialect has no quotes. */
  readonly quote: string;
  /**
   * The escape: the quote itself (quotes are doubled), a backslash, or empty if the dialect has no
   * escapes.
   */
  readonly escape: string;
  /** Lines that start with this text are not records. Empty if the dialect has no comments. */
  readonly comment: string;
  /** Unquoted words that mean an empty cell. */
  readonly nulls: readonly string[];
}

export interface CsvForm {
  readonly dialect: CsvDialect;
  readonly ragged: 'refuse' | 'pad';
}

/**
 * Returns true for RFC 4180 with any ASCII delimiter. Records in this form are stored unchanged.
 */
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
  /** The delimiter. A single space if `isBlanks`. */
  readonly delimiter: Buffer;
  /**
   * True if any run of blanks and tabs separates cells. Runs at both ends of a record are ignored.
   */
  readonly isBlanks: boolean;
  /** Byte of the quote, or -1 if the dialect has no quotes. */
  readonly quote: number;
  /**
   * True if a quote between letters is an apostrophe (`'O'Brien'`), which neither opens nor closes
   * a cell.
   */
  readonly hasApostrophes: boolean;
  /**
   * Byte that escapes the next byte, or -1 if there is none. If it is also the quote, it escapes
   * only inside quotes.
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
    // Bytes of 0x80 or more count as letters. With a delimiter outside ASCII, a quote next to it
    // would therefore look like an apostrophe.
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
