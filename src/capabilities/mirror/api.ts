import type { Static } from 'typebox';
import { choiceOrNull, count, object, orNull, text } from '../../http/schema.ts';
import { type KeptReason, keptReasons } from './outcome.ts';

export const mirrorField = orNull(
  object('What a mirror does with profiles that its file does not hold. Null for other loads.', {
    profiles: orNull(
      count(
        'Profiles of the entity before the file. Null until the file is loaded, as are the other counts.',
        240,
      ),
    ),
    missing: orNull(
      count('Profiles that the file does not hold, and that nobody has written since it came.', 3),
    ),
    allowed: orNull(count('The most that may be removed: `max_removed`.', 12)),
    done: count('Profiles removed so far.', 3),
    kept_because: choiceOrNull(
      Object.keys(keptReasons) as KeptReason[],
      `Why all profiles stay. ${Object.entries(keptReasons)
        .map(([code, why]) => `\`${code}\`: ${why}.`)
        .join(' ')} Null if they do not.`,
      null,
    ),
    summary: text('The same as a sentence.', '3 of 240 profiles are missing from the file; 3 removed'),
  }),
  null,
);
export type MirrorField = Static<typeof mirrorField>;
