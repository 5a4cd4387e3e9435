import { Type } from 'typebox';
import { worded } from '../../validation.ts';

const noSuchSchedule = 'there is no such schedule';

/** The path of everything that concerns one schedule. */
export const scheduleParameters = Type.Object({
  schedule: worded(
    Type.String({
      pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
      description: 'Its name in the file.',
      examples: ['nightly-users'],
    }),
    { says: { code: 'not_found', message: noSuchSchedule, details: 'schedule' } },
  ),
});
