export const MAX_BATCH_ITEMS = 10_000;
/** Maximum number of attempts to write a window. */
export const MAX_WINDOW_TRIES = 6;
