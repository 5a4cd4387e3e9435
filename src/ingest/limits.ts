export const MAX_BATCH_ITEMS = 10_000;
/** Attempts at a window's statement. */
export const MAX_WINDOW_TRIES = 6;
