export const MAX_BATCH_ITEMS = 10_000;
/** A window's statement is sent again this often after it lost a deadlock. */
export const MAX_WINDOW_RETRIES = 5;
