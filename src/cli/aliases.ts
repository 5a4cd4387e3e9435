/** `sluice users aliases`: the ids of a person. */
import { uuidv7 } from 'uuidv7';
import { MAX_ID_BYTES, MAX_PAGE_SIZE } from '../domain/limits.ts';
import { addAlias } from '../load/undo/add-alias.ts';
import { findPerson, readAliases } from '../postgres/stores/aliases.ts';
import { textProblem } from '../validation.ts';
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
    const problem = alias.trim() === '' ? 'is blank' : textProblem(alias, MAX_ID_BYTES);
    if (problem !== null) throw new UsageError(`The alias ${problem}.`);
    const { userId, isNew, jobId } = await addAlias(
      ...([system, environmentId, { alias, userId: argument }, merge] as const),
      { jobId: uuidv7(), requestId: null, origin: { kind: 'command_line', name: null } },
    );
    const made = { user_id: userId, alias, is_new: isNew, job_id: jobId };
    const [who, person] = [printable(alias, 80), printable(userId, 80)];
    const moves = jobId === null ? '' : ` Job ${jobId} moves what was stored under it.`;
    printDone(
      { terminal, json },
      made,
      `${who} ${isNew ? 'is now' : 'was already'} an alias of ${person}.${moves}`,
    );
  },
});
