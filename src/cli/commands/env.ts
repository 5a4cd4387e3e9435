import type { Command } from 'commander';
import { createEnvironment, type Environment, listEnvironments } from '../../access/environments.ts';
import type { Cli } from '../cli.ts';
import { withSession } from '../session/session.ts';
import { renderTable } from '../table.ts';

interface Flags {
  readonly json: boolean;
}

export function addEnvCommand(program: Command, cli: Cli): void {
  const env = program
    .command('env')
    .summary('environments: create, list')
    .description('An environment is a tenant: its profiles, loads and keys are unreachable from any other.')
    .addHelpText('after', '\nExamples:\n  $ sluice env create staging\n  $ sluice env list --json');
  env
    .command('create')
    .summary('make an environment')
    .description('Makes an environment. `sluice keys create --env NAME` then makes its first key.')
    .argument('<name>', 'lower-case letters, digits, _ and -')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice env create staging && sluice keys create --env staging')
    .action((name: string, flags: Flags, command: Command) => create(cli, command, name, flags));
  env
    .command('list')
    .summary('all environments')
    .description('Lists the environments and their public app tokens.')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice env list')
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function create(cli: Cli, command: Command, name: string, { json }: Flags): Promise<void> {
  await withSession(cli, command, async ({ system }) => {
    const environment = await createEnvironment(system.db, name);
    if (json) return cli.terminal.json(render(environment));
    cli.terminal.print(`Environment ${environment.name} was made; its app token is ${environment.appToken}.`);
    cli.terminal.note(`Next, a key for it: sluice keys create --env ${environment.name}`);
  });
}

async function list(cli: Cli, command: Command, { json }: Flags): Promise<void> {
  await withSession(cli, command, async ({ system }) => {
    const environments = await listEnvironments(system.db);
    if (json) return cli.terminal.json(environments.map(render));
    if (environments.length === 0)
      return cli.terminal.note('There is none yet; `sluice start` makes `default`.');
    const rows = environments.map(({ name, appToken }) => [name, appToken]);
    for (const line of renderTable([{ title: 'name' }, { title: 'app token' }], rows))
      cli.terminal.print(line);
  });
}

function render({ name, appToken }: Environment) {
  return { name, app_token: appToken };
}
