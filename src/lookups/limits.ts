export const MAX_LOOKUP_PAGE_SIZE = 200;
export const MAX_SEGMENT_DEPTH = 10;
export const MAX_SEGMENT_CONDITIONS = 100;
export const MAX_SEGMENT_VALUES = 1_000;
/** String that a condition compares as a number or a date. */
export const MAX_COMPARED_CHARS = 100;
