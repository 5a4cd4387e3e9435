import type { Command } from 'commander';
import type { StoredSegment } from '../../domain/definitions.ts';
import { MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../../domain/limits.ts';
import { isCancelledStatement } from '../../postgres/sqlstate.ts';
import { analyzeStale } from '../../postgres/stale-statistics.ts';
import { definitionsOf } from '../../postgres/stores/definitions.ts';
import { previewSegment, type SegmentPreview } from '../../segments/preview-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import type { Segment } from '../../segments/segment.ts';
import type { Cli } from '../cli.ts';
import { CommandFailed, UsageError } from '../exit-codes.ts';
import { formatCount } from '../format-numbers.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';
import { printable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly sample: number;
  readonly json: boolean;
}

export function addSegmentsPreviewCommand(segments: Command, cli: Cli): void {
  segments
    .command('preview')
    .summary('how many users are in a segment, and some of them')
    .description('Counts the users of a segment as they are now, and shows the first of them by id.')
    .argument('<segment>', 'its id or its key')
    .option('--sample <n>', `how many users to show, ${MAX_SEGMENT_SAMPLE} at most`, parseSample, 10)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice segments preview power-users\n  $ sluice segments preview 3 --sample 100 --json | jq .users',
    )
    .action((segment: string, flags: Flags, command: Command) => preview(cli, command, segment, flags));
}

async function preview(cli: Cli, command: Command, wanted: string, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const stored = await requireSegment(session, environmentId, wanted);
    const found = await count(session, environmentId, readDefinition(stored), flags.sample);
    if (flags.json) {
      cli.terminal.json({ id: stored.id, key: stored.key, users: found.users, sample: found.sample });
      return;
    }
    cli.terminal.print(`${printable(stored.title, 60)} (${stored.key}): ${formatCount(found.users)} users`);
    for (const userId of found.sample) cli.terminal.print(`  ${printable(userId, 100)}`);
    const more = found.users - found.sample.length;
    if (more > 0 && found.sample.length > 0) cli.terminal.print(`  … and ${formatCount(more)} more`);
  });
}

function parseSample(text: string): number {
  const sample = Number(text);
  if (/^\d{1,3}$/.test(text) && sample <= MAX_SEGMENT_SAMPLE) return sample;
  throw new UsageError(`--sample: a number from 0 to ${MAX_SEGMENT_SAMPLE} is wanted`);
}

/** A key may look like an id; then the id is meant. */
async function requireSegment(
  { system }: Session,
  environmentId: number,
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

function readDefinition({ key, definition }: StoredSegment): Segment {
  const { segment } = readSegment(definition);
  if (segment !== null) return segment;
  throw new CommandFailed(`The definition of ${key} cannot be read; apply the catalogue again.`);
}

async function count(
  { system }: Session,
  environmentId: number,
  segment: Segment,
  sample: number,
): Promise<SegmentPreview> {
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
