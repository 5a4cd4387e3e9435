import { isMappingName, mappingNameRule } from '../domain/column-map.ts';
import { type GivenSource, sourceOptionNames } from '../domain/source-options.ts';
import {
  absentColumn,
  dropMapping,
  keepMapping,
  renderListedMapping,
  renderMapping,
} from '../load/saved-mappings.ts';
import type { Database } from '../postgres/database.ts';
import { type ListedMapping, listMappings } from '../postgres/stores/mappings.ts';
import { defineCommand, required, text } from './define-command.ts';
import { UsageError } from './errors.ts';
import { findInputs } from './input-files.ts';
import { lookAt } from './inspect.ts';
import { readSettings } from './settings.ts';
import { fileFlags, readSourceFlags, requireSavedMapping } from './source-flags.ts';
import { printDone, printList, printRecord } from './terminal.ts';

const nameArgument = required('<name>', 'as `sluice mappings list` shows it');

const list = defineCommand({
  name: 'list',
  summary: 'the saved mappings of an environment',
  description: 'Lists the saved mappings of an environment by name, and when each was last used.',
  json: true,
  examples: ['sluice mappings list'],
  inEnvironment: async (call) =>
    printList(call, (await listAllMappings(call.system.db, call.environmentId)).map(renderListedMapping), {
      columns: ['name', 'entity', 'mapped', 'columns', 'saved_at', 'last_used_at'],
      none: `Environment ${call.env} has no saved mappings; \`sluice mappings save\` creates one.`,
    }),
});

const mappingsPerPage = 500;

export async function listAllMappings(db: Database, environmentId: number): Promise<ListedMapping[]> {
  const found: ListedMapping[] = [];
  for (let after: string | null = null; ; after = found.at(-1)?.name ?? null) {
    const page = await listMappings(db, environmentId, mappingsPerPage, after);
    found.push(...page);
    if (page.length < mappingsPerPage) return found;
  }
}

const show = defineCommand({
  name: 'show',
  summary: 'one mapping in full',
  description: 'Shows a saved mapping: which columns are which, and how the files are written.',
  argument: nameArgument,
  json: 'print what GET /v1/mappings/{name} answers',
  examples: ['sluice mappings show kunden', 'sluice mappings show kunden --json | jq .map'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument } = call;
    printRecord(call, renderMapping(await requireSavedMapping(system.db, environmentId, argument)));
  },
});

const { preset: _, ...savedFlags } = fileFlags;

const save = defineCommand({
  name: 'save',
  summary: 'save how files are loaded',
  description:
    'Saves under a name which columns are which, and how the files are written. It replaces a mapping of that name.\n' +
    'With --header-of it is offered for files whose header has the same columns.',
  argument: required('<name>', `its name; it ${mappingNameRule}`),
  options: {
    headerOf: text('--header-of <file>', 'a file that has the header for which it is offered'),
    ...savedFlags,
  },
  json: 'print what GET /v1/mappings/{name} answers',
  examples: [
    'sluice mappings save kunden --map "Kunde=user_id" --header-of kunden.csv',
    'sluice mappings save legacy --encoding windows-1252 --delimiter semicolon',
  ],
  inEnvironment: async (call) => {
    const { cli, command, system, environmentId, argument: name, flags } = call;
    if (!isMappingName(name)) throw new UsageError(`The name ${mappingNameRule}.`);
    const { entity = 'auto' as const, map, format = null, headerOf } = flags;
    readSourceFlags(flags);
    const said = sourceOptionNames.filter((option) => flags[option] !== undefined && flags[option] !== false);
    const source = Object.fromEntries(said.map((option) => [option, flags[option]])) as GivenSource;
    let columnNames: readonly string[] | null = null;
    if (headerOf !== undefined) {
      const [input] = await findInputs([headerOf]);
      if (input === undefined || input.path === null) throw new UsageError('--header-of names a file.');
      const { config } = readSettings(cli, command);
      const source = readSourceFlags(flags);
      ({ column_names: columnNames } = await lookAt(input, config, {
        entity,
        map,
        format,
        source,
        preset: null,
      }));
      if (columnNames === null) throw new UsageError(`No record of ${headerOf} names its columns.`);
    }
    const absent = absentColumn(map, columnNames);
    if (absent !== null) throw new UsageError(`${headerOf} has no column ${JSON.stringify(absent)}.`);
    const rules = { entity, map, source, format, columnNames };
    const saved = await keepMapping(system.db, environmentId, name, rules);
    printDone(call, renderMapping(saved), `Saved: sluice import FILE --mapping ${name}`);
  },
});

const remove = defineCommand({
  name: 'remove',
  summary: 'remove a mapping',
  description: 'Removes a saved mapping. Loads that were accepted with it are not affected.',
  argument: nameArgument,
  json: true,
  examples: ['sluice mappings remove kunden'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: name } = call;
    await requireSavedMapping(system.db, environmentId, name);
    await dropMapping(system.db, environmentId, name);
    printDone(call, { name, removed: true }, `The mapping ${name} is removed.`);
  },
});

export const mappings = defineCommand({
  name: 'mappings',
  summary: 'saved mappings: how files are loaded',
  description:
    'Saves under a name which columns are which, and how files are written: `sluice import FILE --mapping NAME`.\n' +
    '`sluice inspect` offers them for files with the same header.',
  examples: ['sluice mappings list', 'sluice mappings save kunden --map "Kundennummer=user_id"'],
  commands: [list, show, save, remove],
});
