export const MAX_BATCH_ITEMS = 10_000;
export const MAX_WINDOW_TRIES = 6;
