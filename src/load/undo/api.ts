import { Type } from 'typebox';
import { MAX_SHOWN_LATER_LOADS } from '../../base/limits.ts';
import { optional } from '../../base/validation.ts';
import { guardPattern, guardRule } from '../../domain/guards.ts';
import { count, listOf, object, uuid } from '../../http/schema.ts';

export const undoCounts = object(
  'The result of an undo: a plan shows what it would be. Null for other jobs.',
  {
    restored: count('Profiles that got values back.', 8),
    brought_back: count('Profiles that the undone jobs had removed, and that are there again.', 0),
    removed: count('Profiles and events that the undone jobs had made, and that are gone.', 2),
    kept: count(
      'Profiles of which something stays, because somebody else has changed it since: the refused records with the code `changed_since`.',
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
  },
);

const guard = (name: string, what: string) =>
  optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: guardPattern })], {
      description: `Fails the job if more ${what}: a number, or a share of the records of the undone jobs. Nothing is written then.`,
      examples: ['5%'],
    }),
    `${name} ${guardRule}`,
  );

const options = {
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
};

export const undoBody = object('Options of an undo.', options);
