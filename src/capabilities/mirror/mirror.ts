/*
 * Mirrors: a load of all users or all companies removes the profiles that are missing from its
 * file. `decide.ts` decides once whether to remove them, then removes them in slices. A mirror
 * never removes more profiles than allowed, and never removes a profile that was written after the
 * file was received.
 */
import type { Capability } from '../../capability.ts';
import { mirrorField } from './api.ts';
import { decideMirror, requireMirrorFits, workOffMirror } from './decide.ts';
import { mirrorOptions } from './options.ts';
import { describeMirror, mirrorOf, type ShownMirror } from './outcome.ts';
import { forgetMirror, forgetMissing, mirrored, plannedMissing } from './store.ts';

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
