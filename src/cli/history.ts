/** `sluice users history`, `sluice companies history`, and where values came from. */
import type { ProfileChange, Provenance, ValueOrigin } from '../api/profile.ts';
import type { Entity } from '../domain/entity.ts';
import { MAX_PAGE_SIZE } from '../domain/limits.ts';
import { findPerson } from '../postgres/stores/aliases.ts';
import { readHistory } from '../postgres/stores/changes.ts';
import { readProfile } from '../postgres/stores/profiles.ts';
import { defineCommand, limitOption, required } from './define-command.ts';
import { CommandFailed } from './errors.ts';
import { formatTime, printable, printFields, type Terminal } from './terminal.ts';

const words = {
  users: { one: 'user', example: 'u1' },
  companies: { one: 'company', example: 'acme' },
} as const satisfies Record<Entity, object>;

export function historyCommand(entity: Entity) {
  const { one, example } = words[entity];
  return defineCommand({
    name: 'history',
    summary: `what changed one ${one}: who, when, from what to what`,
    description: `Lists the changes of a ${one}, newest first, as long as CHANGES_DAYS keeps them.`,
    argument: required(`<${one}-id>`, 'as it was sent'),
    options: { limit: limitOption(20) },
    json: 'print a JSON array, as the API has it',
    examples: [
      `sluice ${entity} history ${example}`,
      `sluice ${entity} history ${example} --json | jq '.[].job.filename'`,
    ],
    inEnvironment: async ({ system, environmentId, argument, flags, terminal, json, env }) => {
      const id = entity === 'users' ? await findPerson(system.reader.db, environmentId, argument) : argument;
      const found: string[] = [];
      const profile = { entity, environmentId, id };
      let [after, since]: [number | null, string | null] = [null, null];
      do {
        const page = { limit: Math.min(flags.limit - found.length, MAX_PAGE_SIZE), after };
        const { changes, next, completeSince } = await readHistory(system.reader, profile, page);
        found.push(...changes.map((change) => change.json));
        [after, since] = [next, completeSince];
      } while (after !== null && found.length < flags.limit && !terminal.closed);
      if (found.length === 0 && (await readProfile(system.reader, entity, environmentId, id)) === null) {
        throw new CommandFailed(`There is no ${one} ${JSON.stringify(id)} in the environment ${env}.`);
      }
      if (json) return terminal.write(found.length === 0 ? '[]\n' : `[\n${found.join(',\n')}\n]\n`);
      for (const change of found) printChange(terminal, JSON.parse(change) as ProfileChange);
      if (after !== null) terminal.inform('There are more; --limit shows them.');
      else if (since !== null)
        terminal.inform(`Changes before ${formatTime(new Date(since))} are no longer kept.`);
    },
  });
}

function printChange(terminal: Terminal, change: ProfileChange): void {
  const { at, action, properties, company } = change;
  terminal.print(`${formatTime(new Date(at))}  ${action} by ${whoMade(change)}`);
  const moved = company === null ? [] : [{ name: 'company', ...company }];
  const differing = [...properties, ...moved].map(({ name, before, after }) => [
    `  ${printable(name, 80)}`,
    `${valueText(before)} → ${valueText(after)}`,
  ]);
  printFields(terminal, Object.fromEntries(differing) as Readonly<Record<string, string>>);
}

function whoMade({ by, job }: Pick<ValueOrigin, 'by' | 'job'>): string {
  if (job !== null) return `${job.type} ${printable(job.filename, 80)} (${job.job_id})`;
  return by === 'load' ? 'a load that is no longer kept' : (by ?? 'nobody known');
}

function valueText(value: unknown): string {
  if (value === null) return '–';
  return printable(typeof value === 'string' && value !== '' ? value : JSON.stringify(value), 200);
}

/** Prints where each value came from. */
export function printProvenance(terminal: Terminal, { properties, company }: Provenance): void {
  const all = [...Object.entries(properties), ...(company === null ? [] : [['company', company] as const])];
  const lines = all.map(([name, { at, line, ...who }]) => [
    printable(name, 80),
    `${at === null ? 'unknown' : `${formatTime(new Date(at))}  ${whoMade(who)}`}${line === null ? '' : `, line ${line}`}`,
  ]);
  terminal.print('');
  terminal.print('Set by:');
  printFields(terminal, Object.fromEntries(lines) as Readonly<Record<string, string>>);
}
