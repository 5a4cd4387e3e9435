/**
 * What a file of rejects adds to the records: why each was refused, and, in CSV, the record itself where it does not
 * fit the columns. A load takes no notice of columns and keys of these names, so that the file, once mended, can be
 * sent again as it is.
 */
export const rejectColumns = [
  'sluice_row',
  'sluice_line',
  'sluice_error_code',
  'sluice_message',
  'sluice_column',
  'sluice_raw',
] as const;

/** In NDJSON, the text of a record that is no object, as the column of that name in CSV. */
export const rejectRawKey = 'sluice_raw' satisfies (typeof rejectColumns)[number];

/** The one key that a line of NDJSON gets: an object of the same things. */
export const rejectKey = 'sluice_reject';

const reserved: ReadonlySet<string> = new Set([...rejectColumns, rejectKey]);

/** Whether a column or key is of a file of rejects and no property. */
export function isRejectColumn(name: string): boolean {
  return reserved.has(name);
}
