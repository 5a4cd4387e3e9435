import type { Command } from 'commander';
import { kinds } from '../../domain/definitions.ts';
import { readDefinitions } from '../../postgres/stores/definitions.ts';
import { printItems } from '../catalogue/print-items.ts';
import type { Cli } from '../cli.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addCatalogueShowCommand(catalogue: Command, cli: Cli): void {
  catalogue
    .command('show')
    .summary('the catalogue with its ids')
    .description('Shows what is defined for an environment, with the ids that the lookups and exports use.')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON, the definitions of segments too', false)
    .addHelpText(
      'after',
      "\nExamples:\n  $ sluice catalogue show\n  $ sluice catalogue show --json | jq '.segments[] | {id, key}'",
    )
    .action((flags: Flags, command: Command) => show(cli, command, flags));
}

async function show(cli: Cli, command: Command, { env, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const items = await readDefinitions(session.system.db, environmentId);
    if (json) return cli.terminal.json(items);
    if (kinds.every((kind) => items[kind].length === 0)) {
      return cli.terminal.note(`Environment ${env} has no catalogue; \`sluice catalogue apply\` makes one.`);
    }
    printItems(cli.terminal, items);
  });
}
