/** `sluice users`, `sluice companies` and `sluice events`: profiles and events as they are stored. */
import type { StoredEvent, UserProfile } from '../api/profile.ts';
import { readWithProvenance } from '../changes/provenance.ts';
import type { System } from '../context.ts';
import { requireDefinition } from '../definitions/segments.ts';
import type { Entity } from '../domain/entity.ts';
import { MAX_PAGE_BYTES, MAX_PAGE_SIZE, MAX_TAIL_EVENTS, TAIL_WINDOW_MS } from '../domain/limits.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { findPerson } from '../postgres/stores/aliases.ts';
import { type LatestEventsQuery, type ReadEvent, readLatestEvents } from '../postgres/stores/events.ts';
import { readProfile } from '../postgres/stores/profiles.ts';
import {
  listProfiles,
  type ProfileFilter,
  type PropertyFilter,
  propertyProblem,
  readPropertyFilter,
} from '../profiles/profiles.ts';
import { readUserHistory } from '../profiles/user-events.ts';
import { aliasesCommand } from './aliases.ts';
import {
  defineCommand,
  flag,
  type Invocation,
  limitOption,
  parsed,
  parseUpTo,
  required,
  text,
} from './define-command.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { follow } from './follow.ts';
import { historyCommand, printProvenance } from './history.ts';
import { requireSegment } from './segments.ts';
import { listenForStop } from './service/processes.ts';
import { type EnvironmentSession, withEnvironment } from './session.ts';
import { formatTime, printable, printFields, printRecord, printRecords, type Terminal } from './terminal.ts';

const provenance = flag(
  '--provenance',
  'also say where each value came from: who, when, which line of which file',
);

function readShown(
  system: System,
  entity: Entity,
  environmentId: number,
  id: string,
  hasProvenance: boolean,
): Promise<string | null> {
  if (!hasProvenance) return readProfile(system.reader, entity, environmentId, id);
  return readWithProvenance(system, { entity, environmentId, id }, new AbortController().signal);
}

const showUser = defineCommand({
  name: 'show',
  summary: 'one user: profile, company, latest events',
  description: 'Shows the profile of a user with its properties, that of its company, and its latest events.',
  argument: required('<user-id>', 'as it was sent'),
  options: {
    events: parsed('--events <n>', `how many events, ${MAX_PAGE_SIZE} at most`, parseUpTo(MAX_PAGE_SIZE), 10),
    provenance,
  },
  json: 'print JSON: user, company, events, as the API has them',
  examples: [
    'sluice users show u1 --provenance',
    'sluice users show u1 --events 0 --json | jq .user.metadata',
  ],
  inEnvironment: async ({ system, environmentId, argument, flags, terminal, json, env }) => {
    const { reader } = system;
    const userId = await findPerson(reader.db, environmentId, argument);
    const user = await readShown(system, 'users', environmentId, userId, flags.provenance);
    const companyId = user === null ? null : (JSON.parse(user) as UserProfile).company_id;
    const company =
      companyId === null ? null : await readProfile(reader, 'companies', environmentId, companyId);
    const { events } = await readUserHistory(system, environmentId, {
      ...{ userId, from: null, to: null, eventName: null, before: null },
      ...{ limit: Math.max(1, flags.events), bytes: MAX_PAGE_BYTES },
    });
    if (user === null && events.length === 0) {
      throw new CommandFailed(`There is no user ${JSON.stringify(argument)} in the environment ${env}.`);
    }
    const shown = events.slice(0, flags.events).map((event) => event.json);
    if (json) return terminal.write(`{"user":${user},"company":${company},"events":[${shown.join(',')}]}\n`);
    if (user === null) terminal.print('There is no profile of this user, only events.');
    else printProfile(terminal, user);
    if (company !== null) {
      terminal.print('');
      printProfile(terminal, company);
    }
    if (shown.length > 0) terminal.print('');
    for (const event of shown) terminal.print(eventLine(event));
  },
});

const showCompany = defineCommand({
  name: 'show',
  summary: 'one company: its profile',
  description: 'Shows the profile of a company.',
  argument: required('<company-id>', 'as it was sent'),
  options: { provenance },
  json: 'print JSON, as the API has it',
  examples: ['sluice companies show acme', 'sluice users list --company acme'],
  inEnvironment: async ({ system, environmentId, argument, flags, terminal, json, env }) => {
    const company = await readShown(system, 'companies', environmentId, argument, flags.provenance);
    if (company === null) {
      throw new CommandFailed(`There is no company ${JSON.stringify(argument)} in the environment ${env}.`);
    }
    if (json) return terminal.write(`${company}\n`);
    printProfile(terminal, company);
  },
});

