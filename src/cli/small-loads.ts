import { chunkJob } from '../../jobs/load.ts';
import type { System } from '../context.ts';
import { kindsInTurn, queueName } from '../domain/task.ts';
import { openOwnTasks } from '../tasks/runner.ts';

/** So many at a time in a process; the others are left to the workers. Each takes one of its connections. */
const atATime = 2;
/** The share of the time to stop in which small loads end; the rest are given back. */
const stopShare = 0.1;

/** Returns the same system, which merges the small loads that it accepts itself, if it is their turn; it is closed with them. */
export function withSmallLoads(system: System): System {
  const ownTasks = openOwnTasks<System>(system, [chunkJob], kindsInTurn(queueName), atATime);
  return {
    ...system,
    ownTasks,
    async close() {
      await ownTasks.stop(system.config.shutdownMs * stopShare);
      await system.close();
    },
  };
}
