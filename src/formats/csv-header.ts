/** What the first record of a CSV settles for all the others. */
export interface CsvHeader {
  /** One of `,` `;` tab `|`. */
  readonly delimiter: string;
  /** Column names in file order, as written (BOM removed, not trimmed). */
  readonly columns: readonly string[];
}
