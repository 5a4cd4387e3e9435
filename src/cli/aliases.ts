/** `sluice users aliases`: the ids of a person. */
import { uuidv7 } from 'uuidv7';
import { MAX_PAGE_SIZE } from '../domain/limits.ts';
import { addAlias } from '../load/undo/add-alias.ts';
import { findPerson, readAliases } from '../postgres/stores/aliases.ts';
import { idProblem } from '../validation.ts';
import { defineCommand, flag, limitOption, required, text } from './define-command.ts';
import { UsageError } from './errors.ts';
import { printable, printDone, printList } from './terminal.ts';

export const aliasesCommand = defineCommand({
  name: 'aliases',
  summary: 'the aliases of a user, and new ones',
  description:
    'Lists the other ids of a user, or gives the user one. From then on records of the alias belong to the user, and a job\n' +
    'moves what was stored under it. Undoing that job takes the alias away again.',
  argument: required('<user-id>', 'as it was sent, or an alias'),
  options: {
    add: text('--add <alias>', 'give the user this alias'),
    merge: flag(
      '--merge',
      'with --add: if it is an alias of another person, that person becomes an alias too',
    ),
    limit: limitOption(MAX_PAGE_SIZE),
  },
  json: 'print JSON, as the API has it',
  examples: ['sluice users aliases u1', 'sluice users aliases u1 --add anon-7f3a'],
  inEnvironment: async ({ system, environmentId, argument, flags, terminal, json }) => {
    const { add: alias, merge, limit } = flags;
    if (alias === undefined) {
      if (merge) throw new UsageError('--merge goes with --add.');
      const person = await findPerson(system.db, environmentId, argument);
      const found = await readAliases(system.db, environmentId, person, { limit, after: null });
      return printList({ terminal, json }, found, {
        columns: ['alias', 'created_at', 'job_id'],
        none: `${printable(person, 80)} has no aliases.`,
      });
    }
    const problem = idProblem(alias);
    if (problem !== null) throw new UsageError(`The alias ${problem}.`);
    const link = { alias, userId: argument };
    const asked = { jobId: uuidv7(), requestId: null, origin: { kind: 'command_line', name: null } } as const;
    const made = await addAlias(system, environmentId, link, merge, asked);
    const [who, person] = [printable(alias, 80), printable(made.user_id, 80)];
    const moves = made.job_id === null ? '' : ` Job ${made.job_id} moves what was stored under it.`;
    const sentence = `${who} ${made.is_new ? 'is now' : 'was already'} an alias of ${person}.${moves}`;
    printDone({ terminal, json }, made, sentence);
  },
});
