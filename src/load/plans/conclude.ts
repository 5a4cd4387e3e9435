import type { RawBuilder } from 'kysely';
import { ConflictError } from '../../base/errors.ts';
import type { TaskClaim } from '../../domain/task.ts';
import { renewTask } from '../../tasks/store.ts';
import { inTaskTransaction } from '../../tasks/worker-store.ts';
import type { LoadContext } from '../context.ts';
import { type ChunksDone, countRestored } from '../merge/repeats.ts';
import { requireLoad } from '../read-store.ts';
import { endsFor } from '../seam.ts';
import { summarisePlan } from './store.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/**
 * Corrects the counts of a plan, adds the rows of capabilities, and writes the summary. Does
 * nothing if the plan already has a summary.
 */
export async function concludePlan(
  context: LoadContext,
  claim: TaskClaim,
  chunks: ChunksDone,
): Promise<void> {
  const { environmentId, subjectId, jobId } = claim;
  await inTaskTransaction(context.pool, claim, async ({ db }) => {
    if ((await requireLoad({ ...context, db }, environmentId, jobId ?? '')).plan !== null) return;
    if (chunks.hasRewritten) await countRestored(db, subjectId, chunks.pass);
    const load = await requireLoad({ ...context, db }, environmentId, jobId ?? '');
    const planned: RawBuilder<unknown>[] = [];
    for (const seam of endsFor(context.loads, chunks.source)) planned.push(await seam.planned(db, subjectId));
    await summarisePlan(db, subjectId, { counts: load.tally, countsByKind: load.tallyByKind }, planned);
    if (!(await renewTask(db, claim))) throw new ConflictError(lostClaim);
  });
}
