export const MAX_BATCH_ITEMS = 10_000;
/** Maximum number of attempts at a window's statement. */
export const MAX_WINDOW_TRIES = 6;
