/**
 * Number of rows of each file that a preview shows, and number of rows from which it estimates the
 * size.
 */
export const PREVIEWED_ROWS = 5;
export const MEASURED_ROWS = 500;
