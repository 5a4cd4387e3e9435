import { hostname } from 'node:os';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import { doSuspect, type RunAlone, startSuspects } from '../src/background-jobs/suspects.ts';
import { startSweeping } from '../src/background-jobs/sweep.ts';
import type { System } from '../src/context.ts';
import { startDeletionReconciler } from '../src/deletion/reconcile-deletions.ts';
import { Interrupted } from '../src/domain/errors.ts';
import { startExportReconciler } from '../src/export/reconcile-exports.ts';
import type { ExportWriter } from '../src/export/run-export.ts';
import { writeExport } from '../src/export/write/write-export.ts';
import { startReconciler } from '../src/load/reconcile.ts';
import { startNotificationReconciler } from '../src/notifications/reconcile-notifications.ts';
import { startSender } from '../src/notifications/start-sender.ts';
import { consume } from '../src/queue/consume.ts';
import { exportQueueName } from '../src/queue/contract.ts';
import { setScheduleBells } from '../src/queue/schedule-bells.ts';
import type { ScheduleSettings } from '../src/schedules/context.ts';
import type { SchedulesFile } from '../src/schedules/schedules-file.ts';
import { type RunningSchedules, startSchedules } from '../src/schedules/start-schedules.ts';
import { startInbox } from '../src/sources/inbox/watch-inbox.ts';
import { deliverNotificationJob, openSendContext } from './deliver-notification.ts';
import { doNextTaskJob } from './do-next-task.ts';
import { pruneFilesJob } from './prune-files.ts';
import { ringSchedulesJob } from './ring-schedules.ts';
import { runExportJob } from './run-export.ts';

const signOfLifeMs = 5_000;
/** Notifications under way may end before a stop gives them back, so that those of the last job are not left behind. */
const senderGraceMs = 5_000;
/**
 * The part of SHUTDOWN_MS that chunks under way have to come to their end. Below the one after which `sluice start` kills its
 * workers: what is not done by then is given back, not lost.
 */
const patientShare = 0.3;

export interface RunningWorker {
  /**
   * Takes no more jobs. An export or a deletion is given back at once, chunks under way are finished; those that are not
   * after a part of SHUTDOWN_MS are given back too, without an attempt being spent.
   */
  stop(): Promise<void>;
}

/** What a worker does on schedule. */
export interface WorkerSchedules {
  readonly file: SchedulesFile;
  readonly settings: ScheduleSettings;
}

/**
 * One worker: consumes the queue, reconciles the ledger, sees to the schedules, and says that it lives. Without `runAlone`
 * it does itself what lost its worker before.
 */
export function startWorker(
  system: System,
  write: ExportWriter = writeExport,
  schedules: WorkerSchedules | null = null,
  runAlone: RunAlone = (suspect, signals) => doSuspect(system, write, suspect, signals),
): RunningWorker {
  const { log, config } = system;
  const stopping = new AbortController();
  const hurry = new AbortController();
  const sending = openSendContext(system);
  const sender = startSender(sending);
  const scheduled = schedules === null ? null : follow(system, schedules);
  const signals = { stopping: stopping.signal, hurry: hurry.signal };
  const doNextTask = doNextTaskJob(system, signals);
  const consumer = consume(
    system.backend,
    {
      'process-chunk': doNextTask,
      'finish-load': doNextTask,
      'run-deletion': doNextTask,
      'prune-files': pruneFilesJob(system),
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
  const rounds = [
    startReconciler(system),
    startExportReconciler(system),
    startDeletionReconciler(system),
    startNotificationReconciler(sending, sender),
    startSweeping(system),
    startSuspects(system, runAlone, signals),
  ];
  const inbox = config.inboxDir === null ? null : startInbox(system, config.inboxDir);
  const life = showLife(system);
  return {
    async stop() {
      await inbox?.stop();
      await scheduled?.stop();
      // An export or a deletion may take as long as it likes, and stopping may not.
      stopping.abort(new Interrupted('the worker stops'));
      const patience = setTimeout(
        () => hurry.abort(new Interrupted('the worker has no time left')),
        config.shutdownMs * patientShare,
      );
      const closings = [consumer.close(), exporter.close()];
      for (const round of rounds) closings.push(round.stop());
      await Promise.all(closings).finally(() => clearTimeout(patience));
      await sender.stop(Math.min(senderGraceMs, config.shutdownMs / 4));
      sending.mail.close();
      await life.stop();
    },
  };
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
