import { GUARD_EXCEEDED, type Guards, type PlanSummary } from '../domain/load.ts';
import type { TaskFailure } from '../domain/task.ts';

/*
 * Guards: what a load may do at most, in numbers that its caller gave. They are looked at before anything is written, by a pass over the
 * file that only looks (`LoadPass`); one that is hit fails the load.
 */

export function tooManyRejects(rejected: number, maxErrors: number): TaskFailure {
  return {
    code: 'too_many_rejects',
    message: `${rejected} ${rejected === 1 ? 'record was' : 'records were'} refused and max_errors allows ${maxErrors}`,
  };
}

/** The first guard that a plan hits; null if there is none. */
export function findGuardHit(
  { maxChanged, maxRemovedValues }: Guards,
  { profiles, values }: PlanSummary,
): TaskFailure | null {
  const changed = profiles.users.changed + profiles.companies.changed;
  if (maxChanged !== null && changed > maxChanged) {
    const what = changed === 1 ? 'profile would be changed' : 'profiles would be changed';
    return { code: GUARD_EXCEEDED, message: `${changed} ${what} and max_changed allows ${maxChanged}` };
  }
  if (maxRemovedValues !== null && values.go > maxRemovedValues) {
    const what = values.go === 1 ? 'value would be removed' : 'values would be removed';
    return {
      code: GUARD_EXCEEDED,
      message: `${values.go} ${what} and max_removed_values allows ${maxRemovedValues}`,
    };
  }
  return null;
}
