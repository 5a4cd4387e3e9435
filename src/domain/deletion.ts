export const deletionTypes = ['delete_users', 'delete_companies'] as const;

/** queued → processing → completed | failed. It is not cancelled: half of it would be worse than none. */
const deletionStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export type DeletionStatus = (typeof deletionStatuses)[number];

/** `pending`: not come to yet. `not_found`: there was neither a profile nor anything that referred to it. */
export const deletionOutcomes = ['pending', 'deleted', 'not_found'] as const;
export type DeletionOutcome = (typeof deletionOutcomes)[number];

export interface IdOutcome {
  readonly position: number;
  readonly id: string;
  readonly outcome: DeletionOutcome;
  /** Events of the user that were removed, or events from which the company was taken. */
  readonly events: number;
  readonly users: number;
}
