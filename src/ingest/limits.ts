export const MAX_BATCH_ITEMS = 10_000;
/** Retries of a window's statement after deadlocks. */
export const MAX_WINDOW_RETRIES = 5;
