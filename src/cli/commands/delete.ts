import type { Command } from 'commander';
import type { Entity } from '../../domain/entity.ts';
import type { Cli } from '../cli.ts';
import { type DeleteFlags, runDeleteCommand } from '../delete/run-delete-command.ts';

export function addDeleteCommand(program: Command, cli: Cli): void {
  const command = program
    .command('delete')
    .summary('delete users or companies')
    .description(
      'Deletes what is stored of users or companies. A server need not run; if one does, its workers do the work.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice delete users u1 u2\n  $ sluice delete companies --file gone.txt --yes --json',
    );
  addEntity(command, cli, 'users', 'their events');
  addEntity(command, cli, 'companies', 'what refers to them');
}

function addEntity(command: Command, cli: Cli, entity: Entity, others: string): void {
  command
    .command(entity)
    .summary(`delete ${entity}, and ${others}`)
    .description(
      `Deletes ${entity}, and ${others}, after every load that was accepted before.\n` +
        'Waits for the end, and shows what became of each id.\n' +
        'What is removed besides, and what stays until when: docs/deletion.md.',
    )
    .argument('[id...]', 'ids; after -- those that begin with a dash')
    .option('--file <path>', 'take ids from a file too, one a line; - reads standard input')
    .option('--purge-exports', 'remove the files of all exports of the environment too', false)
    .option('--yes', 'do not ask; needed where nobody can be asked', false)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print the result as JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0 done, whether there was something of every id or not; 1 failed, or
not confirmed; 2 wrong options; 130 stopped by Ctrl-C: the deletion stays
accepted, and workers that run, or the next that do, end it.

Examples:
  $ sluice delete ${entity} 17 18
  $ sluice delete ${entity} --file ids.txt --yes
  $ sluice delete ${entity} 17 --env staging --yes --json | jq .outcomes`,
    )
    .action((ids: string[], flags: DeleteFlags, own: Command) =>
      runDeleteCommand(cli, own, entity, ids, flags),
    );
}
