/** `sluice suppressions`: users who are kept out. */
import { checkIds } from '../deletion/deletions.ts';
import { plural } from '../domain/wording.ts';
import { countSuppressions, findSuppressed, liftSuppressions } from '../postgres/stores/suppressions.ts';
import { defineCommand, optional, several } from './define-command.ts';
import { printable, printDone } from './terminal.ts';

const count = defineCommand({
  name: 'count',
  summary: 'count the users who are kept out, or tell whether one is',
  argument: optional('[user-id]', 'count only this one: 1 if it is kept out'),
  json: 'print JSON, as the API has it',
  examples: ['sluice suppressions count', 'sluice suppressions count u1'],
  inEnvironment: async ({ system: { db }, environmentId, env, argument: id, terminal, json }) => {
    const found =
      id === undefined
        ? await countSuppressions(db, environmentId)
        : (await findSuppressed(db, environmentId, [id])).size;
    const sentence =
      id === undefined
        ? `Environment ${env} keeps ${plural(found, 'id')} out.`
        : `${printable(id, 80)} is ${found === 1 ? '' : 'not '}kept out.`;
    printDone({ terminal, json }, { count: found }, sentence);
  },
});

const lift = defineCommand({
  name: 'lift',
  summary: 'let users in again',
  description: 'Lets users in again: later records of them are accepted. Deleted data does not come back.',
  argument: several('<user-id...>', 'each as it was sent'),
  json: 'print JSON, as the API has it',
  examples: ['sluice suppressions lift u1'],
  inEnvironment: async ({ system, environmentId, argument, terminal, json }) => {
    const ids = checkIds('users', argument);
    const lifted = await liftSuppressions(system.db, environmentId, ids);
    const outcome = { lifted, not_found: ids.length - lifted };
    const sentence = `${plural(lifted, 'id')} let in again, ${outcome.not_found} not kept out.`;
    printDone({ terminal, json }, outcome, sentence);
  },
});

export const suppressions = defineCommand({
  name: 'suppressions',
  summary: 'users who were deleted and are kept out',
  description:
    'Counts the users whom `sluice delete users --suppress` keeps out, and lets them in again. They cannot be listed: of each id\n' +
    'only a hash is kept.',
  examples: ['sluice suppressions count', 'sluice suppressions lift u1 u2'],
  commands: [count, lift],
});