/** Prints a profile. Properties are the caller's: their names and values stand as they are. */
function printProfile(terminal: Terminal, json: string): void {
  const { metadata, provenance: origins, ...fields } = JSON.parse(json) as UserProfile;
  printRecord({ terminal, json: false }, fields);
  const properties = Object.entries(metadata).map(([name, value]) => [
    printable(name, 80),
    typeof value === 'string' && value !== '' ? printable(value, 500) : JSON.stringify(value),
  ]);
  if (properties.length > 0) terminal.print('');
  printFields(terminal, Object.fromEntries(properties) as Readonly<Record<string, string>>);
  if (origins !== undefined) printProvenance(terminal, origins);
}

const listOptions = {
  property: parsed<readonly PropertyFilter[]>(
    '--property <name:value>',
    'only those that have it; repeatable',
    (text, earlier) => [...earlier, parseProperty(text)],
    [],
  ),
  prefix: text('--prefix <text>', 'only those whose ids begin with it'),
  search: text('--search <text>', 'only those whose id, name or e-mail contains it'),
  limit: limitOption(20),
};

const listSpec = {
  name: 'list',
  json: 'print a JSON array, as the API has them',
  details:
    'size:120 finds the number and the text 120, size:"120" only the text.\nProperties have no index: profiles are searched in the order of their ids.',
} as const;

const listUsers = defineCommand({
  ...listSpec,
  summary: 'users, by property, company or segment',
  description: 'Lists users in the order of their ids; each option narrows the list further.',
  options: {
    ...listOptions,
    company: text('--company <id>', 'only the users of this company'),
    segment: text('--segment <id>', 'only those who are in it now; its id or its key'),
  },
  examples: [
    'sluice users list --search ada@',
    'sluice users list --property plan:pro --limit 999 --json | jq .[].user_id',
    'sluice users list --segment power-users',
  ],
  inEnvironment: async (call) => {
    const { company, segment } = call.flags;
    const found =
      segment === undefined ? null : requireDefinition((await requireSegment(call, segment)).definition);
    await printProfiles(call, 'users', { companyId: company ?? null, segment: found }, call.flags);
  },
});

const listCompanies = defineCommand({
  ...listSpec,
  summary: 'companies, by property',
  description: 'Lists companies in the order of their ids.',
  options: listOptions,
  examples: ['sluice companies list', 'sluice companies list --property industry:tools --limit 100'],
  inEnvironment: async (call) => {
    await printProfiles(call, 'companies', { companyId: null, segment: null }, call.flags);
  },
});

function parseProperty(text: string): PropertyFilter {
  const problem = propertyProblem(text);
  if (problem !== null) throw new UsageError(`--property: ${problem}`);
  return readPropertyFilter(text);
}

interface ListFlags {
  readonly property: readonly PropertyFilter[];
  readonly prefix?: string | undefined;
  readonly search?: string | undefined;
  readonly limit: number;
}

async function printProfiles(
  { terminal, json, system, environmentId }: Invocation & EnvironmentSession,
  entity: Entity,
  own: Pick<ProfileFilter, 'companyId' | 'segment'>,
  { property: properties, prefix, search, limit }: ListFlags,
): Promise<void> {
  const filter = { ...own, properties, idPrefix: prefix ?? null, search: search ?? null };
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page = { limit: Math.min(limit - found.length, MAX_PAGE_SIZE), after };
    const { profiles, next } = await listProfiles(system, entity, environmentId, filter, page);
    found.push(...profiles.map((profile) => profile.json));
    after = next;
  } while (after !== null && found.length < limit && !terminal.closed);
  if (json) return terminal.write(found.length === 0 ? '[]\n' : `[\n${found.join(',\n')}\n]\n`);
  if (found.length === 0) return terminal.inform(`There are no such ${entity}.`);
  const columns = ['company_id', 'last_seen_at', 'metadata'];
  printRecords(
    terminal,
    found.map((each) => {
      const profile = JSON.parse(each) as UserProfile;
      return { ...profile, metadata: JSON.stringify(profile.metadata) };
    }),
    entity === 'users' ? ['user_id', ...columns] : columns,
  );
  if (after !== null) terminal.inform('There are more; --limit shows them.');
}

