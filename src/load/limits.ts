import { KiB } from '../base/limits.ts';

/**
 * Number of records in each CSV chunk from which the types of properties are detected. If a
 * property already has this many dates, its further values are only compared with the pattern of a
 * date.
 */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/**
 * After this many records, a worker pauses to renew its lease, handle signals and continue other
 * chunks.
 */
export const RECORDS_AT_A_TIME = 1_000;
/** An upload is kept for this time after its last byte. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Maximum number of causes that are shown for a job. Further causes are only counted. */
export const MAX_SHOWN_CAUSES = 50;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
/** Maximum number of properties, event names and dates in the summary of a plan. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
export const MAX_SHOWN_MENDS = 20;
/** Largest load that the accepting server may merge itself, which takes 1 to 2 ms. */
export const SMALL_LOAD_BYTES = 64 * KiB;
