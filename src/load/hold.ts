import { ConflictError } from '../base/errors.ts';
import { findSurprises, type Surprise } from '../domain/guards.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { endTask } from '../tasks/store.ts';
import type { LoadContext } from './context.ts';
import { afterEnd, type LoadEnd, recordLoadEnd } from './end.ts';
import { holdLoad, readGuarded } from './held-store.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/** A held load waits for a person's decision, but does not block its lane. */
export interface Held extends LoadEnd {
  readonly held: readonly Surprise[];
}

export async function holdIfUnlike(
  context: LoadContext,
  db: Database,
  claim: TaskClaim,
  jobId: string,
): Promise<Held | null> {
  const guarded = await readGuarded(db, claim.subjectId);
  if (guarded === null) return null;
  const surprises = findSurprises(guarded.guard, guarded.file, guarded.past);
  if (surprises.length === 0) return null;
  await holdLoad(db, claim.subjectId, surprises);
  const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
  if (!(await endTask(db, claim))) throw new ConflictError(lostClaim);
  return { held: surprises, ...end };
}

export async function afterHold(
  context: LoadContext,
  claim: TaskClaim,
  { held, ...end }: Held,
): Promise<void> {
  context.log.warn({ ...taskFields(claim), held }, 'load held: its file is unlike what its guard expects');
  await afterEnd(context, claim.environmentId, end);
}
