import { hostname } from 'node:os';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { System } from '../src/context.ts';
import { startDeletionReconciler } from '../src/deletion/reconcile-deletions.ts';
import { Interrupted } from '../src/domain/errors.ts';
import { ABANDONED_FILE_MS } from '../src/domain/limits.ts';
import { startExportReconciler } from '../src/export/reconcile-exports.ts';
import type { ExportWriter } from '../src/export/run-export.ts';
import { writeExport } from '../src/export/write/write-export.ts';
import { startInbox } from '../src/inbox/start-inbox.ts';
import { startReconciler } from '../src/load/reconcile.ts';
import { openSender } from '../src/notifications/open-sender.ts';
import { startNotificationReconciler } from '../src/notifications/reconcile-notifications.ts';
import { startSender } from '../src/notifications/start-sender.ts';
import { consume } from '../src/queue/consume.ts';
import { exportQueueName } from '../src/queue/contract.ts';
import { setScheduleBells } from '../src/queue/schedule-bells.ts';
import type { ScheduleSettings } from '../src/schedules/context.ts';
import type { SchedulesFile } from '../src/schedules/schedules-file.ts';
import { type RunningSchedules, startSchedules } from '../src/schedules/start-schedules.ts';
import { deliverNotificationJob } from './deliver-notification.ts';
import { finishLoadJob } from './finish-load.ts';
import { notifyExportJob } from './notify-export.ts';
import { processChunkJob } from './process-chunk.ts';
import { pruneFilesJob } from './prune-files.ts';
import { ringSchedulesJob } from './ring-schedules.ts';
import { runDeletionJob } from './run-deletion.ts';
import { runExportJob } from './run-export.ts';

const signOfLifeMs = 5_000;
/** Notifications under way may end before a stop gives them back, so that those of the last job are not left behind. */
const senderGraceMs = 5_000;

export interface RunningWorker {
  /** Finishes the jobs under way, gives an export or a deletion back, and takes no more. */
  stop(): Promise<void>;
}

/** What a worker does on schedule. */
export interface WorkerSchedules {
  readonly file: SchedulesFile;
  readonly settings: ScheduleSettings;
}

/** One worker: consumes the queue, reconciles the ledger, sees to the schedules, and says that it lives. */
export function startWorker(
  system: System,
  write: ExportWriter = writeExport,
  schedules: WorkerSchedules | null = null,
): RunningWorker {
  const { log, config } = system;
  const stopping = new AbortController();
  const sending = openSender(system);
  const sender = startSender(sending);
  const scheduled = schedules === null ? null : follow(system, schedules);
  const consumer = consume(
    system.backend,
    {
      'process-chunk': processChunkJob(system),
      'finish-load': finishLoadJob(system),
      'prune-files': pruneFilesJob(system),
      'notify-export': notifyExportJob(system),
      'run-deletion': runDeletionJob(system, stopping.signal),
      'deliver-notification': deliverNotificationJob(sender),
      'ring-schedules': ringSchedulesJob(scheduled),
    },
    { concurrency: config.workerConcurrency, log },
  );
  const exporter = consume(
    system.backend,
    { 'run-export': runExportJob(system, write, stopping.signal) },
    { concurrency: 1, log, queue: exportQueueName },
  );
  sweepTemporary(system);
  const reconcilers = [
    startReconciler(system),
    startExportReconciler(system),
    startDeletionReconciler(system),
    startNotificationReconciler(sending, sender),
  ];
  const inbox = config.inboxDir === null ? null : startInbox(system, config.inboxDir);
  const life = showLife(system);
  return {
    async stop() {
      await inbox?.stop();
      for (const reconciler of reconcilers) await reconciler.stop();
      await scheduled?.stop();
      // An export or a deletion may take as long as it likes, and stopping may not.
      stopping.abort(new Interrupted('the worker stops'));
      await Promise.all([consumer.close(), exporter.close()]);
      await sender.stop(Math.min(senderGraceMs, config.shutdownMs / 4));
      sending.post.close();
      await life.stop();
    },
  };
}

/** What processes that were killed have left; the prune job does the same once a day. */
function sweepTemporary({ files, log }: System): void {
  files.sweepTemporary(ABANDONED_FILE_MS).then(
    (removed) => removed > 0 && log.info({ removed }, 'temporary files of killed processes removed'),
    (error: unknown) => log.warn({ err: error }, 'temporary files could not be swept'),
  );
}

function follow(system: System, { file, settings }: WorkerSchedules): RunningSchedules {
  return startSchedules({ ...system, schedules: settings }, file, {
    onSchedules: async (schedules) => {
      const bells = schedules
        .filter(({ enabled }) => enabled)
        .map(({ name, environment, cron, timeZone }) => ({ id: `${environment}-${name}`, cron, timeZone }));
      await setScheduleBells(system.backend, bells);
    },
  });
}

function showLife({ db, log }: System): RunningWorker {
  const id = uuidv7();
  const show = (): void => {
    db.insertInto('workers')
      .values({ worker_id: id, host: hostname(), pid: process.pid })
      .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ seen_at: sql`now()` }))
      .execute()
      .catch((error: unknown) => log.debug({ err: error }, 'sign of life failed'));
  };
  show();
  const timer = setInterval(show, signOfLifeMs);
  return {
    async stop() {
      clearInterval(timer);
      await db
        .deleteFrom('workers')
        .where('worker_id', '=', id)
        .execute()
        .catch(() => undefined);
    },
  };
}
