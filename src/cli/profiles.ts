/** What `sluice users` and `sluice companies` have in common: lists, and one profile as a person reads it. */
import type { Entity } from '../domain/entity.ts';
import { MAX_PAGE_SIZE } from '../domain/limits.ts';
import { listProfiles, type ProfileFilter } from '../profiles/list-profiles.ts';
import { type PropertyFilter, propertyProblem, readPropertyFilter } from '../profiles/property-filter.ts';
import type { Invocation } from './define-command.ts';
import { UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printTable } from './format.ts';
import { parseCount, parsed, text } from './options.ts';
import type { EnvironmentSession } from './session.ts';
import type { Terminal } from './terminal.ts';

/** A profile as the API answers it. */
interface Profile {
  readonly user_id?: string;
  readonly company_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly updated_at: string;
}

/** An event as the API answers it. */
interface Event {
  readonly event_name: string;
  readonly user_id: string;
  readonly company_id: string | null;
  readonly inserted_at: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export const listOptions = {
  property: parsed<readonly PropertyFilter[]>(
    '--property <name:value>',
    'only those that have it; repeatable',
    (text, earlier) => [...earlier, parseProperty(text)],
    [],
  ),
  prefix: text('--prefix <text>', 'only those whose ids begin with it'),
  limit: parsed('--limit <n>', 'how many', parseCount, 20),
};

export const propertyDetails =
  'size:120 finds the number and the text 120, size:"120" only the text.\nProperties have no index: profiles are searched in the order of their ids.';

function parseProperty(text: string): PropertyFilter {
  const problem = propertyProblem(text);
  if (problem !== null) throw new UsageError(`--property: ${problem}`);
  return readPropertyFilter(text);
}

/** Page after page up to the limit. */
export async function printProfiles(
  { terminal, json, system, environmentId }: Invocation & EnvironmentSession,
  entity: Entity,
  filter: ProfileFilter,
  limit: number,
): Promise<void> {
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page = { limit: Math.min(limit - found.length, MAX_PAGE_SIZE), after };
    const { profiles, next } = await listProfiles(system.reader, entity, environmentId, filter, page);
    found.push(...profiles.map((profile) => profile.json));
    after = next;
  } while (after !== null && found.length < limit && !terminal.closed);
  if (json) return terminal.write(found.length === 0 ? '[]\n' : `[\n${found.join(',\n')}\n]\n`);
  if (found.length === 0) return terminal.inform(`There are no such ${entity}.`);
  const rows = found.map((each) => cells(JSON.parse(each) as Profile));
  const titles = entity === 'users' ? ['user', 'company'] : ['company'];
  printTable(terminal, columnsOf(...titles, 'last seen', 'properties'), rows);
  if (after !== null) terminal.inform('There are more; --limit shows them.');
}

function cells({ user_id, company_id, last_seen_at, metadata }: Profile): string[] {
  const ids = user_id === undefined ? [company_id] : [user_id, company_id];
  return [
    ...ids.map((id) => printable(id ?? '–', 40)),
    formatTime(new Date(last_seen_at)),
    printable(JSON.stringify(metadata), 60),
  ];
}

/** The id, times and properties. `json`: as the API answers it. */
export function printProfile(terminal: Terminal, entity: Entity, json: string): void {
  const { user_id, company_id, metadata, ...times } = JSON.parse(json) as Profile;
  const line = (title: string, text: string): void => terminal.print(`${title.padEnd(10)}  ${text}`);
  if (entity === 'users') line('user', terminal.style('bold', printable(user_id ?? '', 100)));
  line('company', printable(company_id ?? '–', 100));
  line('first seen', formatTime(new Date(times.first_seen_at)));
  line('last seen', formatTime(new Date(times.last_seen_at)));
  line('changed', formatTime(new Date(times.updated_at)));
  for (const [name, value] of Object.entries(metadata)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    terminal.print(`  ${printable(name, 40)}: ${printable(text, 100)}`);
  }
}

/** One event on a line. `json`: as the API answers it. */
export function eventLine(json: string): string {
  const { inserted_at, event_name, user_id, company_id, metadata } = JSON.parse(json) as Event;
  const company = company_id === null ? '' : ` @${printable(company_id, 40)}`;
  const properties = printable(JSON.stringify(metadata), 100);
  return `${formatTime(new Date(inserted_at))}  ${printable(event_name, 60)}  ${printable(user_id, 60)}${company}  ${properties}`;
}
