import type { System } from '../../context.ts';
import type { RunnerKind, WorkSeam } from '../../jobs/seam.ts';
import { endTask, repeatTask } from '../../tasks/store.ts';
import { periodic, queuePeriodic } from '../../tasks/task-kind.ts';
import { appendEvents } from './append-events.ts';

/** All workers share one task of this kind. */
const appendJob: RunnerKind<System> = {
  ...periodic,
  name: 'append',
  stops: 'at once',
  maxOutsideQueue: 1,
  async run(context, claim, signal) {
    const { lakeEveryMs } = context.config;
    await appendEvents(context, signal);
    const { db } = context;
    await (lakeEveryMs === null ? endTask(db, claim) : repeatTask(db, claim, lakeEveryMs));
  },
};

export const work: WorkSeam = {
  open: (system) => ({
    kinds: [appendJob],
    start() {
      const { config, log } = system;
      const tell = (err: unknown) => log.warn({ err }, 'the append to the lake could not be queued');
      if (config.lakeEveryMs !== null) queuePeriodic(system, 'append').catch(tell);
      return null;
    },
  }),
};
