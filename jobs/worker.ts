import { Interrupted } from '../src/base/errors.ts';
import { startPoller } from '../src/base/timers.ts';
import { uuidv7 } from '../src/base/uuid.ts';
import type { System } from '../src/context.ts';
import { exportQueueName, queueName, queueOf, type TaskKindName } from '../src/domain/task.ts';
import { startSweeping } from '../src/jobs/prune.ts';
import type { WorkerProcess } from '../src/jobs/seam.ts';
import { consume } from '../src/queue/notify.ts';
import { openSuspects, type RunAlone, startReconciler } from '../src/tasks/reconcile.ts';
import { kindOf, runNextTask, runTaskById, type StopSignals, Turns } from '../src/tasks/run-task.ts';
import { type Runner, startRunner } from '../src/tasks/runner.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';
import { removeWorker, showWorker } from '../src/tasks/worker-store.ts';
import { type Jobs, openJobs } from './kinds.ts';

const signOfLifeMs = 5_000;
/**
 * Maximum time in which a stopping worker finishes tasks that bypass the queue. The last job before
 * the shutdown may have created such tasks.
 */
const runnerGraceMs = 5_000;
/** Fraction of SHUTDOWN_MS after which chunks that are still running are released. */
const deadlineShare = 0.3;

export interface RunningWorker {
  /**
   * Releases exports and deletions immediately, and chunks after the fraction `deadlineShare` of
   * SHUTDOWN_MS. A released task does not lose an attempt.
   */
  stop(): Promise<void>;
}

export interface WorkerOptions {
  /**
   * The process that contains the worker. Default: the process of a single command, not of a
   * service.
   */
  readonly process?: WorkerProcess;
  readonly jobs?: Jobs;
  /**
   * Runs a task during which several workers have died. By default, the task runs in this worker's
   * process.
   */
  readonly runAlone?: RunAlone;
}

/**
 * Consumes the queues, reconciles tasks, runs the capabilities' pollers and records a heartbeat.
 */
export function startWorker(system: System, options: WorkerOptions = {}): RunningWorker {
  const { log, config } = system;
  const {
    process,
    jobs = openJobs(system, process),
    runAlone = ({ taskId, kind }, signals) => runTaskById(system, kindOf(jobs.kinds, kind), taskId, signals),
  } = options;
  const stopping = new AbortController();
  const deadline = new AbortController();
  const signals = { stopping: stopping.signal, deadline: deadline.signal };
  const isOfService = process?.isOfService === true;
  const kinds = jobs.kinds.filter((kind) => isOfService || kind.isOfService !== true);
  const runners = startRunners(system, kinds);
  const consumer = consume(system.backend, taskJobs(system, jobs, kinds, queueName, runners, signals), {
    concurrency: config.workerConcurrency,
    log,
  });
  const exporter = consume(system.backend, taskJobs(system, jobs, kinds, exportQueueName, runners, signals), {
    concurrency: 1,
    log,
    queue: exportQueueName,
  });
  const doSuspect: RunAlone = (suspect, suspectSignals) => {
    const kind = kindOf(kinds, suspect.kind);
    return kind.maxOutsideQueue === undefined
      ? runAlone(suspect, suspectSignals)
      : runTaskById(system, kind, suspect.taskId, suspectSignals);
  };
  const suspects = openSuspects(system, kinds, doSuspect, signals);
  const wakeAll = (): void => {
    suspects.wake();
    for (const runner of runners.values()) runner.wake();
  };
  const pollers = [startReconciler(system, kinds, wakeAll), startSweeping(system)];
  const watches = jobs.start((kind) => void runners.get(kind)?.wake());
  const life = showLife(system);
  return {
    async stop() {
      // A stop must be fast, so tasks that can take arbitrarily long are interrupted.
      stopping.abort(new Interrupted('the worker stops'));
      const timer = setTimeout(
        () => deadline.abort(new Interrupted('the worker has no time left')),
        config.shutdownMs * deadlineShare,
      );
      const stopRunners = (stops: TaskKind<System>['stops'], graceMs: number) =>
        kinds.filter((kind) => kind.stops === stops).map(({ name }) => runners.get(name)?.stop(graceMs));
      const closings = [consumer.close(), exporter.close(), ...stopRunners('at once', 0)];
      for (const poller of [...watches, ...pollers, suspects]) closings.push(poller.stop());
      await Promise.all(closings).finally(() => clearTimeout(timer));
      await Promise.all(stopRunners('at the deadline', Math.min(runnerGraceMs, config.shutdownMs / 4)));
      jobs.close();
      await life.stop();
    },
  };
}

function startRunners(system: System, kinds: Jobs['kinds']): ReadonlyMap<TaskKindName, Runner> {
  const runners = new Map<TaskKindName, Runner>();
  for (const kind of kinds) {
    if (kind.maxOutsideQueue !== undefined)
      runners.set(kind.name, startRunner(system, [kind], kind.maxOutsideQueue));
  }
  return runners;
}

/** A queue job only signals that work is due. The next task comes from the ledger. */
function taskJobs(
  system: System,
  { kinds: all }: Jobs,
  kinds: Jobs['kinds'],
  queue: string,
  runners: ReadonlyMap<TaskKindName, Runner>,
  signals: StopSignals,
): Readonly<Record<string, () => Promise<void>>> {
  const queueKinds = all.filter(({ name }) => queueOf(name) === queue);
  const claimable = queueKinds.filter((kind) => kinds.includes(kind) && kind.maxOutsideQueue === undefined);
  const turns = new Turns();
  const runNext = () => runNextTask(system, claimable, turns, signals);
  const handlers = queueKinds.map(({ name, maxOutsideQueue }) => [
    name,
    maxOutsideQueue === undefined ? runNext : async () => runners.get(name)?.wake(),
  ]);
  return Object.fromEntries(handlers);
}

function showLife({ db, log }: System): RunningWorker {
  const workerId = uuidv7();
  const signs = startPoller(signOfLifeMs, () =>
    showWorker(db, workerId).catch((error: unknown) => log.debug({ err: error }, 'sign of life failed')),
  );
  return {
    async stop() {
      await signs.stop();
      await removeWorker(db, workerId).catch(() => undefined);
    },
  };
}
