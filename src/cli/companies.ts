import { readProfile } from '../postgres/stores/profiles.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed } from './errors.ts';
import { required } from './options.ts';
import { listOptions, printProfile, printProfiles, propertyDetails } from './profiles.ts';

const show = defineCommand({
  name: 'show',
  summary: 'one company: its profile',
  description: 'Shows what is stored of a company at this moment.',
  argument: required('<company-id>', 'as it was sent'),
  environment: true,
  json: 'print JSON, as the API has it',
  examples: ['sluice companies show acme', 'sluice users list --company acme'],
  inEnvironment: async ({ system, environmentId, argument, terminal, json, env }) => {
    const company = await readProfile(system.reader, 'companies', environmentId, argument);
    if (company === null) {
      throw new CommandFailed(`There is no company ${JSON.stringify(argument)} in the environment ${env}.`);
    }
    if (json) return terminal.write(`${company}\n`);
    printProfile(terminal, 'companies', company);
  },
});

const list = defineCommand({
  name: 'list',
  summary: 'companies, by property',
  description: 'Lists companies in the order of their ids.',
  options: listOptions,
  environment: true,
  json: 'print a JSON array, as the API has them',
  details: propertyDetails,
  examples: ['sluice companies list', 'sluice companies list --property industry:tools --limit 100'],
  inEnvironment: async (call) => {
    const { property: properties, prefix, limit } = call.flags;
    const filter = { properties, idPrefix: prefix ?? null, companyId: null, segment: null };
    await printProfiles(call, 'companies', filter, limit);
  },
});

export const companies = defineCommand({
  name: 'companies',
  summary: 'companies: show one, list them',
  description: 'Reads companies back, as they are stored at this moment. A server need not run.',
  examples: ['sluice companies show acme', 'sluice companies list --property industry:tools'],
  commands: [show, list],
});
