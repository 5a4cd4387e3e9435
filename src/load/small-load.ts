import { jobFields, type TaskClaim } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { findLaneHead, tryLockLane } from '../tasks/lane-store.ts';
import type { OwnPlace } from '../tasks/runner.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { LoadContext } from './context.ts';
import { SMALL_LOAD_BYTES } from './limits.ts';
import type { ReceivedFile } from './receive/received-file.ts';
import { type StartedLoad, startLoad } from './store.ts';

/*
 * A small load whose lane is idle starts in the transaction that accepts it. The same process then
 * merges the only chunk. This saves a commit, the queue and the wait for a worker.
 */

/** A load that has started in the transaction that accepted it. */
export interface StartedSmallLoad extends StartedLoad {
  /**
   * Claim of the load's task. `null` if it is another environment's turn. Workers then run the
   * task.
   */
  readonly claim: TaskClaim | null;
  readonly place: OwnPlace;
}

/**
 * Reserves a place in this process for a small load. Returns `null` if workers must run the load,
 * because it is large or this process is busy.
 */
export function reservePlace({ ownTasks }: LoadContext, { chunks }: ReceivedFile): OwnPlace | null {
  const [chunk] = chunks;
  const isSmall =
    chunks.length === 1 && chunk !== undefined && chunk.byteEnd - chunk.byteStart <= SMALL_LOAD_BYTES;
  return isSmall ? (ownTasks?.reserve() ?? null) : null;
}

/**
 * Starts the load if it is next in its lane. Returns `null` otherwise. Does not wait for a
 * transaction that has locked the lane. Must be called in the transaction that accepts the load.
 */
export async function startSmallLoad(
  db: Database,
  place: OwnPlace,
  environmentId: number,
  jobId: string,
): Promise<StartedSmallLoad | null> {
  if (!(await tryLockLane(db, environmentId))) return null;
  const head = await findLaneHead(db, environmentId);
  if (head?.jobId !== jobId) return null;
  const started = await startLoad(db, head.id);
  const [task] = started?.tasks ?? [];
  if (started === null || task === undefined) return null;
  return { ...started, claim: await place.claim(db, task, environmentId), place };
}

/** Runs a small load in this process, or notifies the queue. Must be called after the commit. */
export async function runSmallLoad(context: LoadContext, started: StartedSmallLoad): Promise<void> {
  context.log.info(jobFields(started), 'load starts');
  if (started.claim === null) await notifyQueue(context, started.tasks);
  else started.place.run(started.claim);
}
