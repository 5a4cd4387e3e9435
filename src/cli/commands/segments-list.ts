import type { Command } from 'commander';
import type { StoredSegment } from '../../domain/definitions.ts';
import { definitionsOf } from '../../postgres/stores/definitions.ts';
import type { Cli } from '../cli.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

const columns = [
  { title: 'id', align: 'right' },
  { title: 'key' },
  { title: 'title' },
  { title: 'status' },
] as const;

export function addSegmentsListCommand(segments: Command, cli: Cli): void {
  segments
    .command('list')
    .summary('the segments with their ids')
    .description('Lists the segments of an environment, with the ids that exports are filtered by.')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON, the definitions too', false)
    .addHelpText(
      'after',
      "\nExamples:\n  $ sluice segments list\n  $ sluice segments list --json | jq '.[].key'",
    )
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, { env, json }: Flags): Promise<void> {
  const { terminal } = cli;
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const segments = await definitionsOf.segments.read(session.system.db, environmentId);
    if (json) return terminal.json(segments);
    if (segments.length === 0) {
      return terminal.note(`Environment ${env} has no segments; \`sluice catalogue apply\` makes them.`);
    }
    for (const line of renderTable(columns, segments.map(cells))) terminal.print(line);
  });
}

function cells({ id, key, title, status }: StoredSegment): string[] {
  return [String(id), printable(key, 40), printable(title, 60), status];
}
