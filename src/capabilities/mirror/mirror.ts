/*
 * A mirror is a load of all users or all companies that also removes the profiles missing from its
 * file. It decides only once whether to remove these profiles, and then removes them in slices. A
 * mirror never removes more profiles than allowed, nor a profile that was written after the file
 * was received.
 */
import { inputError } from '../../base/errors.ts';
import { named, type Sentence, say } from '../../base/sentence.ts';
import type { Capability } from '../../capability.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import { guardPattern, guardRule } from '../../domain/guards.ts';
import type { LoadOptions } from '../../domain/load.ts';
import { flag, type OptionSeam } from '../../domain/source-option.ts';
import { taskFields } from '../../domain/task.ts';
import type { EndSeam } from '../../load/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { holdTask } from '../../tasks/store.ts';
import { inTaskTransaction } from '../../tasks/worker-store.ts';
import { describeMirror, type KeptReason, mirrorField, mirrorOf, type ShownMirror } from './api.ts';
import {
  forgetMirror,
  forgetMissing,
  keepsChanges,
  listMissing,
  mirrored,
  plannedMissing,
  readMirror,
  workOffMissing,
} from './store.ts';

export const MIRROR_SLICE_PROFILES = 2_000;

/** @throws InputError `invalid_field` if the load cannot be a mirror */
async function requireMirrorFits(
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
 * Decides whether to remove the missing profiles, unless this is already decided. The caller's
 * transaction also checks that this attempt still owns the load.
 */
async function decideMirror(db: Database, loadId: number): Promise<void> {
  const { mirror, decided, isLogged, isDoubtful, scope } = await readMirror(db, loadId);
  if (decided !== null) return;
  const reasons: readonly (readonly [boolean, KeptReason])[] = [
    [!isLogged, 'changes_not_kept'],
    [isDoubtful && !mirror.despiteRejects, 'rejects'],
  ];
  const kept = reasons.find(([holds]) => holds)?.[1] ?? null;
  await listMissing(db, scope, mirror.maxRemoved, kept);
}

/** Removes the missing profiles in slices. After an interruption, another call continues. */
const workOffMirror: EndSeam['settle'] = async (context, claim) => {
  const { scope, decided } = await readMirror(context.db, claim.subjectId);
  if (decided === null || decided.kept_because !== null) return;
  let listed = -1;
  while (listed !== 0) {
    listed = await inTaskTransaction(context.pool, claim, async ({ db }) => {
      const count = await workOffMissing(db, scope, MIRROR_SLICE_PROFILES);
      await holdTask(db, claim);
      return count;
    });
  }
  context.log.info(
    { ...taskFields(claim), missing: decided.missing },
    'mirror has removed the profiles that its file does not hold',
  );
};

/**
 * These options apply to one file only. If they applied to several files, a later file with a few
 * corrected records would remove all other profiles.
 */
export const mirrorOptions: OptionSeam = {
  options: {
    mirror: {
      type: 'string',
      argument: 'action',
      description:
        'declares that the file holds all users (or companies). Those that it does not hold are removed once it is loaded',
      choices: ['remove'],
      rule: 'must be remove. To mark profiles instead of removing them, load a file with a column of marks',
      examples: ['remove'],
      read: (text) => (text === 'remove' ? text : undefined),
      isOfOneFile: true,
    },
    max_removed: {
      type: 'string',
      fileTypes: ['string', 'integer'],
      argument: 'limit',
      description:
        'most profiles that a mirror may remove: a number, or a share of those that are stored. If more are missing from the file, all stay. Default: 5%',
      rule: guardRule,
      examples: ['5%', '200'],
      read: (text) => (new RegExp(guardPattern).test(text) ? text : undefined),
      needs: 'mirror',
      isOfOneFile: true,
    },
    mirror_despite_rejects: {
      ...flag(
        'lets a mirror act although records of the file were refused. Profiles that only refused records name count as missing',
      ),
      needs: 'mirror',
      isOfOneFile: true,
    },
  },
  contradictions({ mirror, existing }) {
    const isWrong = mirror !== undefined && existing === 'keep';
    return isWrong ? [{ name: 'existing', what: 'must be replace in a mirror' }] : [];
  },
};

const undecided = { profiles: null, missing: null, allowed: null, done: 0, kept_because: null };

export const mirror: Capability = {
  name: 'mirror',
  loads: {
    ...mirrorOptions,
    fields: [
      {
        name: 'mirror',
        schema: mirrorField,
        absent: null,
        isOf: ({ source }) => mirrorOf(source) !== null,
        select: mirrored,
        render(_, field) {
          const shown = (field as ShownMirror | null) ?? undecided;
          return { ...shown, summary: describeMirror(shown) };
        },
        isPartial: (field) => (field as ShownMirror | null)?.kept_because != null,
      },
    ],
    hooks: {
      option: 'mirror',
      accept: requireMirrorFits,
      end: {
        decide: decideMirror,
        settle: workOffMirror,
        planned: plannedMissing,
        completed: forgetMissing,
        forget: forgetMirror,
      },
    },
  },
};
