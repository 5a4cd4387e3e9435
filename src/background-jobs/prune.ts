import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { SYSTEM_ENVIRONMENT_ID } from '../domain/task.ts';
import { pruneExports } from '../export/prune-exports.ts';
import type { FileStore } from '../files/file-store.ts';
import { pruneFiles } from '../load/prune-files.ts';
import { pruneNotifications } from '../notifications/deliveries.ts';
import type { Database } from '../postgres/database.ts';
import { countPrunable } from '../postgres/ledger/prunable.ts';
import { forgetDeletions } from '../postgres/stores/deletions.ts';
import { deleteRuns } from '../postgres/stores/schedule-runs.ts';
import { insertTask } from '../postgres/stores/tasks.ts';
import { planEventPruning, pruneEvents } from '../retention/prune-events.ts';
import { pruneInbox } from '../sources/inbox/inspect-inbox.ts';
import { notifyQueue, type TaskContext } from '../tasks/task-kind.ts';
import { sweep } from './sweep.ts';

/** What a pruning works with. */
export interface PruneContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly config: Pick<
    Config,
    'fileRetentionDays' | 'exportRetentionDays' | 'jobRetentionDays' | 'eventRetentionDays' | 'eventArchive'
  >;
  readonly log: Logger;
}

/** What was removed, or would be. */
export interface Pruned {
  /** Received files. */
  readonly files: number;
  /** Records of loads, their rejects included. */
  readonly jobs: number;
  /** Exports whose files are gone now. */
  readonly exports: number;
  /** Records of exports. */
  readonly records: number;
  /** Records of deletions. */
  readonly deletions: number;
  /** Files of the inbox that are remembered; those in done and failed stay. */
  readonly inboxFiles: number;
  /** What users did. */
  readonly events: number;
  /** Months of events that were dropped whole. */
  readonly months: number;
  /** Of these events, those that are in files now; null where it was not looked for. */
  readonly archived: number | null;
  /** Events that somebody was told of. */
  readonly notifications: number;
  /** Runs of schedules. */
  readonly runs: number;
  /** What processes that were killed have left in the store; null where it was not looked for. */
  readonly temporary: number | null;
}

/** Removes what has outlived its retention: the daily job, and `sluice prune`. Doing it twice at once does no harm. */
export async function prune(context: PruneContext): Promise<Pruned> {
  const { pool, db, files, config } = context;
  const { fileRetentionDays: fileDays, exportRetentionDays: exportDays, jobRetentionDays: jobDays } = config;
  const loads = await pruneFiles({ db, files }, { fileDays, jobDays });
  const exports = await pruneExports({ db, files }, { exportDays, jobDays });
  const temporary = await sweep({ pool, db, files });
  const deletions = await forgetDeletions(db, jobDays);
  const inbox = await pruneInbox(db, jobDays);
  const notifications = await pruneNotifications({ db }, { jobDays });
  const runs = await deleteRuns(db, jobDays);
  const events = await pruneEvents(context);
  return { ...loads, ...exports, deletions, ...inbox, ...notifications, runs, ...events, temporary };
}

/** Sees to it that there is the task of pruning, one for all workers. It is due at once when it is made, then once a day. */
export async function schedulePruning(context: TaskContext): Promise<void> {
  const task = await insertTask(context.db, {
    kind: 'prune',
    subjectId: 0,
    part: 0,
    environmentId: SYSTEM_ENVIRONMENT_ID,
    jobId: null,
    requestId: null,
  });
  if (task !== null) await notifyQueue(context, [task]);
}

/** What `prune` would remove now. */
export async function planPrune({ db, config }: Pick<PruneContext, 'db' | 'config'>): Promise<Pruned> {
  const { fileRetentionDays: fileDays, exportRetentionDays: exportDays, jobRetentionDays: jobDays } = config;
  const prunable = await countPrunable(db, { fileDays, exportDays, jobDays });
  return { ...prunable, ...(await planEventPruning({ db, config })), archived: null, temporary: null };
}
