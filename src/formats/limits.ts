import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/** A row of a Parquet file as JSON. Within this bound a row that is too large for a record is refused alone; beyond it, the file. */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
