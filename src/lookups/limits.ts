export const MAX_LOOKUP_PAGE_SIZE = 200;
export const MAX_SEGMENT_DEPTH = 10;
export const MAX_SEGMENT_CONDITIONS = 100;
export const MAX_SEGMENT_VALUES = 1_000;
/** A longer string is neither a number nor a date to a segment; bounds what Postgres is asked to read as one. */
export const MAX_COMPARED_CHARS = 100;
