import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/**
 * Characters of a Parquet row as JSON. A larger row refuses the file, and a smaller one that is too
 * large for a record is refused alone.
 */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
