import type { Static } from 'typebox';
import { type GuardLimit, readLimit } from '../../domain/guards.ts';
import type { SourceOptions } from '../../domain/source.ts';
import { choiceOrNull, count, object, orNull, text } from '../../http/schema.ts';

interface Mirror {
  readonly maxRemoved: GuardLimit;
  readonly despiteRejects: boolean;
}

const defaultMaxRemoved = '5%';

export function mirrorOf({ mirror, maxRemoved, mirrorDespiteRejects }: SourceOptions): Mirror | null {
  if (mirror === undefined) return null;
  return {
    maxRemoved: readLimit(typeof maxRemoved === 'string' ? maxRemoved : defaultMaxRemoved) ?? { count: 0 },
    despiteRejects: mirrorDespiteRejects === true,
  };
}

/** Reasons why a mirror removes no profiles. */
const keptReasons = {
  too_many: 'more profiles are missing from the file than max_removed allows',
  rejects: 'records of the file were refused, and may be the missing ones',
  newer_file: 'files that came later were loaded first, and may hold them; send the file again',
  changes_not_kept: 'changes since the file came are no longer kept (CHANGES_DAYS)',
} as const;
export type KeptReason = keyof typeof keptReasons;

export interface Mirrored {
  readonly profiles: number;
  /** Excludes profiles that were written after the file was received. */
  readonly missing: number;
  readonly allowed: number;
  readonly done: number;
  readonly kept_because: KeptReason | null;
}

export function describeMirror(mirror: ShownMirror): string {
  const { profiles, missing, allowed, done, kept_because: kept } = mirror;
  if (missing === null) return 'the profiles that are missing from the file are not known yet';
  const summary = `${missing} of ${profiles} profiles are missing from the file`;
  if (kept === null) return `${summary}; ${done} removed`;
  return `${summary}, and all stay: ${kept === 'too_many' ? `max_removed allows ${allowed}` : keptReasons[kept]}`;
}

export type ShownMirror = { readonly [Field in keyof Mirrored]: Mirrored[Field] | null };

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
