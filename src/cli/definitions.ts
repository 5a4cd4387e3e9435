/** `sluice definitions`: what the operator defines for an environment. */
import { type Applied, applyDefinitions, type DefinitionChanges } from '../definitions/apply-definitions.ts';
import { fileFormats, readDefinitionsFile, writeDefinitionsFile } from '../definitions/definitions-file.ts';
import {
  type KeyedItem,
  kinds,
  type StoredDefinitions,
  type StoredSegment,
  type StoredTitled,
} from '../domain/definitions.ts';
import { formatCount } from '../domain/wording.ts';
import { readDefinitions, withoutIds } from '../postgres/stores/definitions.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes } from './errors.ts';
import { type Column, columnsOf, printable, printTable } from './format.ts';
import { readOperatorFile } from './operator-file.ts';
import { choice, flag, required } from './options.ts';
import { withEnvironment } from './session.ts';
import type { Terminal } from './terminal.ts';

interface Target {
  readonly env: string;
  readonly dryRun: boolean;
}

const apply = defineCommand({
  name: 'apply',
  summary: 'apply a definitions file',
  description:
    'Makes the definitions of an environment equal to the file, in one transaction: adds what is new, changes what differs,\n' +
    'removes what the file lacks. Items keep their ids as long as they keep their keys. Applying the same file again\n' +
    'changes nothing.',
  argument: required('<file>', 'YAML or JSON; - for standard input'),
  options: {
    dryRun: flag('--dry-run', 'check the file and show what would change; write nothing'),
    force: flag('--force', 'remove protected segments too'),
  },
  environment: true,
  json: true,
  details: `Exit code: 0 applied, or nothing to do; 1 failed; 2 the file is wrong (every
problem is named with its line), or lacks a protected segment.`,
  examples: [
    'sluice definitions apply definitions.yaml --dry-run',
    'sluice definitions apply definitions.yaml --env staging',
    'sluice definitions export --env a | sluice definitions apply - --env b',
  ],
  run: async (invocation) => {
    const { argument: file, flags, env, terminal, json } = invocation;
    // Before a database is looked for.
    const items = await readOperatorFile(file, readDefinitionsFile, invocation);
    if (items === null) return;
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const applied = await applyDefinitions(system.db, environmentId, items, flags);
      const target = { env, dryRun: flags.dryRun };
      if (json) terminal.json(renderApplied(applied, target));
      else printApplied(terminal, applied, target);
      if (applied.blockedBy.length > 0) process.exitCode = exitCodes.usage;
    });
  },
});

function printApplied(terminal: Terminal, { changes, blockedBy }: Applied, { env, dryRun }: Target): void {
  printChanges(terminal, changes);
  if (blockedBy.length > 0) {
    terminal.inform(
      `Nothing was written: the file lacks protected segments (${blockedBy.join(', ')}). Put them back, or apply once with\n` +
        'is_protected: false, or use --force.',
    );
  } else if (!hasChanges(changes))
    terminal.inform(`Nothing to do: environment ${env} has these definitions already.`);
  else if (dryRun) terminal.inform('Dry run: nothing was written.');
  else terminal.inform(`Environment ${env} has these definitions now.`);
}

function renderApplied({ changes, blockedBy }: Applied, { env, dryRun }: Target): object {
  return {
    environment: env,
    dry_run: dryRun,
    written: !dryRun && blockedBy.length === 0 && hasChanges(changes),
    blocked_by: blockedBy,
    changes: renderChanges(changes),
  };
}

/** Keys instead of items. */
function renderChanges(changes: DefinitionChanges): object {
  return Object.fromEntries(
    kinds.map((kind) => {
      const { added, changed, removed, unchanged } = changes[kind];
      const rendered = {
        added: added.map(({ key }) => key),
        changed: changed.map(({ item, fields }) => ({ key: item.key, fields })),
        removed,
        unchanged,
      };
      return [kind, rendered];
    }),
  );
}

const show = defineCommand({
  name: 'show',
  summary: 'the definitions with their ids',
  description: 'Shows what is defined for an environment, with the ids that the lookups and exports use.',
  environment: true,
  json: 'print JSON, the definitions of segments too',
  examples: ['sluice definitions show', "sluice definitions show --json | jq '.segments[] | {id, key}'"],
  inEnvironment: async ({ system, environmentId, env, terminal, json }) => {
    const items = await readDefinitions(system.db, environmentId);
    if (json) return terminal.json(items);
    if (kinds.every((kind) => items[kind].length === 0)) {
      return terminal.inform(
        `Environment ${env} has no definitions; \`sluice definitions apply\` adds some.`,
      );
    }
    printItems(terminal, items);
  },
});

