/** How the records of a CSV are written. */
export interface CsvDialect {
  /** One character or several; `blanks`: any number of blanks. */
  readonly delimiter: string;
  /** One ASCII character; empty: none. */
  readonly quote: string;
  /** The quote itself (doubled), a backslash, or empty: nothing. */
  readonly escape: string;
  /** A line that starts with this is no record; empty: none. */
  readonly comment: string;
  /** Cells without quotes that mean the same as an empty one. */
  readonly nulls: readonly string[];
}

/** Whether records are walked as they are: RFC 4180, with any single ASCII character between the cells. */
export function isPlain(dialect: CsvDialect): boolean {
  const { delimiter, quote, comment, nulls } = dialect;
  const isAscii = delimiter.length === 1 && delimiter.charCodeAt(0) < 0x80;
  return isAscii && quote === '"' && dialect.escape === '"' && comment === '' && nulls.length === 0;
}
