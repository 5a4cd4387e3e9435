import type { Entity } from './entity.ts';

export const deletionTypes = ['delete_users', 'delete_companies'] as const;

/** queued → processing → completed | failed. It is not cancelled: half of it would be worse than none. */
const deletionStatuses = ['queued', 'processing', 'completed', 'failed'] as const;
export type DeletionStatus = (typeof deletionStatuses)[number];

/** `pending`: not come to yet. `not_found`: there was neither a profile nor anything that referred to it. */
export const deletionOutcomes = ['pending', 'deleted', 'not_found'] as const;
export type DeletionOutcome = (typeof deletionOutcomes)[number];

/** A deletion as its row in the ledger. Times in UTC. */
export interface Deletion {
  readonly deletionId: number;
  readonly jobId: string;
  readonly environmentId: number;
  readonly entity: Entity;
  readonly status: DeletionStatus;
  readonly purgeExports: boolean;
  readonly acceptedAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly attempts: number;
  /** Ids: requested, and of those that are done. */
  readonly counts: { readonly requested: number; readonly deleted: number; readonly not_found: number };
  /** Other removals. `events` of companies are those from which the company was taken. */
  readonly removed: {
    readonly events: number;
    readonly rejects: number;
    readonly files: number;
    readonly exports: number;
  };
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly lastError: string | null;
  /** Unfinished loads and deletions before this one in its lane; 0 once it runs, null once it ended, and in lists. */
  readonly queuePosition: number | null;
}

export interface IdOutcome {
  readonly position: number;
  readonly id: string;
  readonly outcome: DeletionOutcome;
  /** Events of the user that were removed, or events from which the company was taken. */
  readonly events: number;
  readonly users: number;
}
