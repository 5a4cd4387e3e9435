/** `sluice definitions` and `sluice segments`: what the operator defines for an environment, and who is in a segment. */
import {
  type Applied,
  applyDefinitions,
  type DefinitionChanges,
  fileFormats,
  readDefinitionsFile,
  writeDefinitionsFile,
} from '../definitions/definitions.ts';
import { kinds, type StoredSegment } from '../domain/definitions.ts';
import { MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../domain/limits.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { analyzeStale } from '../postgres/migrate.ts';
import { isCancelledStatement } from '../postgres/sqlstate.ts';
import { definitionsOf, readDefinitions, withoutIds } from '../postgres/stores/definitions.ts';
import type { SegmentMembers } from '../postgres/stores/segments.ts';
import { previewSegment } from '../segments/compile-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';
import { choice, defineCommand, flag, parsed, parseUpTo, required } from './define-command.ts';
import { CommandFailed, exitCodes, UsageError } from './errors.ts';
import { readOperatorFile } from './input-files.ts';
import { type EnvironmentSession, withEnvironment } from './session.ts';
import { printable, printList, printRecord, printTable, type Terminal } from './terminal.ts';

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

function renderApplied({ changes, blockedBy }: Applied, { env, dryRun }: Target): object {
  const keysOf = kinds.map((kind) => {
    const { added, changed, ...rest } = changes[kind];
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
    changes: Object.fromEntries(keysOf),
  };
}

/** Nobody reads more on a terminal; the table counts all changes. */
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
      kind: (kind) => kind,
      '>added': (kind) => changes[kind].added.length,
      '>changed': (kind) => changes[kind].changed.length,
      '>removed': (kind) => changes[kind].removed.length,
      '>unchanged': (kind) => changes[kind].unchanged,
    },
    kinds,
  );
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

const show = defineCommand({
  name: 'show',
  summary: 'the definitions with their ids',
  description: 'Shows what is defined for an environment, with the ids that the lookups and exports use.',
  json: 'print JSON, the definitions of segments too',
  examples: ['sluice definitions show', "sluice definitions show --json | jq '.segments[] | {id, key}'"],
  inEnvironment: async (call) => {
    const { system, environmentId, env, terminal, json } = call;
    const items = await readDefinitions(system.db, environmentId);
    if (json) return terminal.json(items);
    if (Object.values(items).every((list) => list.length === 0)) {
      return terminal.inform(
        `Environment ${env} has no definitions; \`sluice definitions apply\` adds some.`,
      );
    }
    printRecord(call, { ...items, segments: items.segments.map(({ definition: _, ...segment }) => segment) });
  },
});

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
  inEnvironment: async ({ system, environmentId, terminal, flags }) => {
    const items = withoutIds(await readDefinitions(system.db, environmentId));
    await terminal.write(writeDefinitionsFile(items, flags.format));
  },
});

export const definitions = defineCommand({
  name: 'definitions',
  summary: 'segments, surveys, features …: apply, show, export',
  description:
    'Definitions of an environment: segments, surveys, embeds, flows, banners, spotlights, resource center modules,\n' +
    'checklists and features. They are written in one file; the lookups of the API list them, and exports are filtered by\n' +
    'segments.',
  examples: ['sluice definitions apply definitions.yaml --dry-run', 'sluice definitions show'],
  commands: [apply, show, exportFile],
});

const listSegments = defineCommand({
  name: 'list',
  summary: 'the segments with their ids',
  description: 'Lists the segments of an environment, with the ids that exports are filtered by.',
  json: 'print JSON, the definitions too',
  examples: ['sluice segments list', "sluice segments list --json | jq '.[].key'"],
  inEnvironment: async (call) =>
    printList(call, await definitionsOf.segments.read(call.system.db, call.environmentId), {
      columns: ['id', 'key', 'title', 'status'],
      none: `Environment ${call.env} has no segments; \`sluice definitions apply\` creates them.`,
    }),
});

const preview = defineCommand({
  name: 'preview',
  summary: 'how many users are in a segment, and some of them',
  description: 'Counts the users of a segment as they are now, and shows the first of them by id.',
  argument: required('<segment>', 'its id or its key'),
  options: {
    sample: parsed(
      '--sample <n>',
      `how many users to show, ${MAX_SEGMENT_SAMPLE} at most`,
      parseUpTo(MAX_SEGMENT_SAMPLE),
      10,
    ),
  },
  json: true,
  examples: [
    'sluice segments preview power-users',
    'sluice segments preview 3 --sample 100 --json | jq .users',
  ],
  inEnvironment: async (call) => {
    const { argument, flags, terminal, json } = call;
    const stored = await requireSegment(call, argument);
    const { users, sample } = await count(call, readDefinition(stored), flags.sample);
    if (json) return terminal.json({ id: stored.id, key: stored.key, users, sample });
    terminal.print(`${printable(stored.title, 60)} (${stored.key}): ${plural(users, 'user')}`);
    for (const userId of sample) terminal.print(`  ${printable(userId, 100)}`);
    const more = users - sample.length;
    if (more > 0 && sample.length > 0) terminal.print(`  … and ${formatCount(more)} more`);
  },
});

/** Finds a segment by its id or its key. A key may look like an id; then the id is meant. @throws UsageError */
export async function requireSegment(
  { system, environmentId }: EnvironmentSession,
  wanted: string,
): Promise<StoredSegment> {
  const segments = await definitionsOf.segments.read(system.db, environmentId);
  const found =
    segments.find(({ id }) => String(id) === wanted) ?? segments.find(({ key }) => key === wanted);
  if (found !== undefined) return found;
  throw new UsageError(
    `There is no segment ${JSON.stringify(wanted)}. \`sluice segments list\` shows those there are.`,
  );
}

export function readDefinition({ key, definition }: StoredSegment): Segment {
  const { segment } = readSegment(definition);
  if (segment !== null) return segment;
  throw new CommandFailed(`The definition of ${key} cannot be read; apply the definitions again.`);
}

async function count(
  { system, environmentId }: EnvironmentSession,
  segment: Segment,
  sample: number,
): Promise<SegmentMembers> {
  await analyzeStale(system.db, system.log);
  try {
    return await previewSegment(system.db, environmentId, segment, { sample });
  } catch (error) {
    if (!isCancelledStatement(error)) throw error;
    const seconds = SEGMENT_PREVIEW_TIMEOUT_MS / 1_000;
    throw new CommandFailed(
      `Counting took longer than ${seconds} seconds. An export may take as long as it likes.`,
    );
  }
}

export const segments = defineCommand({
  name: 'segments',
  summary: 'segments: list them, and see who is in one',
  description: 'Segments are defined in a file (`sluice definitions`), and exports are filtered by them.',
  examples: ['sluice segments list', 'sluice segments preview power-users'],
  commands: [listSegments, preview],
});
