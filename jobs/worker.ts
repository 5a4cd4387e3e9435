import { uuidv7 } from 'uuidv7';
import { startSweeping } from '../src/background-jobs/sweep.ts';
import type { System } from '../src/context.ts';
import { Interrupted } from '../src/domain/errors.ts';
import { exportQueueName, queueName } from '../src/domain/task.ts';
import { startNotificationReconciler } from '../src/notifications/reconcile-notifications.ts';
import { startSender } from '../src/notifications/start-sender.ts';
import { removeWorker, showWorker } from '../src/postgres/stores/workers.ts';
import { consume } from '../src/queue/consume.ts';
import { setScheduleBells } from '../src/queue/schedule-bells.ts';
import { startInbox } from '../src/sources/inbox/watch-inbox.ts';
import type { ScheduleSettings } from '../src/sources/schedules/context.ts';
import type { SchedulesFile } from '../src/sources/schedules/schedules-file.ts';
import { type RunningSchedules, startSchedules } from '../src/sources/schedules/start-schedules.ts';
import { type RunAlone, startReconciler, startSuspects } from '../src/tasks/reconcile.ts';
import { kindOf, runNextTask, runTaskById, type StopSignals } from '../src/tasks/run-task.ts';
import { Turns } from '../src/tasks/turns.ts';
import { deliverNotificationJob, openSendContext } from './deliver-notification.ts';
import { jobKinds, kindsOf } from './kinds.ts';
import { ringSchedulesJob } from './ring-schedules.ts';

const signOfLifeMs = 5_000;
/** Notifications under way may end before a stop gives them back, so that those of the last job are not left behind. */
const senderGraceMs = 5_000;
/**
 * The part of SHUTDOWN_MS that chunks under way have to come to their end. Below the one after which `sluice start` kills its
 * workers: what is not done by then is given back, not lost.
 */
const deadlineShare = 0.3;

export interface RunningWorker {
  /**
   * Takes no more tasks. An export or a deletion is given back at once, chunks under way are finished; those that are not
   * after a part of SHUTDOWN_MS are given back too, without an attempt being spent.
   */
  stop(): Promise<void>;
}

/** What a worker does on schedule. */
export interface WorkerSchedules {
  readonly file: SchedulesFile;
  readonly settings: ScheduleSettings;
}

/** What a worker is made of besides the system; the fault tests have parts of their own. */
export interface WorkerOptions {
  /** Default: none. */
  readonly schedules?: WorkerSchedules | null;
  /** Default: the worker itself does what lost its worker before. */
  readonly runAlone?: RunAlone;
}

/** One worker: consumes the queues, reconciles the tasks, sees to the schedules, and says that it lives. */
export function startWorker(system: System, options: WorkerOptions = {}): RunningWorker {
  const { log, config } = system;
  const {
    schedules = null,
    runAlone = ({ taskId, kind }, signals) => runTaskById(system, kindOf(jobKinds, kind), taskId, signals),
  } = options;
  const stopping = new AbortController();
  const deadline = new AbortController();
  const sending = openSendContext(system);
  const sender = startSender(sending);
  const scheduled = schedules === null ? null : follow(system, schedules);
  const signals = { stopping: stopping.signal, deadline: deadline.signal };
  const consumer = consume(
    system.backend,
    {
      ...taskJobs(system, queueName, signals),
      'deliver-notification': deliverNotificationJob(sender),
      'ring-schedules': ringSchedulesJob(scheduled),
    },
    { concurrency: config.workerConcurrency, log },
  );
  const exporter = consume(system.backend, taskJobs(system, exportQueueName, signals), {
    concurrency: 1,
    log,
    queue: exportQueueName,
  });
  const pollers = [
    startReconciler(system, jobKinds),
    startNotificationReconciler(sending, sender),
    startSweeping(system),
    startSuspects(system, jobKinds, runAlone, signals),
  ];
  const inbox = config.inboxDir === null ? null : startInbox(system, config.inboxDir);
  const life = showLife(system);
  return {
    async stop() {
      await inbox?.stop();
      await scheduled?.stop();
      // An export or a deletion may take as long as it likes, and stopping may not.
      stopping.abort(new Interrupted('the worker stops'));
      const timer = setTimeout(
        () => deadline.abort(new Interrupted('the worker has no time left')),
        config.shutdownMs * deadlineShare,
      );
      const closings = [consumer.close(), exporter.close()];
      for (const poller of pollers) closings.push(poller.stop());
      await Promise.all(closings).finally(() => clearTimeout(timer));
      await sender.stop(Math.min(senderGraceMs, config.shutdownMs / 4));
      sending.mail.close();
      await life.stop();
    },
  };
}

/** For every job of a queue, whatever it names: the job says that something is due, and the ledger what is next. */
function taskJobs(
  system: System,
  queue: string,
  signals: StopSignals,
): Readonly<Record<string, () => Promise<void>>> {
  const kinds = kindsOf(queue);
  const turns = new Turns();
  const runNext = () => runNextTask(system, kinds, turns, signals);
  return Object.fromEntries(kinds.map(({ name }) => [name, runNext]));
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
  const workerId = uuidv7();
  const show = (): void => {
    showWorker(db, workerId).catch((error: unknown) => log.debug({ err: error }, 'sign of life failed'));
  };
  show();
  const timer = setInterval(show, signOfLifeMs);
  return {
    async stop() {
      clearInterval(timer);
      await removeWorker(db, workerId).catch(() => undefined);
    },
  };
}
