import { MiB } from '../base/bytes.ts';

export const MAX_RECORD_PROPERTIES = 10_000;
/** A Parquet row as JSON. Up to this, a too large row is refused alone, beyond it the file. */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
