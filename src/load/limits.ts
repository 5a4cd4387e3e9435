import { KiB } from '../base/bytes.ts';

/**
 * Number of CSV rows per chunk that are examined to detect date columns. For NDJSON, the number of
 * values that are examined.
 */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/** Number of records that a worker reads before it checks its lease, signals and other chunks. */
export const RECORDS_AT_A_TIME = 1_000;
/** Time after the last byte of an upload at which the upload expires, in milliseconds. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Number of causes to list for a job. Further causes are only counted. */
export const MAX_SHOWN_CAUSES = 50;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
/** Maximum number of properties, event names and dates in the summary of a plan. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
export const MAX_SHOWN_MENDS = 20;
/**
 * Maximum size, in bytes, of a single-chunk load that the accepting server may merge itself, which
 * takes 1 to 2 ms.
 */
export const SMALL_LOAD_BYTES = 64 * KiB;
