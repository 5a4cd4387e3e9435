/** Why a record was refused: a closed list, reported in `error_code` of the rejects. */
export const rejectCodes = [
  'missing_id',
  'invalid_id',
  'id_too_long',
  'wrong_field_count',
  'invalid_quote',
  'unclosed_quote',
  'invalid_escape',
  'repeated_header',
  'record_too_large',
  'value_too_large',
  'invalid_utf8',
  'nul_character',
  'unclear_apostrophe',
  'lone_surrogate',
  'invalid_json',
  'not_an_object',
  'invalid_type',
  'invalid_property_name',
  'forbidden_property',
  'too_deep',
  'number_out_of_range',
  'unknown_event_type',
  'unexpected_event_row',
  'missing_event_name',
  'invalid_date',
  'refused_by_database',
] as const;

export type RejectCode = (typeof rejectCodes)[number];

/** Why, before it is known where. */
export interface Reason {
  readonly code: RejectCode;
  readonly message: string;
  /** The column or property path at fault; null when it is the record as a whole. */
  readonly column: string | null;
}

/** A refused record: data, not an exception. */
export interface Reject extends Reason {
  /** Position among the data records of the file, from 1. */
  readonly row: number;
  /** Line on which the record starts, from 1 (the header is line 1 of a CSV). */
  readonly line: number;
  /** Byte at which the record starts in the decoded (decompressed, UTF-8) file, from 0. */
  readonly byteOffset: number;
  /** The record as it stood in the file, cut at MAX_REJECT_RAW_BYTES. */
  readonly raw: Uint8Array;
}

/**
 * The columns that a file of rejects adds to the records: why each was refused, and, in CSV, the record itself where it does not
 * fit the columns; its bytes too where they are no text. A load takes no notice of columns and keys of these names, so that the file, once mended, can be
 * sent again as it is.
 */
export const rejectColumns = [
  'sluice_row',
  'sluice_line',
  'sluice_error_code',
  'sluice_message',
  'sluice_column',
  'sluice_raw',
  'sluice_raw_base64',
] as const;

/** In NDJSON, the text of a record that is no object, as the column of that name in CSV. */
export const rejectRawKey = 'sluice_raw' satisfies (typeof rejectColumns)[number];

/** The one key that a line of NDJSON gets: an object of the same things. */
export const rejectKey = 'sluice_reject';

const reserved: ReadonlySet<string> = new Set([...rejectColumns, rejectKey]);

/** Tells whether a column or key belongs to a file of rejects and is no property. */
export function isRejectColumn(name: string): boolean {
  return reserved.has(name);
}
