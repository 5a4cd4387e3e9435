import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/**
 * Maximum characters of a Parquet row as JSON. If a row is larger, the file is refused. If a row is
 * smaller but too large for a record, only that row is refused.
 */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
