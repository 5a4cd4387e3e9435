import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/**
 * Maximum length, in characters, of a Parquet row written as JSON. A file with a longer row is
 * refused as a whole. A shorter row that is still too large for a record is refused alone.
 */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
