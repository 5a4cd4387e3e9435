import { ConflictError, inputError } from '../../base/errors.ts';
import { named, type Sentence, say } from '../../base/sentence.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import type { LoadOptions } from '../../domain/load.ts';
import { taskFields } from '../../domain/task.ts';
import type { EndSeam } from '../../load/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { renewTask } from '../../tasks/store.ts';
import { inTaskTransaction } from '../../tasks/worker-store.ts';
import { type KeptReason, mirrorOf } from './outcome.ts';
import { keepsChanges, listMissing, readMirror, workOffMissing } from './store.ts';

/** Maximum number of profiles that one transaction removes. */
export const MIRROR_SLICE_PROFILES = 2_000;

/** @throws InputError `invalid_field` if the load cannot be a mirror */
export async function requireMirrorFits(
  db: Database,
  { source, preset }: LoadOptions,
  entity: LoadEntity,
): Promise<void> {
  if (mirrorOf(source) === null) return;
  const refuse = (message: Sentence) => inputError('invalid_field', message, 'mirror');
  if (preset !== null) throw refuse('mirror and preset exclude each other');
  if (entity === 'auto')
    throw refuse(
      say`mirror needs ${named('entity', 'users')} or ${named('entity', 'companies')}, whichever the file holds completely`,
    );
  if (!(await keepsChanges(db)))
    throw refuse('mirror needs the log of changes, to bring back what it removes: set CHANGES_DAYS above 0');
}

/**
 * Decides which profiles the load removes, unless this has already been decided. The caller's
 * transaction also checks that this attempt still owns the load.
 */
export async function decideMirror(db: Database, loadId: number): Promise<void> {
  const { mirror, decided, isLogged, isDoubtful, scope } = await readMirror(db, loadId);
  if (decided !== null) return;
  const reasons: readonly (readonly [boolean, KeptReason])[] = [
    [!isLogged, 'changes_not_kept'],
    [isDoubtful && !mirror.despiteRejects, 'rejects'],
  ];
  const kept = reasons.find(([holds]) => holds)?.[1] ?? null;
  await listMissing(db, scope, mirror.maxRemoved, kept);
}

/** Removes the listed profiles. After an interruption, another call continues. */
export const workOffMirror: EndSeam['settle'] = async (context, claim) => {
  const { scope, decided } = await readMirror(context.db, claim.subjectId);
  if (decided === null || decided.kept_because !== null) return;
  let listed = -1;
  while (listed !== 0) {
    listed = await inTaskTransaction(context.pool, claim, async ({ db }) => {
      const count = await workOffMissing(db, scope, MIRROR_SLICE_PROFILES);
      if (!(await renewTask(db, claim)))
        throw new ConflictError('another worker finishes the load, or it has ended');
      return count;
    });
  }
  context.log.info(
    { ...taskFields(claim), missing: decided.missing },
    'mirror begins to remove the profiles that its file does not hold',
  );
};
