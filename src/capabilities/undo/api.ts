import { type Static, Type } from 'typebox';
import { optional } from '../../base/validation.ts';
import { guardPattern, guardRule } from '../../domain/guards.ts';
import type { Tally } from '../../domain/load.ts';
import { count, listOf, object, orNull, uuid } from '../../http/schema.ts';
import type { UndoFacts } from './store.ts';
import { MAX_SHOWN_LATER_LOADS, MAX_SHOWN_UNDONE } from './store.ts';

const undoCounts = object('The result of an undo: a plan shows what it would be. Null for other jobs.', {
  restored: count('Profiles that got values back.', 8),
  brought_back: count('Profiles that the undone jobs had removed, and that are there again.', 0),
  removed: count('Profiles and events that the undone jobs had made, and that are gone.', 2),
  kept: count(
    'Profiles that keep values because somebody else has changed them since the load. They are refused with the code `changed_since`.',
    1,
  ),
  failed: count('Records that were refused for another reason.', 0),
  events_gone: count(
    'Events of the undone jobs that were gone before: moved to the lake, deleted or undone. The lake is left as it is.',
    0,
  ),
  later_loads: listOf(
    'Later jobs that found records unchanged. A record that brings the same value as an undone one writes nothing, so the older value is back: load their files again.',
    uuid('A job.'),
    { maxItems: MAX_SHOWN_LATER_LOADS, examples: [[]] },
  ),
});

export const undoField = orNull(undoCounts, null);
export const undoesField = listOf('The jobs that this job undoes.', uuid('A job.'), {
  maxItems: MAX_SHOWN_UNDONE,
  examples: [[]],
});
export const undoneByField = orNull(uuid('The job that undoes this one, once it has begun.'), null);

export interface UndoFields {
  readonly undo: Static<typeof undoField>;
  readonly undoes: Static<typeof undoesField>;
  readonly undone_by: Static<typeof undoneByField>;
}

export function renderUndo(
  tally: Tally,
  { eventsGone, laterLoads, failed }: UndoFacts,
): Static<typeof undoCounts> {
  return {
    restored: tally.updated,
    brought_back: tally.inserted,
    removed: tally.removed,
    kept: tally.rejected - failed,
    failed,
    events_gone: eventsGone,
    later_loads: [...laterLoads],
  };
}

const guard = (name: string, what: string) =>
  optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: guardPattern })], {
      description: `Fails the job if more ${what}: a number, or a share of the records of the undone jobs. Nothing is written then.`,
      examples: ['5%'],
    }),
    `${name} ${guardRule}`,
  );

export const undoBody = object('Options of an undo.', {
  plan: optional(
    Type.Boolean({
      description: 'Only show what the undo would do. Apply the plan to do it.',
      default: false,
    }),
    'plan is true or false',
  ),
  max_errors: guard('max_errors', 'profiles than this are kept'),
  max_changed: guard('max_changed', 'profiles than this would change'),
  max_removed_values: guard('max_removed_values', 'property values than this would be removed'),
});
