export const SHOWN_JOB_DAYS = 30;
export const SHOWN_FAILING_TASKS = 20;
export const SHOWN_LANE_JOBS = 20;
