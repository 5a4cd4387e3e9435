import { type Static, Type } from 'typebox';
import { MAX_ID_BYTES } from '../domain/limits.ts';
import { idProblem, optional, ruled, worded } from '../validation.ts';
import { jobFields } from './job.ts';
import { defineRecord, envelope, flag, object, orNull, text, time } from './schema.ts';

const aliasText = 'The other ID of the person.';
const alias = text(aliasText, 'anon-7f3a');

const job = (when: string) =>
  orNull({
    ...jobFields.job_id,
    description: `Job that moves what was stored under the alias. Null ${when}.`,
  });

export const userAlias = defineRecord('UserAlias', 'An ID that belongs to a user.', {
  alias,
  created_at: time('When it became an alias.', '2026-11-20T12:34:56.123456Z'),
  job_id: job('if it is no longer kept'),
});
export type UserAlias = Static<typeof userAlias.schema>;

export const aliasPage = envelope('UserAliasPage', userAlias.ref, 'Aliases, sorted.', {
  user_id: text('ID of the person, who is no alias.', 'u1'),
});
export type UserAliasPage = Static<typeof aliasPage.schema>;

export const aliasBody = object('An alias.', {
  alias: worded(
    ruled(text(aliasText, 'anon-7f3a'), idProblem),
    `alias is a text of 1 to ${MAX_ID_BYTES} bytes that is not blank`,
  ),
  merge: optional(
    Type.Boolean({
      description:
        'If the alias belongs to another person, make that person an alias too, with all aliases. By default that is refused.',
      default: false,
    }),
    'merge is true or false',
  ),
});

export const madeAlias = defineRecord('MadeAlias', 'An alias of a person.', {
  user_id: text('ID of the person, who is no alias.', 'u1'),
  alias,
  is_new: flag('False: both IDs belonged to this person before.', true),
  job_id: job('if nothing changed'),
});
export type MadeAlias = Static<typeof madeAlias.schema>;
