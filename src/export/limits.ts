export const PREVIEWED_ROWS = 5;
/** Number of rows that a preview uses to estimate the size of a file. */
export const MEASURED_ROWS = 500;
