import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/**
 * Maximum characters of a Parquet row as JSON. A file with a larger row is refused. A row that is
 * smaller but too large for a record is refused alone.
 */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
