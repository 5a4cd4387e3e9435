import { KiB } from '../base/bytes.ts';

/** CSV rows per chunk that determine which columns are dates; in NDJSON, values checked for it. */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/** Records that a worker reads before it checks its lease, signals and other chunks. */
export const RECORDS_AT_A_TIME = 1_000;
/** Counts from the last byte. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Causes of a job that are listed; the others are only counted. */
export const MAX_SHOWN_CAUSES = 50;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
/** Properties, event names and days in the summary of a plan, and its sample rows. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
export const MAX_SHOWN_MENDS = 20;
/** The server that accepted such a load of one chunk may merge it, in a millisecond or two. */
export const SMALL_LOAD_BYTES = 64 * KiB;
