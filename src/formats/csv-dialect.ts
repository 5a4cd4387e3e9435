export interface CsvDialect {
  /** Text between cells. `blanks` means any number of blanks. */
  readonly delimiter: string;
  /** An ASCII character, or empty for none. */
  readonly quote: string;
  /** The quote itself (doubled), a backslash, or empty for none. */
  readonly escape: string;
  /** Lines that start with this are not records. Empty for none. */
  readonly comment: string;
  /** Unquoted cells that mean an empty cell. */
  readonly nulls: readonly string[];
}

/** Dialect of the records, and whether short records are padded. */
export interface CsvForm {
  readonly dialect: CsvDialect;
  readonly ragged: 'refuse' | 'pad';
}

/** Returns true for RFC 4180 with any ASCII delimiter. Such records are stored unchanged. */
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
  /** A blank if `isBlanks`. */
  readonly delimiter: Buffer;
  /** Any run of blanks and tabs separates cells. Runs at both ends of a record mean nothing. */
  readonly isBlanks: boolean;
  /** -1 for none. */
  readonly quote: number;
  /** A quote between letters is an apostrophe (`'O'Brien'`). It neither opens nor closes a cell. */
  readonly hasApostrophes: boolean;
  /** Makes the next byte ordinary. The quote does so only inside quotes. -1 for none. */
  readonly escape: number;
  /** Lines that start with this are not records. Empty for none. */
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
    // Bytes of a delimiter that is not ASCII look like letters.
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
