import { KiB } from '../base/bytes.ts';

/** Rows at the head of each chunk of a CSV that tell which columns are dates; in NDJSON, values looked at closely for it. */
export const SAMPLED_ROWS = 64;
export const MAX_READ_AS_COLUMNS = 100;
/** Records that a worker reads before it checks whether anything else is due: its lease, its signals, other chunks. */
export const RECORDS_AT_A_TIME = 1_000;
/** An upload is kept so long after its last byte. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** Causes of a job that are listed, the most frequent first; the others are counted. */
export const MAX_SHOWN_CAUSES = 50;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
/** Properties, names of events and days that the summary of a plan lists; and rows of it that are shown. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
export const MAX_SHOWN_MENDS = 20;
/** A load of one chunk of up to so many bytes may be merged by the server that accepted it; a millisecond or two of its time. */
export const SMALL_LOAD_BYTES = 64 * KiB;
