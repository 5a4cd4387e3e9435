/** Rows that the preview of an export shows of each file, and those whose length it takes for the size. */
export const PREVIEWED_ROWS = 5;
export const MEASURED_ROWS = 500;
