/** The states of a schedule's run; see the comment on sluice.schedule_runs. */
const openRunStatuses = ['queued', 'running', 'waiting'] as const;
export const runStatuses = [
  ...openRunStatuses,
  'completed',
  'completed_with_rejects',
  'unchanged',
  'skipped',
  'failed',
] as const;
export type RunStatus = (typeof runStatuses)[number];
