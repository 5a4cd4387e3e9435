export const deletionTypes = ['delete_users', 'delete_companies'] as const;

/** queued → processing → completed | failed. A deletion that is processing cannot be cancelled. */
const deletionStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export type DeletionStatus = (typeof deletionStatuses)[number];

/** Outcome for one id. `not_found`: neither a profile nor a reference had this id. */
export const deletionOutcomes = ['pending', 'deleted', 'not_found'] as const;
export type DeletionOutcome = (typeof deletionOutcomes)[number];

export interface IdOutcome {
  readonly position: number;
  readonly id: string;
  readonly outcome: DeletionOutcome;
  /** Number of removed events for a user, or of changed events for a company. */
  readonly events: number;
  readonly users: number;
}
