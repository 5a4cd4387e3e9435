/** Rows of each file that a preview shows, and rows that measure the size. */
export const PREVIEWED_ROWS = 5;
export const MEASURED_ROWS = 500;
