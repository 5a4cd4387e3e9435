import { type GuardLimit, readLimit } from './guards.ts';
import type { SourceOptions } from './source.ts';

/** A mirror is a load whose file holds all profiles of a scope: those that it does not hold go, or are flagged. */
export interface Mirror {
  /** The property that flags a profile; `null`: it is removed. */
  readonly flag: string | null;
  /** The key of the segment that is the scope; `null`: all profiles of the entity. */
  readonly segment: string | null;
  readonly maxRemoved: GuardLimit;
  readonly despiteRejects: boolean;
}

const flagPrefix = 'flag:';
const defaultMaxRemoved = '5%';

/** Returns `null` if the options ask for no mirror. */
export function mirrorOf({
  mirror,
  mirrorSegment,
  maxRemoved,
  mirrorDespiteRejects,
}: SourceOptions): Mirror | null {
  if (mirror === undefined) return null;
  return {
    flag: mirror.startsWith(flagPrefix) ? mirror.slice(flagPrefix.length) : null,
    segment: mirrorSegment ?? null,
    maxRemoved: readLimit(maxRemoved ?? defaultMaxRemoved) ?? { count: 0 },
    despiteRejects: mirrorDespiteRejects === true,
  };
}

/** The reasons for which a mirror leaves all profiles as they are. */
export const keptReasons = {
  too_many: 'more profiles are missing from the file than max_removed allows',
  rejects: 'records of the file were refused, and may be the missing ones',
  newer_file: 'files that came later were loaded first, and may hold them; send the file again',
  changes_not_kept: 'changes since the file came are no longer kept (CHANGES_DAYS)',
  segment_gone: 'the segment is no longer defined',
} as const;
export type KeptReason = keyof typeof keptReasons;

/** The outcome of a mirror, once it is decided. */
export interface Mirrored {
  /** Profiles in the scope, without those that the file made. */
  readonly profiles: number;
  /** Profiles that the file does not hold and that nobody has written since it came. */
  readonly missing: number;
  readonly allowed: number;
  /** Profiles that were removed or flagged so far. */
  readonly done: number;
  readonly kept_because: KeptReason | null;
}

export function describeMirror(mirror: ShownMirror): string {
  const { flag, profiles, missing, allowed, done, kept_because: kept } = mirror;
  if (missing === null) return 'the profiles that are missing from the file are not known yet';
  const found = `${missing} of ${profiles} profiles are missing from the file`;
  if (kept === null) return `${found}; ${done} ${flag === null ? 'removed' : `flagged as ${flag}`}`;
  return `${found}, and all stay: ${kept === 'too_many' ? `max_removed allows ${allowed}` : keptReasons[kept]}`;
}

type ShownMirror = Pick<Mirror, 'flag'> & { readonly [Field in keyof Mirrored]: Mirrored[Field] | null };
