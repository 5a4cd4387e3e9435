/*
 * Mirrors: once its file is merged, a load removes or flags the profiles of its scope that the file does not hold. First it decides, with all
 * of them in view (`decideMirror`); then it works them off in slices, each fenced (`workOffMirror`). Promise: more than was allowed never go,
 * and none that anybody has written since the file came.
 */
import type { Expression, SqlBool } from 'kysely';
import type { Entity, LoadEntity } from '../domain/entity.ts';
import { ConflictError, inputError } from '../domain/errors.ts';
import { MIRROR_SLICE_PROFILES } from '../domain/limits.ts';
import type { LoadOptions } from '../domain/load.ts';
import { type KeptReason, mirrorOf } from '../domain/mirror.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { noteWritten } from '../postgres/stores/chunks.ts';
import { keepsChanges, listMissing, readMirror, workOffMissing } from '../postgres/stores/mirrors.ts';
import { readRules } from '../postgres/stores/rules.ts';
import { findSegmentItem } from '../postgres/stores/segments.ts';
import { renewTask } from '../postgres/stores/tasks.ts';
import { nameTaskSession } from '../postgres/stores/workers.ts';
import { compileRules } from '../rules/compile-rules.ts';
import { compileSegment } from '../segments/compile-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';
import type { LoadContext } from './context.ts';

/** Checks what a mirror needs before its load is accepted. @throws InputError `invalid_field`. */
export async function requireMirrorFits(
  db: Database,
  environmentId: number,
  { source, preset }: LoadOptions,
  entity: LoadEntity,
): Promise<void> {
  const mirror = mirrorOf(source);
  if (mirror === null) return;
  const refuse = (message: string, name = 'mirror') => inputError('invalid_field', message, name);
  if (preset !== null) throw refuse('give mirror or preset, not both');
  if (entity === 'auto')
    throw refuse('mirror needs entity=users or entity=companies, whichever the file holds completely');
  if (mirror.flag !== null && !(await mayBeTrue(db, environmentId, entity, mirror.flag)))
    throw refuse(`by the rules, ${mirror.flag} cannot be true for all: flag another property`);
  if (!(await keepsChanges(db)))
    throw refuse('mirror needs the log of changes, to bring back what it removes: set CHANGES_DAYS above 0');
  if (mirror.segment === null) return;
  if (entity !== 'users')
    throw refuse('segments hold only users: leave mirror_segment out', 'mirror_segment');
  if ((await findScope(db, environmentId, mirror.segment)) !== null) return;
  throw refuse(`there is no segment with the key ${mirror.segment}`, 'mirror_segment');
}

/** Tells whether the rules let a property be `true`, for any number of profiles. */
async function mayBeTrue(
  db: Database,
  environmentId: number,
  entity: Entity,
  name: string,
): Promise<boolean> {
  const rules = await readRules(db, environmentId);
  const stage = compileRules(rules?.document ?? {})[entity];
  return stage === null || (stage.judgeAll({ [name]: true })[name] === true && stage.problems.length === 0);
}

/** Returns the segment as it is defined now; `null` if it is not. */
async function findScope(db: Database, environmentId: number, key: string): Promise<Segment | null> {
  const found = await findSegmentItem(db, environmentId, { key });
  return found && readSegment(found.definition).segment;
}

/** The condition that the user `p` is in the segment, in this transaction; true: there is none. */
type Scope = Expression<SqlBool> | true;

/** Finds whom a mirror is about; `null` if its segment is not defined any more. */
async function readScope(db: Database, environmentId: number, key: string | null): Promise<Scope | null> {
  if (key === null) return true;
  const segment = await findScope(db, environmentId, key);
  return segment && compileSegment(segment, { environmentId, now: new Date(), user: 'p' });
}

/** Decides what becomes of the profiles that the file does not hold. Call it in the transaction that holds the fence; a second call does nothing. */
export async function decideMirror(db: Database, loadId: number): Promise<void> {
  const { mirror, decided, isLogged, isDoubtful, scope } = await readMirror(db, loadId);
  if (decided !== null) return;
  const about = await readScope(db, scope.environmentId, mirror.segment);
  const reasons: readonly (readonly [boolean, KeptReason])[] = [
    [about === null, 'segment_gone'],
    [!isLogged, 'changes_not_kept'],
    [isDoubtful && !mirror.despiteRejects, 'rejects'],
  ];
  const kept = reasons.find(([holds]) => holds)?.[1] ?? null;
  await listMissing(db, scope, about ?? false, mirror.maxRemoved, kept);
}

/** Removes or flags what was decided. May be called again after half of it. */
export async function workOffMirror(context: LoadContext, claim: TaskClaim): Promise<void> {
  const { scope, decided } = await readMirror(context.db, claim.subjectId);
  if (decided === null || decided.kept_because !== null) return;
  const { environmentId, entity, flag } = scope;
  if (flag !== null && decided.missing > 0)
    await context.knownProperties.learn(context.db, environmentId, entity, new Map([[flag, 'boolean']]));
  for (let listed = -1; listed !== 0; ) {
    listed = await inTransaction(context.pool, async ({ db }) => {
      await nameTaskSession(db, claim);
      const found = await workOffMissing(db, scope, MIRROR_SLICE_PROFILES);
      if (found > 0) await noteWritten(db, claim.subjectId, 0);
      if (!(await renewTask(db, claim)))
        throw new ConflictError('another worker finishes the load, or it has ended');
      return found;
    });
  }
  context.log.info(
    { ...taskFields(claim), missing: decided.missing },
    'mirror begins to remove or flag the profiles that its file does not hold',
  );
}
