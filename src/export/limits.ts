/** Number of rows of each file that a preview shows. */
export const PREVIEWED_ROWS = 5;
/** Number of rows from which a preview estimates the size of a file. */
export const MEASURED_ROWS = 500;
