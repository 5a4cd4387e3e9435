import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Outcome } from '../domain/job.ts';
import type { DueTask } from '../domain/task.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';

/** The end of a job or of work of a capability, or a file of the operator that became no job. */
export interface JobEvent {
  readonly type: `${string}.${Outcome}` | 'file.refused';
  readonly environmentId: number;
  /** Is null if it is not about a job. */
  readonly jobId: string | null;
  /** Addresses that the job or the work itself names for this outcome. */
  readonly emails: readonly string[];
  /** The job as the API renders it, the work, or the file; only called if somebody is to know. */
  readonly describe: () => Promise<object>;
}

/** The hooks of a capability for the end of a job. */
export interface JobSeam {
  /**
   * Runs in the transaction that ends the job, so that neither exists without the other. Pass the tasks that it returns to
   * `notifyQueue` after the commit.
   */
  ended?(db: Database, event: JobEvent): Promise<readonly DueTask[]>;
  /** Returns further addresses to notify of the event. */
  addresses?(db: Database, event: JobEvent): Promise<readonly string[]>;
}

export type JobEvents = Required<Pick<JobSeam, 'ended'>>;

/** Calls the seams one after another. */
export function jobEvents(seams: readonly JobSeam[]): JobEvents {
  return {
    async ended(db, event) {
      const emails = [...event.emails];
      for (const seam of seams) emails.push(...((await seam.addresses?.(db, event)) ?? []));
      const due: DueTask[] = [];
      for (const seam of seams) due.push(...((await seam.ended?.(db, { ...event, emails })) ?? []));
      return due;
    },
  };
}

interface TendContext {
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Pick<Config, 'jobRetentionDays'>;
}

/** Removes what has outlived its retention; returns what it removed, by the names of the API. */
export type Tend = (context: TendContext) => Promise<Readonly<Record<string, number>>>;
