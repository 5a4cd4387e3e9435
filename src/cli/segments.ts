import type { StoredSegment } from '../domain/definitions.ts';
import { MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../domain/limits.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { analyzeStale } from '../postgres/migrate.ts';
import { isCancelledStatement } from '../postgres/sqlstate.ts';
import { definitionsOf } from '../postgres/stores/definitions.ts';
import type { SegmentMembers } from '../postgres/stores/segments.ts';
import { previewSegment } from '../segments/preview-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { columnsOf, printable, printList } from './format.ts';
import { parsed, required } from './options.ts';
import type { EnvironmentSession } from './session.ts';

const list = defineCommand({
  name: 'list',
  summary: 'the segments with their ids',
  description: 'Lists the segments of an environment, with the ids that exports are filtered by.',
  environment: true,
  json: 'print JSON, the definitions too',
  examples: ['sluice segments list', "sluice segments list --json | jq '.[].key'"],
  inEnvironment: async (call) => {
    const { system, environmentId, env } = call;
    printList(call, {
      items: await definitionsOf.segments.read(system.db, environmentId),
      render: (segment) => segment,
      columns: columnsOf('>id', 'key', 'title', 'status'),
      cells: ({ id, key, title, status }) => [String(id), printable(key, 40), printable(title, 60), status],
      none: `Environment ${env} has no segments; \`sluice definitions apply\` makes them.`,
    });
  },
});

const preview = defineCommand({
  name: 'preview',
  summary: 'how many users are in a segment, and some of them',
  description: 'Counts the users of a segment as they are now, and shows the first of them by id.',
  argument: required('<segment>', 'its id or its key'),
  options: {
    sample: parsed('--sample <n>', `how many users to show, ${MAX_SEGMENT_SAMPLE} at most`, parseSample, 10),
  },
  environment: true,
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

function parseSample(text: string): number {
  const sample = Number(text);
  if (/^\d{1,3}$/.test(text) && sample <= MAX_SEGMENT_SAMPLE) return sample;
  throw new UsageError(`--sample takes a number from 0 to ${MAX_SEGMENT_SAMPLE}`);
}

/** A key may look like an id; then the id is meant. */
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
  commands: [list, preview],
});
