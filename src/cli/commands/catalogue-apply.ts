import type { Command } from 'commander';
import { type Applied, applyDefinitions } from '../../definitions/apply-definitions.ts';
import { readDefinitionsFile } from '../../definitions/definitions-file.ts';
import type { Definitions } from '../../domain/definitions.ts';
import { hasChanges, printChanges, renderChanges } from '../catalogue/print-changes.ts';
import type { Cli } from '../cli.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { explainProblems } from '../explain-problems.ts';
import { readBytes } from '../read-bytes.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly json: boolean;
}

export function addCatalogueApplyCommand(catalogue: Command, cli: Cli): void {
  catalogue
    .command('apply')
    .summary('make the catalogue what a file says')
    .description(
      'Makes the catalogue of an environment what the file says, in one transaction: what is new is added, what differs\n' +
        'changed, and what the file does not have removed. Items keep their ids as long as they keep their keys. Applying a\n' +
        'file twice changes nothing.',
    )
    .argument('<file>', 'YAML or JSON; - for standard input')
    .option('--dry-run', 'check the file and show what would change; write nothing', false)
    .option('--force', 'remove protected segments too', false)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0 applied, or nothing to do; 1 failed; 2 the file is wrong (every
problem is told with its line), or lacks a protected segment.

Examples:
  $ sluice catalogue apply catalogue.yaml --dry-run
  $ sluice catalogue apply catalogue.yaml --env staging
  $ sluice catalogue export --env a | sluice catalogue apply - --env b`,
    )
    .action((file: string, flags: Flags, command: Command) => apply(cli, command, file, flags));
}

async function apply(cli: Cli, command: Command, file: string, flags: Flags): Promise<void> {
  const items = await readItems(cli, file, flags);
  if (items === null) return;
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const applied = await applyDefinitions(session.system.db, environmentId, items, flags);
    if (flags.json) cli.terminal.json(render(applied, flags));
    else tell(cli, applied, flags);
    if (applied.blockedBy.length > 0) process.exitCode = exitCodes.usage;
  });
}

/** Before a database is looked for. null: the file is wrong, and whoever reads JSON has been told. */
async function readItems(cli: Cli, file: string, { json }: Flags): Promise<Definitions | null> {
  const reading = readDefinitionsFile(await readBytes(file));
  if (reading.value !== null) return reading.value;
  if (!json) throw new UsageError(explainProblems(file === '-' ? 'stdin' : file, reading));
  cli.terminal.json({ problems: reading.problems, problem_count: reading.problemCount });
  process.exitCode = exitCodes.usage;
  return null;
}

function tell({ terminal }: Cli, { changes, blockedBy }: Applied, { env, dryRun }: Flags): void {
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

function render({ changes, blockedBy }: Applied, { env, dryRun }: Flags): object {
  return {
    environment: env,
    dry_run: dryRun,
    written: !dryRun && blockedBy.length === 0 && hasChanges(changes),
    blocked_by: blockedBy,
    changes: renderChanges(changes),
  };
}
