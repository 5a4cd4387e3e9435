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
  /** Makes an ordinary byte of the next one: the quote itself, within quotes only; another byte, anywhere; -1: none. */
  readonly escape: number;
  /** At the start of a line: the line is none of the records'. Empty: none. */
  readonly comment: Buffer;
  /** Cells without quotes that mean the same as an empty one. */
  readonly nulls: readonly Buffer[];
}

const TAB = 9;
const SPACE = 32;

/** The parts of a header that tell how records are written. */
interface RecordForm {
  readonly delimiter: string;
  readonly dialect?: CsvDialect;
}

/** Returns the marks of the records after this header, as they stand in the file. */
export function marksOf({ delimiter, dialect = plainDialect({ delimiter }) }: RecordForm): CsvMarks {
  const isBlanks = dialect.delimiter === 'blanks';
  return {
    delimiter: Buffer.from(isBlanks ? ' ' : dialect.delimiter),
    isBlanks,
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