const exportFile = defineCommand({
  name: 'export',
  summary: 'the definitions as a file',
  description:
    'Writes the definitions of an environment as a file that can be applied to any. Ids are not in it: they belong\n' +
    'to the environment.',
  options: { format: choice('--format <format>', 'of the file', fileFormats, 'yaml') },
  environment: true,
  examples: [
    'sluice definitions export > definitions.yaml',
    'sluice definitions export --env a | sluice definitions apply - --env b',
  ],
  inEnvironment: async ({ system, environmentId, terminal, flags }) => {
    const items = withoutIds(await readDefinitions(system.db, environmentId));
    await terminal.write(writeDefinitionsFile(items, flags.format));
  },
});

export const definitions = defineCommand({
  name: 'definitions',
  summary: 'segments, surveys, features …: apply, show, export',
  description:
    'What you define for an environment: segments, surveys, embeds, flows, banners, spotlights, resource center modules,\n' +
    'checklists and features.\n' +
    'It is written in one file; the lookups of the HTTP interface list it, and exports are filtered by it.',
  examples: ['sluice definitions apply definitions.yaml --dry-run', 'sluice definitions show'],
  commands: [apply, show, exportFile],
});

/** More of them nobody reads on a terminal; the table counts them all. */
const shownChanges = 200;

/** Every item that is not as it was, and how many of each kind. */
function printChanges(terminal: Terminal, changes: DefinitionChanges): void {
  const lines = listChanges(changes);
  for (const line of lines.slice(0, shownChanges)) terminal.print(line);
  const rest = lines.length - shownChanges;
  if (rest > 0) terminal.print(`… and ${formatCount(rest)} more; --json names them all`);
  if (lines.length > 0) terminal.print('');
  const rows = kinds.map((kind) => {
    const { added, changed, removed, unchanged } = changes[kind];
    const counts = [added.length, changed.length, removed.length, unchanged];
    return [kind, ...counts.map(formatCount)];
  });
  printTable(terminal, columnsOf('kind', '>added', '>changed', '>removed', '>unchanged'), rows);
}

function hasChanges(changes: DefinitionChanges): boolean {
  return listChanges(changes).length > 0;
}

function listChanges(changes: DefinitionChanges): string[] {
  return kinds.flatMap((kind) => {
    const { added, changed, removed } = changes[kind];
    const line = (sign: string, key: string): string => `${sign} ${kind}  ${printable(key, 100)}`;
    return [
      ...added.map(({ key }) => line('+', key)),
      ...changed.map(({ item, fields }) => `${line('~', item.key)}: ${fields.join(', ')}`),
      ...removed.map((key) => line('-', key)),
    ];
  });
}

type Section = readonly [title: string, columns: readonly Column[], rows: readonly string[][]];

/** A table for each kind that has items. */
function printItems(terminal: Terminal, items: StoredDefinitions): void {
  const shown = sectionsOf(items).filter(([, , rows]) => rows.length > 0);
  for (const [index, [title, columns, rows]] of shown.entries()) {
    if (index > 0) terminal.print('');
    terminal.print(terminal.style('bold', title));
    const cells = rows.map((row) => row.map((cell) => printable(cell, 60)));
    printTable(terminal, columns, cells);
  }
}

function sectionsOf(items: StoredDefinitions): Section[] {
  const keyed = columnsOf('key', 'display name', 'data type');
  const titled = columnsOf('>id', 'key', 'title', 'type');
  const modules = items.surveys.flatMap(({ key: survey, modules }) =>
    modules.map(({ id, key, type, question }, at) => [
      String(id),
      survey,
      String(at + 1),
      key,
      type,
      question,
    ]),
  );
  return [
    [
      'Segments',
      columnsOf('>id', 'key', 'title', 'usage', 'category', 'status', 'is'),
      items.segments.map(segmentCells),
    ],
    [
      'Surveys',
      columnsOf('>id', 'key', 'title', 'platform'),
      items.surveys.map(({ id, key, title, platform }) => [String(id), key, title, platform]),
    ],
    ['Modules of surveys', columnsOf('>id', 'survey', 'order', 'key', 'type', 'question'), modules],
    ['Embeds', titled, items.embeds.map(titledCells)],
    ['Flows', titled, items.flows.map(titledCells)],
    ['Banners', titled, items.banners.map(titledCells)],
    ['Spotlights', titled, items.spotlights.map(titledCells)],
    ['Resource center modules', keyed, items.resource_center_modules.map(keyedCells)],
    ['Checklists', keyed, items.checklists.map(keyedCells)],
    ['Features', keyed, items.features.map(keyedCells)],
    [
      'Retention of events',
      columnsOf('event', '>days'),
      items.event_retention.map(({ key, days }) => [key, days === 0 ? 'for ever' : String(days)]),
    ],
  ];
}

function segmentCells(segment: StoredSegment): string[] {
  const { id, key, title, usage, category, status, is_hidden, is_protected } = segment;
  const is = [...(is_hidden ? ['hidden'] : []), ...(is_protected ? ['protected'] : [])];
  return [String(id), key, title, usage, category, status, is.join(', ')];
}

function titledCells({ id, key, title, type }: StoredTitled): string[] {
  return [String(id), key, title, type];
}

function keyedCells({ key, display_name, data_type }: KeyedItem): string[] {
  return [key, display_name, data_type];
}
