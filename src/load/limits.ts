import { KiB } from '../base/limits.ts';

/**
 * In each chunk of CSV, the types of properties are detected from this many records. Once a
 * property has this many dates, its further values are only compared with the pattern of a date.
 */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/**
 * After reading this many records, a worker pauses, so that it can renew its lease, handle signals
 * and continue other chunks.
 */
export const RECORDS_AT_A_TIME = 1_000;
/** An upload expires this many milliseconds after its last byte has arrived. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Maximum number of causes that are listed for a job. Further causes are only counted. */
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
 * Maximum size in bytes of a load that the accepting server may merge itself. Merging that many
 * bytes takes 1 to 2 ms.
 */
export const SMALL_LOAD_BYTES = 64 * KiB;
