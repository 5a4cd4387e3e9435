import { isMappingName, mappingNameRule } from '../domain/column-map.ts';
import { type GivenSource, sourceOptionNames } from '../domain/source-options.ts';
import {
  absentColumn,
  dropMapping,
  keepMapping,
  renderListedMapping,
  renderMapping,
} from '../load/saved-mappings.ts';
import { type ListedMapping, listMappings } from '../postgres/stores/mappings.ts';
import { defineCommand } from './define-command.ts';
import { UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printList } from './format.ts';
import { findInputs } from './import-file.ts';
import { lookAt } from './inspect.ts';
import { required, text } from './options.ts';
import { readSettings } from './settings.ts';
import { fileFlags, readSourceFlags, requireSavedMapping } from './source-flags.ts';

const nameArgument = required('<name>', 'as `sluice mappings list` shows it');

const mappingsPerPage = 500;

const list = defineCommand({
  name: 'list',
  summary: 'the saved mappings of an environment',
  description: 'Lists the saved mappings of an environment by name, and when each was last used.',
  environment: true,
  json: true,
  examples: ['sluice mappings list'],
  inEnvironment: async (call) => {
    const { system, environmentId, env } = call;
    const items: ListedMapping[] = [];
    for (let after: string | null = null; ; after = items.at(-1)?.name ?? null) {
      const page = await listMappings(system.db, environmentId, mappingsPerPage, after);
      items.push(...page);
      if (page.length < mappingsPerPage) break;
    }
    printList(call, {
      items,
      render: renderListedMapping,
      columns: columnsOf('name', 'entity', '>renames', '>columns', 'saved', 'last used'),
      cells: ({ name, entity, mapped, columns, savedAt, lastUsedAt }) => [
        name,
        entity,
        String(mapped),
        columns === null ? '–' : String(columns),
        formatTime(savedAt),
        formatTime(lastUsedAt),
      ],
      none: `Environment ${env} has no saved mapping; \`sluice mappings save\` makes one.`,
    });
  },
});

const show = defineCommand({
  name: 'show',
  summary: 'one mapping in full',
  description: 'Shows a saved mapping: which columns are which, and how the files are written.',
  argument: nameArgument,
  environment: true,
  json: 'print what GET /v1/mappings/{name} answers',
  examples: ['sluice mappings show kunden', 'sluice mappings show kunden --json | jq .map'],
  inEnvironment: async ({ system, environmentId, argument, terminal, json }) => {
    const mapping = await requireSavedMapping(system.db, environmentId, argument);
    if (json) return terminal.json(renderMapping(mapping));
    const { name, entity, map, source, format, columnNames, savedAt, lastUsedAt } = mapping;
    const line = (title: string, value: string): void => terminal.print(`${title.padEnd(12)}  ${value}`);
    line('name', name);
    if (entity !== 'auto') line('entity', entity);
    for (const [theirs, ours] of Object.entries(map)) line('map', printable(`${theirs}=${ours}`, 100));
    if (format !== null) line('format', format);
    for (const [option, value] of Object.entries(source))
      line(option, printable([value].flat().join(', '), 100));
    if (columnNames !== null) line('offered for', printable(columnNames.join(', '), 200));
    line('saved', formatTime(savedAt));
    line('last used', formatTime(lastUsedAt));
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
  environment: true,
  json: 'print what GET /v1/mappings/{name} answers',
  examples: [
    'sluice mappings save kunden --map "Kunde=user_id" --header-of kunden.csv',
    'sluice mappings save legacy --encoding windows-1252 --delimiter semicolon',
  ],
  inEnvironment: async ({ cli, command, system, environmentId, argument: name, flags, terminal, json }) => {
    if (!isMappingName(name)) throw new UsageError(`The name ${mappingNameRule}.`);
    const { entity = 'auto', map, format = null, headerOf } = flags;
    readSourceFlags(flags);
    const said = sourceOptionNames.filter((option) => flags[option] !== undefined && flags[option] !== false);
    const source = Object.fromEntries(said.map((option) => [option, flags[option]])) as GivenSource;
    let columnNames: readonly string[] | null = null;
    if (headerOf !== undefined) {
      const [input] = await findInputs([headerOf]);
      if (input === undefined || input.path === null) throw new UsageError('--header-of names a file.');
      const { config } = readSettings(cli, command);
      const source = readSourceFlags(flags);
      ({ columnNames } = await lookAt(input, config, { entity, map, format, source, preset: null }));
      if (columnNames === null) throw new UsageError(`No record of ${headerOf} names its columns.`);
    }
    const absent = absentColumn(map, columnNames);
    if (absent !== null) throw new UsageError(`${headerOf} has no column ${JSON.stringify(absent)}.`);
    const saved = await keepMapping(system.db, environmentId, name, {
      entity,
      map,
      source,
      format,
      columnNames,
    });
    if (json) terminal.json(renderMapping(saved));
    else terminal.print(`Saved: sluice import FILE --mapping ${name}`);
  },
});

const remove = defineCommand({
  name: 'remove',
  summary: 'remove a mapping',
  description: 'Removes a saved mapping. Loads that were accepted with it are not affected.',
  argument: nameArgument,
  environment: true,
  json: true,
  examples: ['sluice mappings remove kunden'],
  inEnvironment: async ({ system, environmentId, argument: name, terminal, json }) => {
    await requireSavedMapping(system.db, environmentId, name);
    await dropMapping(system.db, environmentId, name);
    if (json) terminal.json({ name, removed: true });
    else terminal.print(`The mapping ${name} is removed.`);
  },
});

export const mappings = defineCommand({
  name: 'mappings',
  summary: 'saved mappings: how files are loaded',
  description:
    'Which columns are which, and how files are written, kept under a name: `sluice import FILE --mapping NAME`.\n' +
    '`sluice inspect` offers them for files with the same header.',
  examples: ['sluice mappings list', 'sluice mappings save kunden --map "Kundennummer=user_id"'],
  commands: [list, show, save, remove],
});