export const users = defineCommand({
  name: 'users',
  summary: 'users: show one, its history and aliases, list them',
  description: 'Reads users back, as they are stored at this moment. A server need not run.',
  examples: ['sluice users show u1', 'sluice users history u1', 'sluice users list --property plan:pro'],
  commands: [showUser, historyCommand('users'), aliasesCommand, listUsers],
});

export const companies = defineCommand({
  name: 'companies',
  summary: 'companies: show one and its history, list them',
  description: 'Reads companies back, as they are stored at this moment. A server need not run.',
  examples: ['sluice companies show acme', 'sluice companies list --property industry:tools'],
  commands: [showCompany, historyCommand('companies'), listCompanies],
});

const everyMs = 1_000;

const tail = defineCommand({
  name: 'tail',
  summary: 'the latest events, and new ones as they happen',
  description:
    'Prints the latest events, the newest last, and then each new one, until Ctrl-C, which ends it with exit code 0.',
  options: {
    user: text('--user <id>', 'only events of this user'),
    event: text('--event <name>', 'only events of this name'),
    last: parsed(
      '--last <n>',
      `how many to begin with, ${MAX_TAIL_EVENTS} at most`,
      parseUpTo(MAX_TAIL_EVENTS),
      10,
    ),
  },
  environment: true,
  json: 'print JSON, one event a line, as the API has it',
  details: `Looks once a second for events of the last ${TAIL_WINDOW_MS / 1_000} seconds. Leaves out events
whose own time was longer ago when they came in (files, back-dated records) and,
of more than ${formatCount(MAX_TAIL_EVENTS)} between two looks, the older ones. An event that is dated
ahead is shown when its time has come.`,
  examples: [
    'sluice events tail',
    'sluice events tail --user u1',
    'sluice events tail --event signed_up --json',
  ],
  run: async (invocation) => {
    const { terminal, json, flags } = invocation;
    const { signal } = listenForStop();
    const print = ({ json: event }: ReadEvent): void => terminal.print(json ? event : eventLine(event));
    const which = { userId: flags.user ?? null, eventName: flags.event ?? null, last: flags.last };
    await withEnvironment(invocation, (session) => followEvents(session, terminal, print, which, signal));
  },
});

type Which = Pick<LatestEventsQuery, 'userId' | 'eventName'> & { readonly last: number };

async function followEvents(
  { system, environmentId }: EnvironmentSession,
  terminal: Terminal,
  print: (event: ReadEvent) => void,
  { last, ...which }: Which,
  signal: AbortSignal,
): Promise<void> {
  const read = (withinMs: number | null): Promise<ReadEvent[]> =>
    readLatestEvents(system.db, environmentId, { ...which, withinMs, limit: MAX_TAIL_EVENTS });
  const nameOf = ({ at, id }: ReadEvent): string => `${at} ${id}`;
  const first = await read(null);
  let seen = new Set(first.map(nameOf));
  for (const event of last === 0 ? [] : first.slice(-last)) print(event);
  await follow(
    { signal },
    {
      everyMs,
      look: async () => ({
        latest: await read(TAIL_WINDOW_MS),
        endedAt: terminal.closed ? new Date() : null,
      }),
      show: ({ latest }) => {
        const unseen = latest.filter((event) => !seen.has(nameOf(event)));
        if (unseen.length === MAX_TAIL_EVENTS) {
          terminal.inform(
            `More than ${plural(MAX_TAIL_EVENTS, 'event')} at once; the older ones are left out.`,
          );
        }
        for (const event of unseen) print(event);
        seen = new Set(latest.map(nameOf));
      },
    },
  );
}

function eventLine(json: string): string {
  const { inserted_at, event_name, user_id, company_id, metadata } = JSON.parse(json) as StoredEvent;
  const company = company_id === null ? '' : ` @${printable(company_id, 40)}`;
  const properties = printable(JSON.stringify(metadata), 100);
  return `${formatTime(new Date(inserted_at))}  ${printable(event_name, 60)}  ${printable(user_id, 60)}${company}  ${properties}`;
}

export const events = defineCommand({
  name: 'events',
  summary: 'events: follow them as they happen',
  description:
    'Reads events back. `sluice users show` has those of one user, `sluice export` has all of them.',
  examples: ['sluice events tail', 'sluice events tail --user u1 --json'],
  commands: [tail],
});
