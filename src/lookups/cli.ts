/** `sluice definitions`: an environment's definitions as a file. */

import { formatCount } from '../base/wording.ts';
import { choice, defineCommand, flag, required } from '../cli/define-command.ts';
import { exitCodes } from '../cli/errors.ts';
import { readOperatorFile } from '../cli/input-files.ts';
import { withEnvironment } from '../cli/session.ts';
import { printable, printTable, type Terminal } from '../cli/terminal.ts';
import { act } from '../postgres/acts.ts';
import {
  type Applied,
  applyDefinitions,
  changesByList,
  type DefinitionChanges,
  describeApplied,
} from './apply-definitions.ts';
import { fileFormats, readDefinitionsFile, writeDefinitionsFile } from './definitions.ts';
import { readDefinitions, withoutIds } from './store.ts';

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
    const { cli, argument: file, flags, env, terminal, json } = invocation;
    // The file is read first, so that its problems are reported even without a database.
    const lists = await cli.definitionLists();
    const read = (bytes: Uint8Array) => readDefinitionsFile(bytes, lists);
    const items = await readOperatorFile(file, read, invocation);
    if (items === null) return;
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const applied = await act(
        system,
        (db) => applyDefinitions(db, environmentId, items, { ...flags, lists }),
        (result) => describeApplied(environmentId, result, flags),
      );
      const target = { env, dryRun: flags.dryRun };
      if (json) terminal.json(renderApplied(applied, target));
      else printApplied(terminal, applied, target);
      if (applied.blockedBy.length > 0) process.exitCode = exitCodes.usage;
    });
  },
});

function renderApplied({ changes, blockedBy }: Applied, { env, dryRun }: Target): object {
  const keysOf = changesByList(changes).map(([kind, ofList]) => {
    const { added, changed, ...rest } = ofList;
    const keys = { added: added.map(({ key }) => key) };
    return [
      kind,
      { ...keys, changed: changed.map(({ item, fields }) => ({ key: item.key, fields })), ...rest },
    ];
  });
  return {
    environment: env,
    dry_run: dryRun,
    written: !dryRun && blockedBy.length === 0 && listChanges(changes).length > 0,
    blocked_by: blockedBy,
    taken_over: takenOver(changes),
    changes: Object.fromEntries(keysOf),
  };
}

/** Keys of segments that API calls created and the file now defines. */
function takenOver({ segments }: DefinitionChanges): string[] {
  const changed = segments.changed.filter(
    ({ item, fields }) => item.made_by === 'file' && fields.includes('made_by'),
  );
  return changed.map(({ item }) => item.key);
}

const shownChanges = 200;

function printApplied(terminal: Terminal, { changes, blockedBy }: Applied, { env, dryRun }: Target): void {
  const lines = listChanges(changes);
  for (const line of lines.slice(0, shownChanges)) terminal.print(line);
  const rest = lines.length - shownChanges;
  if (rest > 0) terminal.print(`… and ${formatCount(rest)} more; --json names them all`);
  if (lines.length > 0) terminal.print('');
  printTable(
    terminal,
    {
      kind: ([kind]) => kind,
      '>added': ([, { added }]) => added.length,
      '>changed': ([, { changed }]) => changed.length,
      '>removed': ([, { removed }]) => removed.length,
      '>unchanged': ([, { unchanged }]) => unchanged,
    },
    changesByList(changes),
  );
  const keys = takenOver(changes);
  if (keys.length > 0) {
    terminal.inform(`The file wins over the API, which had made segments of these keys: ${keys.join(', ')}.`);
  }
  if (blockedBy.length > 0) {
    terminal.inform(
      `Nothing was written: the file lacks protected segments (${blockedBy.join(', ')}). Put them back, or apply once with\n` +
        'is_protected: false, or use --force.',
    );
  } else if (lines.length === 0)
    terminal.inform(`Nothing to do: environment ${env} has these definitions already.`);
  else if (dryRun) terminal.inform('Dry run: nothing was written.');
  else terminal.inform(`Environment ${env} has these definitions now.`);
}

function listChanges(changes: DefinitionChanges): string[] {
  return changesByList(changes).flatMap(([kind, { added, changed, removed }]) => {
    const line = (sign: string, key: string): string => `${sign} ${kind}  ${printable(key, 100)}`;
    return [
      ...added.map(({ key }) => line('+', key)),
      ...changed.map(({ item, fields }) => `${line('~', item.key)}: ${fields.join(', ')}`),
      ...removed.map((key) => line('-', key)),
    ];
  });
}

const exportFile = defineCommand({
  name: 'export',
  summary: 'the definitions as a file',
  description:
    'Writes the definitions of an environment as a file that can be applied to any. Ids are not in it: they belong\n' +
    'to the environment.',
  options: { format: choice('--format <format>', 'of the file', fileFormats, 'yaml') },
  examples: [
    'sluice definitions export > definitions.yaml',
    'sluice definitions export --env a | sluice definitions apply - --env b',
  ],
  inEnvironment: async ({ cli, system, environmentId, terminal, flags }) => {
    const items = withoutIds(await readDefinitions(system.db, environmentId, await cli.definitionLists()));
    await terminal.write(writeDefinitionsFile(items, flags.format));
  },
});

export const definitions = defineCommand({
  name: 'definitions',
  summary: 'segments, surveys, features …: apply, export',
  description:
    'Definitions of an environment: segments, surveys, embeds, flows, banners, spotlights, resource center modules,\n' +
    'checklists and features. They are written in one file; the lookups of the API list them, and exports are filtered by\n' +
    'segments.',
  examples: ['sluice definitions apply definitions.yaml --dry-run', 'sluice definitions export'],
  commands: [apply, exportFile],
});
