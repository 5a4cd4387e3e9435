import { ConflictError, Fault, FinalFailure } from '../base/errors.ts';
import { plural } from '../base/wording.ts';
import type { Limits } from '../domain/guards.ts';
import { balances, GUARD_EXCEEDED, keepsPlan, type PlanSummary } from '../domain/load.ts';
import type { TaskClaim, TaskFailure } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { renewTask } from '../tasks/store.ts';
import type { LoadContext } from './context.ts';
import { allRefused } from './rejects/rejects.ts';
import { type FinishState, readFinishState, readLimitedPlan } from './running-store.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/**
 * Runs all checks that follow the chunks. First renews the task's claim, so that the claim is
 * locked.
 * @throws FinalFailure
 */
export async function runFinalChecks(
  context: LoadContext,
  db: Database,
  claim: TaskClaim,
): Promise<FinishState> {
  if (!(await renewTask(db, claim))) throw new ConflictError(lostClaim);
  const state = await readFinishState(db, claim.subjectId);
  const { tally, totalRows, pass, maxErrors } = state;
  if (pass !== 'validate') requireBalance(state);
  if (maxErrors !== null && tally.rejected > maxErrors)
    throw fails(tooManyRejects(tally.rejected, maxErrors));
  const planned = keepsPlan(pass) ? await readLimitedPlan(db, claim.subjectId) : null;
  const failure = planned && findGuardHit(planned, planned.plan);
  if (failure !== null) throw fails(failure);
  if (tally.rejected > 0 && tally.rejected === totalRows && !state.ownFile)
    throw fails(await allRefused({ ...context, db }, claim));
  return state;
}

function requireBalance({ tally, totalRows, kindsAddUp, openChunks }: FinishState): void {
  if (!balances(tally) || tally.read !== totalRows) {
    throw new Fault(`the ledger does not balance: ${JSON.stringify(tally)}, ${totalRows} records received`);
  }
  if (!kindsAddUp) throw new Fault('the counts by kind do not add up to those of the load');
  if (openChunks > 0) throw new Fault(`${openChunks} chunks are not done, though all were counted as done`);
}

function fails({ code, message }: TaskFailure): FinalFailure {
  return new FinalFailure(code, message);
}

export function tooManyRejects(rejected: number, maxErrors: number): TaskFailure {
  return {
    code: 'too_many_rejects',
    message: `Stopped: ${rejected} refused, ${maxErrors} allowed by max_errors; nothing written`,
  };
}

function findGuardHit(
  { maxChanged, maxRemovedValues }: Omit<Limits<number>, 'maxErrors'>,
  { profiles, values }: PlanSummary,
): TaskFailure | null {
  const { users, companies } = profiles;
  const changed = users.changed + users.removed + companies.changed + companies.removed;
  const hits = [
    [changed, maxChanged, `${plural(changed, 'profile')} would be changed or removed and max_changed`],
    [values.go, maxRemovedValues, `${plural(values.go, 'value')} would be removed and max_removed_values`],
  ] as const;
  const [, limit, what] = hits.find(([count, allowed]) => allowed !== null && count > allowed) ?? [];
  return what === undefined ? null : { code: GUARD_EXCEEDED, message: `${what} allows ${limit}` };
}
