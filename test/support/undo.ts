import { beginJob, chunkJob, finishJob } from '../../jobs/load.ts';
import { acceptUndo, type UndoRequest } from '../../src/capabilities/undo/accept.ts';
import type { LoadContext } from '../../src/load/context.ts';
import { startLane } from '../../src/load/end.ts';
import { type Load, requireLoad } from '../../src/load/read-store.ts';
import { acceptFile, type FileOptions, withoutQueue } from './load-file.ts';
import { runDueTasks } from './tasks.ts';

const byNobody = { idempotencyKey: null, requestId: null, origin: null };

/** Accepts an undo, which no worker touches. */
export function askToUndo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<string> {
  const whole = { plan: false, maxErrors: null, maxChanged: null, maxRemovedValues: null };
  return acceptUndo(withoutQueue(context), { ...whole, jobIds, ...request }, { environmentId, ...byNobody });
}

/** Undoes loads, in this process; returns the undo as it ended. */
export async function undo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<Load> {
  return runJob(context, environmentId, await askToUndo(context, environmentId, jobIds, request));
}

/** Loads a file, in this process. */
export async function loadFile(
  context: LoadContext,
  environmentId: number,
  content: string | Uint8Array,
  options: FileOptions = {},
): Promise<Load> {
  return runJob(
    context,
    environmentId,
    await acceptFile(withoutQueue(context), environmentId, content, options),
  );
}

/** Does the tasks of loads that are due, until the job has ended or none is left. */
export async function runJob(context: LoadContext, environmentId: number, jobId: string): Promise<Load> {
  const quiet = withoutQueue(context);
  for (;;) {
    await startLane(quiet, environmentId);
    const done = await runDueTasks(quiet, [beginJob, chunkJob, finishJob]);
    const load = await requireLoad(quiet, environmentId, jobId);
    if (done === 0 || (load.status !== 'queued' && load.status !== 'processing')) return load;
  }
}
