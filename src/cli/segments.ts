/** `sluice segments`: who is in a segment, and segments made beside the definitions file. */
import { createSegment, removeSegment, renderSegment, requireDefinition } from '../definitions/segments.ts';
import type { StoredSegment } from '../domain/definitions.ts';
import { TookTooLong } from '../domain/errors.ts';
import { MAX_OPERATOR_FILE_BYTES, MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../domain/limits.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { analyzeStale } from '../postgres/migrate.ts';
import { definitionsOf } from '../postgres/stores/definitions.ts';
import { findSegmentItem } from '../postgres/stores/segments.ts';
import { previewSegment } from '../profiles/segments.ts';
import { defineCommand, parsed, parseUpTo, required, text } from './define-command.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { readBytes } from './input-files.ts';
import type { EnvironmentSession } from './session.ts';
import { printable, printDone, printList } from './terminal.ts';

const segmentArgument = required('<segment>', 'its id or its key');

const listSegments = defineCommand({
  name: 'list',
  summary: 'the segments with their ids',
  description: 'Lists the segments of an environment, with the ids that exports are filtered by.',
  json: 'print JSON, the definitions too',
  examples: ['sluice segments list', "sluice segments list --json | jq '.[].key'"],
  inEnvironment: async (call) =>
    printList(call, await definitionsOf.segments.read(call.system.db, call.environmentId), {
      columns: ['id', 'key', 'title', 'made_by', 'status'],
      none: `Environment ${call.env} has no segments; \`sluice segments create\` makes one.`,
    }),
});

const create = defineCommand({
  name: 'create',
  summary: 'make a segment beside those of the definitions file',
  description:
    'Makes a segment, as POST /v1/segments does. The definitions file does not remove it, unless it names its key: then the\n' +
    'file wins.',
  argument: required('<key>', 'its name, which stays: letters, digits, _ . and -'),
  options: {
    title: text('--title <title>', 'what people call it; default: the key'),
    definition: text(
      '--definition <file>',
      'YAML or JSON, as docs/segments.md says; - for standard input',
      '-',
    ),
    category: text('--category <category>', 'what it is sorted under; default: custom'),
    usage: text('--usage <usage>', 'what it is used for; default: analytics'),
  },
  json: 'print what POST /v1/segments answers',
  examples: [
    'sluice segments create payers --title Payers --definition payers.json',
    `echo '{"property": "plan", "equals": "pro"}' | sluice segments create pros`,
  ],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: key, flags } = call;
    const { title = key, definition, ...others } = flags;
    const given = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined));
    const fields = {
      ...given,
      key,
      title,
      definition: String(await readBytes(definition, MAX_OPERATOR_FILE_BYTES)),
    };
    const made = await createSegment(system.db, environmentId, fields);
    printDone(call, renderSegment(made), `Made segment ${made.id}: sluice segments preview ${key}`);
  },
});

const remove = defineCommand({
  name: 'delete',
  summary: 'delete a segment',
  description: 'Deletes a segment that the API made. Those of the definitions file are removed there.',
  argument: segmentArgument,
  json: true,
  examples: ['sluice segments delete payers'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument } = call;
    const { id, key } = await requireSegment(call, argument);
    await removeSegment(system.db, environmentId, id);
    printDone(call, { id, key, deleted: true }, `The segment ${key} is deleted.`);
  },
});

const preview = defineCommand({
  name: 'preview',
  summary: 'how many users are in a segment, and some of them',
  description: 'Counts the users of a segment as they are now, and shows the first of them by id.',
  argument: segmentArgument,
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
    const { system, environmentId, argument, flags, terminal, json } = call;
    const { id, key, title, definition } = await requireSegment(call, argument);
    await analyzeStale(system.db, system.log);
    const counted = previewSegment(system, environmentId, requireDefinition(definition), flags);
    const { users, sample } = await counted.catch(explainTimeout);
    if (json) return terminal.json({ id, key, users, sample });
    terminal.print(`${printable(title, 60)} (${key}): ${plural(users, 'user')}`);
    for (const userId of sample) terminal.print(`  ${printable(userId, 100)}`);
    const more = users - sample.length;
    if (more > 0 && sample.length > 0) terminal.print(`  … and ${formatCount(more)} more`);
  },
});

function explainTimeout(error: unknown): never {
  if (!(error instanceof TookTooLong)) throw error;
  const seconds = SEGMENT_PREVIEW_TIMEOUT_MS / 1_000;
  throw new CommandFailed(
    `Counting took longer than ${seconds} seconds. An export may take as long as it likes.`,
  );
}

/** Finds a segment by its id or its key. A key may look like an id; then the id is meant. @throws UsageError */
export async function requireSegment(
  { system: { db }, environmentId }: EnvironmentSession,
  wanted: string,
): Promise<StoredSegment> {
  const byId = /^\d{1,10}$/.test(wanted)
    ? await findSegmentItem(db, environmentId, { segmentId: Number(wanted) })
    : null;
  const found = byId ?? (await findSegmentItem(db, environmentId, { key: wanted }));
  if (found !== null) return found;
  throw new UsageError(
    `There is no segment ${JSON.stringify(wanted)}. \`sluice segments list\` shows those there are.`,
  );
}

export const segments = defineCommand({
  name: 'segments',
  summary: 'segments: list and make them, and see who is in one',
  description:
    'Segments are defined in a file (`sluice definitions`), or made one by one; exports are filtered by them.',
  examples: ['sluice segments list', 'sluice segments preview power-users'],
  commands: [listSegments, create, remove, preview],
});
