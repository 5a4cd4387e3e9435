/** Rows of each file that a preview shows, and rows that its size estimate measures. */
export const PREVIEWED_ROWS = 5;
export const MEASURED_ROWS = 500;
