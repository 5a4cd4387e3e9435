import { KiB } from '../base/bytes.ts';

/** Number of CSV rows per chunk that determine the date columns. In NDJSON, of values checked. */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/** Number of records that a worker reads before it checks its lease, signals and other chunks. */
export const RECORDS_AT_A_TIME = 1_000;
/** Time from the last byte to expiry. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Number of listed causes of a job. The others are only counted. */
export const MAX_SHOWN_CAUSES = 50;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
/** Number of listed properties, event names and days in the summary of a plan. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
export const MAX_SHOWN_MENDS = 20;
/** Size up to which the server that accepted a load of one chunk may merge it, in 1 to 2 ms. */
export const SMALL_LOAD_BYTES = 64 * KiB;
