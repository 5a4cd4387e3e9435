export const deletionTypes = ['delete_users', 'delete_companies'] as const;

/** queued → processing → completed | failed. A deletion that is processing cannot be cancelled. */
const deletionStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export type DeletionStatus = (typeof deletionStatuses)[number];

/** `not_found`: the database contained neither a profile with this id nor a reference to it. */
export const deletionOutcomes = ['pending', 'deleted', 'not_found'] as const;
export type DeletionOutcome = (typeof deletionOutcomes)[number];

export interface IdOutcome {
  readonly position: number;
  readonly id: string;
  readonly outcome: DeletionOutcome;
  /** For a user, the number of removed events. For a company, the number of changed events. */
  readonly events: number;
  readonly users: number;
}
