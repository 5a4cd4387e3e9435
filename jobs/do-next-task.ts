import { doNextTask, type StopSignals } from '../src/background-jobs/do-next-task.ts';
import type { LoadContext } from '../src/load/context.ts';
import { Turns } from '../src/turns.ts';

/** For every job of the lanes, whatever it names: the job says that something is due, and the ledger what is next. */
export function doNextTaskJob(context: LoadContext, signals: StopSignals): () => Promise<void> {
  const turns = new Turns();
  return () => doNextTask(context, turns, signals);
}
