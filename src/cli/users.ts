import { MAX_PAGE_BYTES, MAX_PAGE_SIZE } from '../domain/limits.ts';
import { readUserEvents } from '../postgres/stores/events.ts';
import { readProfile } from '../postgres/stores/profiles.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { parsed, required, text } from './options.ts';
import { eventLine, listOptions, printProfile, printProfiles, propertyDetails } from './profiles.ts';
import { readDefinition, requireSegment } from './segments.ts';

const show = defineCommand({
  name: 'show',
  summary: 'one user: profile, company, latest events',
  description:
    'Shows what is stored of a user at this moment: the profile with its properties, that of its company, and its latest\n' +
    'events.',
  argument: required('<user-id>', 'as it was sent'),
  options: {
    events: parsed('--events <n>', `how many events, ${MAX_PAGE_SIZE} at most`, parseEvents, 10),
  },
  environment: true,
  json: 'print JSON: user, company, events, as the API has them',
  examples: ['sluice users show u1', 'sluice users show u1 --events 0 --json | jq .user.metadata'],
  inEnvironment: async ({ system, environmentId, argument, flags, terminal, json, env }) => {
    const { reader } = system;
    const user = await readProfile(reader, 'users', environmentId, argument);
    const companyId = user === null ? null : (JSON.parse(user) as { company_id: string | null }).company_id;
    const company =
      companyId === null ? null : await readProfile(reader, 'companies', environmentId, companyId);
    const { events } = await readUserEvents(reader, environmentId, {
      ...{ userId: argument, from: null, to: null, eventName: null, before: null },
      ...{ limit: Math.max(1, flags.events), bytes: MAX_PAGE_BYTES },
    });
    if (user === null && events.length === 0) {
      throw new CommandFailed(`There is no user ${JSON.stringify(argument)} in the environment ${env}.`);
    }
    const shown = events.slice(0, flags.events).map((event) => event.json);
    if (json) return terminal.write(`{"user":${user},"company":${company},"events":[${shown.join(',')}]}\n`);
    if (user === null) terminal.print('There is no profile of this user, only events.');
    else printProfile(terminal, 'users', user);
    if (company !== null) {
      terminal.print('');
      printProfile(terminal, 'companies', company);
    }
    if (shown.length > 0) terminal.print('');
    for (const event of shown) terminal.print(eventLine(event));
  },
});

function parseEvents(given: string): number {
  const events = Number(given);
  if (/^\d{1,3}$/.test(given) && events <= MAX_PAGE_SIZE) return events;
  throw new UsageError(`--events takes a number from 0 to ${MAX_PAGE_SIZE}`);
}

const list = defineCommand({
  name: 'list',
  summary: 'users, by property, company or segment',
  description: 'Lists users in the order of their ids; each option narrows the list further.',
  options: {
    ...listOptions,
    company: text('--company <id>', 'only the users of this company'),
    segment: text('--segment <id>', 'only those who are in it now; its id or its key'),
  },
  environment: true,
  json: 'print a JSON array, as the API has them',
  details: propertyDetails,
  examples: [
    'sluice users list --company acme',
    'sluice users list --property plan:pro --limit 999 --json | jq .[].user_id',
    'sluice users list --segment power-users',
  ],
  inEnvironment: async (call) => {
    const { property: properties, prefix, company, segment, limit } = call.flags;
    const found = segment === undefined ? null : readDefinition(await requireSegment(call, segment));
    const filter = { properties, idPrefix: prefix ?? null, companyId: company ?? null, segment: found };
    await printProfiles(call, 'users', filter, limit);
  },
});

export const users = defineCommand({
  name: 'users',
  summary: 'users: show one, list them',
  description: 'Reads users back, as they are stored at this moment. A server need not run.',
  examples: ['sluice users show u1', 'sluice users list --property plan:pro'],
  commands: [show, list],
});
