import { type Applied, applyDefinitions, type DefinitionChanges } from '../definitions/apply-definitions.ts';
import { fileFormats, readDefinitionsFile, writeDefinitionsFile } from '../definitions/definitions-file.ts';
import { kinds } from '../domain/definitions.ts';
import { readDefinitions, withoutIds } from '../postgres/stores/definitions.ts';
import { choice, defineCommand, flag, required } from './define-command.ts';
import { exitCodes } from './errors.ts';
import { readOperatorFile } from './operator-file.ts';
import { hasChanges, printChanges, printItems } from './print-catalogue.ts';
import { withEnvironment } from './session.ts';
import type { Terminal } from './terminal.ts';

interface Target {
  readonly env: string;
  readonly dryRun: boolean;
}

const apply = defineCommand({
  name: 'apply',
  summary: 'make the catalogue what a file says',
  description:
    'Makes the catalogue of an environment what the file says, in one transaction: what is new is added, what differs\n' +
    'changed, and what the file does not have removed. Items keep their ids as long as they keep their keys. Applying a\n' +
    'file twice changes nothing.',
  argument: required('<file>', 'YAML or JSON; - for standard input'),
  options: {
    dryRun: flag('--dry-run', 'check the file and show what would change; write nothing'),
    force: flag('--force', 'remove protected segments too'),
  },
  environment: true,
  json: true,
  details: `Exit code: 0 applied, or nothing to do; 1 failed; 2 the file is wrong (every
problem is told with its line), or lacks a protected segment.`,
  examples: [
    'sluice catalogue apply catalogue.yaml --dry-run',
    'sluice catalogue apply catalogue.yaml --env staging',
    'sluice catalogue export --env a | sluice catalogue apply - --env b',
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
    terminal.note(
      `Nothing was written: the file lacks protected segments (${blockedBy.join(', ')}). Put them back, or apply once with\n` +
        'is_protected: false, or use --force.',
    );
  } else if (!hasChanges(changes))
    terminal.note(`Nothing to do: environment ${env} has this catalogue already.`);
  else if (dryRun) terminal.note('Dry run: nothing was written.');
  else terminal.note(`Environment ${env} has this catalogue now.`);
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
  summary: 'the catalogue with its ids',
  description: 'Shows what is defined for an environment, with the ids that the lookups and exports use.',
  environment: true,
  json: 'print JSON, the definitions of segments too',
  examples: ['sluice catalogue show', "sluice catalogue show --json | jq '.segments[] | {id, key}'"],
  run: (invocation) =>
    withEnvironment(invocation, async ({ system, environmentId }) => {
      const { env, terminal, json } = invocation;
      const items = await readDefinitions(system.db, environmentId);
      if (json) return terminal.json(items);
      if (kinds.every((kind) => items[kind].length === 0)) {
        return terminal.note(`Environment ${env} has no catalogue; \`sluice catalogue apply\` makes one.`);
      }
      printItems(terminal, items);
    }),
});

const exportFile = defineCommand({
  name: 'export',
  summary: 'the catalogue as a file',
  description:
    'Writes the catalogue of an environment as a file that makes the same catalogue wherever it is applied. Ids are not\n' +
    'in it: they belong to the environment.',
  options: { format: choice('--format <format>', 'of the file', fileFormats, 'yaml') },
  environment: true,
  examples: [
    'sluice catalogue export > catalogue.yaml',
    'sluice catalogue export --env a | sluice catalogue apply - --env b',
  ],
  run: (invocation) =>
    withEnvironment(invocation, async ({ system, environmentId }) => {
      const items = withoutIds(await readDefinitions(system.db, environmentId));
      await invocation.terminal.write(writeDefinitionsFile(items, invocation.flags.format));
    }),
});

export const catalogue = defineCommand({
  name: 'catalogue',
  summary: 'segments, surveys, features …: apply, show, export',
  description:
    'What you define for an environment: segments, surveys, embeds, resource center modules, checklists and features.\n' +
    'It is written in one file; the lookups of the HTTP interface list it, and exports are filtered by it.',
  examples: ['sluice catalogue apply catalogue.yaml --dry-run', 'sluice catalogue show'],
  commands: [apply, show, exportFile],
});
