/** Why a record was refused: a closed list, reported in `error_code` of the rejects. */
export const rejectCodes = [
  'missing_id',
  'invalid_id',
  'id_too_long',
  'wrong_field_count',
  'invalid_quote',
  'unclosed_quote',
  'record_too_large',
  'value_too_large',
  'invalid_utf8',
  'nul_character',
  'lone_surrogate',
  'invalid_json',
  'not_an_object',
  'invalid_type',
  'invalid_property_name',
  'forbidden_property',
  'too_deep',
  'number_out_of_range',
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
