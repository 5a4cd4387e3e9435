import { Interrupted } from '../../domain/errors.ts';
import { MAX_RUNS_AT_ONCE, RECONCILE_MS } from '../../domain/limits.ts';
import { claimRun, hopelessRuns, rescueRuns } from '../../postgres/stores/schedule-runs.ts';
import { startPoller } from '../../tasks/poller.ts';
import type { ScheduleContext } from './context.ts';
import { makeDueRuns } from './make-due-runs.ts';
import { doRun } from './run.ts';
import { endRunAndTell } from './run-end.ts';
import type { Schedule } from './schedule.ts';
import type { SchedulesFile } from './schedules-file.ts';
import { settleRuns } from './settle-runs.ts';

export interface RunningSchedules {
  /** Looks at once whether anything is due; the queue rings for it. */
  wake(): Promise<void>;
  /** Gives back what is under way, and begins no more. */
  stop(): Promise<void>;
}

interface ScheduleOptions {
  /** Told the schedules in force: at once, whenever they are others, and every so often. */
  readonly onSchedules?: (schedules: readonly Schedule[]) => Promise<void>;
  readonly everyMs?: number;
}

const tellAgainMs = 60_000;

/**
 * Sees to the schedules of a file: what is due becomes a row, and rows become loads and exports. Harmless to run in any
 * number of processes. A round that fails is logged and the next one tries again.
 */
export function startSchedules(
  context: ScheduleContext,
  file: SchedulesFile,
  options: ScheduleOptions = {},
): RunningSchedules {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let toldAt = Number.NEGATIVE_INFINITY;

  const tell = async (isNew: boolean): Promise<void> => {
    if (options.onSchedules === undefined) return;
    if (!isNew && performance.now() - toldAt < tellAgainMs) return;
    toldAt = performance.now();
    await options.onSchedules(file.schedules).catch((error: unknown) => {
      context.log.debug({ err: error }, 'the queue was not told of the schedules');
    });
  };

  const startRuns = async (): Promise<void> => {
    while (running.size < MAX_RUNS_AT_ONCE && !stopping.signal.aborted) {
      const claim = await claimRun(context.db);
      if (claim === null) return;
      const run = doRun(context, claim, stopping.signal)
        .catch((error: unknown) => context.log.warn({ err: error, schedule: claim.name }, 'a run was lost'))
        .finally(() => {
          running.delete(run);
          if (!stopping.signal.aborted) void wake();
        });
      running.add(run);
    }
  };

  const wake = async (): Promise<void> => {
    if (stopping.signal.aborted) return;
    await settleRuns(context).catch((error: unknown) =>
      context.log.warn({ err: error }, 'the end of a run could not be noted; the next round tries again'),
    );
    try {
      await makeDueRuns(context, file.schedules);
      await rescue(context);
      await startRuns();
    } catch (error) {
      context.log.warn({ err: error }, 'looking after schedules failed; the next round tries again');
    }
  };

  const rounds = startPoller(options.everyMs ?? RECONCILE_MS, async () => {
    const isNew = await file.refresh().catch(() => false);
    void tell(isNew);
    await wake();
  });
  return {
    wake,
    async stop() {
      stopping.abort(new Interrupted('the worker stops'));
      await rounds.stop();
      await Promise.all(running);
    },
  };
}

async function rescue(context: ScheduleContext): Promise<void> {
  for (const { name, losses } of await rescueRuns(context.db)) {
    context.log.warn({ schedule: name, losses }, 'run taken back from a worker that went silent');
  }
  for (const { runId, losses } of await hopelessRuns(context.db)) {
    const reason = `the run lost its worker ${losses} times; it may be what kills it`;
    await endRunAndTell(context, runId, { status: 'failed', code: 'worker_lost', reason }, ['queued']);
  }
}
