import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Outcome } from '../domain/job.ts';
import type { DueTask } from '../domain/task.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';

/**
 * The event that a job or a capability's work has ended, or that an operator's file was refused.
 */
export interface JobEvent {
  readonly type: `${string}.${Outcome}` | 'file.refused';
  readonly environmentId: number;
  readonly jobId: string | null;
  /** Addresses that were given for this outcome of the job or work. */
  readonly emails: readonly string[];
  /** Returns the job, work or file. Called only if the event is sent. */
  readonly describe: () => Promise<object>;
}

export interface JobSeam {
  /**
   * Runs in the transaction that ends the job. After the commit, pass the tasks to `notifyQueue`.
   */
  ended?(db: Database, event: JobEvent): Promise<readonly DueTask[]>;
  addresses?(db: Database, event: JobEvent): Promise<readonly string[]>;
}

export type JobEvents = Required<Pick<JobSeam, 'ended'>>;

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

interface MaintenanceContext {
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Config;
}

/** Removes expired data. Returns the counts under the API's names. */
export type Maintenance = (context: MaintenanceContext) => Promise<Readonly<Record<string, number>>>;
