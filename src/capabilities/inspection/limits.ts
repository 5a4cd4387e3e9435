export const INSPECTED_RECORDS = 10_000;
export const SHOWN_SAMPLES = 3;
export const SHOWN_FREQUENT = 5;
