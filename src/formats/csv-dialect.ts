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

/** How the records of a CSV are written: its dialect, and whether records with fewer cells than columns are filled up. */
export interface CsvForm {
  readonly dialect: CsvDialect;
  readonly ragged: 'refuse' | 'pad';
}

/** Returns true if records are stored and read as they are: RFC 4180, with any single ASCII character between the cells. */
export function isPlain({ dialect, ragged }: CsvForm): boolean {
  const { delimiter, quote, comment, nulls } = dialect;
  const isAscii = delimiter.length === 1 && delimiter.charCodeAt(0) < 0x80;
  const isBare = comment === '' && nulls.length === 0 && ragged === 'refuse';
  return isAscii && quote === '"' && dialect.escape === '"' && isBare;
}

/** Returns the marks of RFC 4180 with this delimiter. */
export function plainMarks({ delimiter }: Pick<CsvDialect, 'delimiter'>): CsvMarks {
  return marksOf({ delimiter, quote: '"', escape: '"', comment: '', nulls: [] });
}

/** The bytes that mean something in a CSV. */
export interface CsvMarks {
  /** Between the cells; of `isBlanks`, a blank. */
  readonly delimiter: Buffer;
  /** Any run of blanks and tabs stands between the cells; those at both ends of a record mean nothing. */
  readonly isBlanks: boolean;
  /** -1: none. */
  readonly quote: number;
  /** A quote between letters is an apostrophe (`'O'Brien'`): it neither opens a cell nor closes one. */
  readonly hasApostrophes: boolean;
  /** Makes an ordinary byte of the next one: the quote itself, within quotes only; another byte, anywhere; -1: none. */
  readonly escape: number;
  /** At the start of a line: the line is none of the records'. Empty: none. */
  readonly comment: Buffer;
  /** Cells without quotes that mean the same as an empty one. */
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
    // The bytes of a delimiter that is not ASCII look like those of letters.
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
