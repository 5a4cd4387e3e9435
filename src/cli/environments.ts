import { createEnvironment, type Environment, listEnvironments } from '../postgres/stores/environments.ts';
import { defineCommand } from './define-command.ts';
import { columnsOf, printList } from './format.ts';
import { required } from './options.ts';

const create = defineCommand({
  name: 'create',
  summary: 'make an environment',
  description: 'Makes an environment. `sluice keys create --env NAME` then makes its first key.',
  argument: required('<name>', 'lower-case letters, digits, _ and -'),
  json: true,
  examples: ['sluice env create staging && sluice keys create --env staging'],
  inSession: async ({ system, argument, terminal, json }) => {
    const environment = await createEnvironment(system.db, argument);
    if (json) return terminal.json(render(environment));
    terminal.print(`Environment ${environment.name} was made; its app token is ${environment.appToken}.`);
    terminal.inform(`Next, a key for it: sluice keys create --env ${environment.name}`);
  },
});

const list = defineCommand({
  name: 'list',
  summary: 'all environments',
  description: 'Lists the environments and their public app tokens.',
  json: true,
  examples: ['sluice env list'],
  inSession: async (call) => {
    const { system } = call;
    printList(call, {
      items: await listEnvironments(system.db),
      render,
      columns: columnsOf('name', 'app token'),
      cells: ({ name, appToken }) => [name, appToken],
      none: 'There is none yet; `sluice start` makes `default`.',
    });
  },
});

function render({ name, appToken }: Environment) {
  return { name, app_token: appToken };
}

export const environments = defineCommand({
  name: 'env',
  summary: 'environments: create, list',
  description: 'An environment is a tenant: its profiles, loads and keys are unreachable from any other.',
  examples: ['sluice env create staging', 'sluice env list --json'],
  commands: [create, list],
});
