import { createInterface } from 'node:readline/promises';
import { findEnvironment } from '../../access/environment-store.ts';
import type { FieldChange } from '../../base/difference.ts';
import { formatCount, plural } from '../../base/wording.ts';
import { defineCommand, flag, type Invocation, required, text } from '../../cli/define-command.ts';
import { CommandFailed, exitCodes, explainError, UsageError } from '../../cli/errors.ts';
import { withSession } from '../../cli/session.ts';
import { type Cli, readSettings } from '../../cli/settings.ts';
import { printable, type Terminal } from '../../cli/terminal.ts';
import type { Database } from '../../postgres/database.ts';
import { applyFile, type EnvironmentPlan, isChange, planFile, type SectionChange } from './apply.ts';
import { type EnvironmentFile, findFiles, type PlacedProblem, type ReadFiles, readFiles } from './files.ts';

interface Flags {
  readonly dryRun: boolean;
  readonly prune: boolean;
  readonly create: boolean;
  readonly yes: boolean;
  readonly env: string | undefined;
}
type Call = Invocation<Flags, string>;

/** Exit code of a dry run that finds changes to make. */
const wouldChange = 2;

export const apply = defineCommand({
  name: 'apply',
  summary: 'configure environments from a folder',
  description:
    'Makes environments what the files of a folder declare: <environment>.yaml with the members `definitions`, `rules`,\n' +
    '`schedules` and `subscriptions`. All files are checked before anything changes. Each environment changes in one\n' +
    'transaction. What a file lacks stays. Applying the same files again changes nothing.',
  argument: required('<folder>', 'with a YAML or JSON file for each environment'),
  options: {
    dryRun: flag('--dry-run', 'show what would change, and exit with 2 if something would; write nothing'),
    prune: flag('--prune', 'remove what the members of a file lack; asks first'),
    create: flag('--create', 'create missing environments'),
    yes: flag('--yes', 'do not ask; required for removals without a terminal'),
    env: text('--env <name>', 'only this environment'),
  },
  json: true,
  details: `Exit code: 0 applied, or nothing to do; 1 a file is wrong, an environment is
missing or failed (the others are applied), or not confirmed; 2 wrong options,
or, with --dry-run, something would change.`,
  examples: [
    'sluice apply environments --dry-run',
    'sluice apply environments --prune --yes',
    'sluice apply environments --env staging --create',
  ],
  run: (call) => withoutUsageCode(call.cli, () => run(call)),
});

/**
 * A usage error exits like any other failure. The usual exit code of a usage error means
 * `wouldChange` here.
 */
async function withoutUsageCode({ optionTable }: Cli, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { message, exitCode } = explainError(error, optionTable);
    throw exitCode === exitCodes.usage ? new CommandFailed(message) : error;
  }
}

async function run(call: Call): Promise<void> {
  const { cli, command, argument: folder, flags, terminal, json } = call;
  const { config } = readSettings(cli, command);
  const named = await findFiles(folder, flags.env);
  // Reads the files first, so that their problems are reported even without a database.
  const reading = await readFiles(named, await cli.declaredSections(), { config, cli });
  if (reading.problemCount > 0) return refuse(call, reading);
  await withSession(call, async ({ system }) => {
    const { db } = system;
    if (!flags.create) await requireEnvironments(db, reading.files);
    const isConfirmed = await confirmRemovals(call, db, reading.files);
    const results: Result[] = [];
    for (const file of reading.files) {
      const result = await resultOf(file, cli, () =>
        flags.dryRun
          ? planFile(db, file, flags)
          : applyFile(system, file, { ...flags, isConfirmed: isConfirmed(file) }),
      );
      results.push(result);
      if (!json) printResult(terminal, result);
    }
    if (json) terminal.json(renderResults(results, flags));
    else terminal.inform(summarise(results, flags));
    process.exitCode = exitCodeOf(results, flags);
  });
}

function refuse({ terminal, json }: Call, { problems, problemCount }: ReadFiles): void {
  process.exitCode = exitCodes.failed;
  if (json) {
    terminal.json({ problems, problem_count: problemCount });
    return;
  }
  const rest = problemCount - problems.length;
  const shown = ({ file, line, column, message }: PlacedProblem) =>
    `${printable(file, 400)}:${line}:${column}: ${printable(message, 400)}`;
  throw new CommandFailed(
    [
      `The files have ${plural(problemCount, 'problem')}; nothing was applied.`,
      ...problems.map(shown),
      ...(rest > 0 ? [`… and ${formatCount(rest)} more.`] : []),
    ].join('\n'),
  );
}

async function requireEnvironments(db: Database, files: readonly EnvironmentFile[]): Promise<void> {
  const missing: string[] = [];
  for (const { environment } of files)
    if ((await findEnvironment(db, environment)) === null) missing.push(environment);
  if (missing.length === 0) return;
  const lines = missing.map(
    (name) =>
      `There is no environment ${name}. Create it with \`sluice env create ${name}\`, or add --create.`,
  );
  throw new CommandFailed(lines.join('\n'));
}

type IsConfirmed = (file: EnvironmentFile) => (removal: SectionChange) => boolean;

/** A removal that was not shown here is refused when the file is applied. */
async function confirmRemovals(
  { flags, terminal }: Call,
  db: Database,
  files: readonly EnvironmentFile[],
): Promise<IsConfirmed> {
  if (flags.dryRun || !flags.prune || flags.yes) return () => () => true;
  const keyOf = ({ environment }: EnvironmentFile, { section, item }: SectionChange): string =>
    JSON.stringify([environment, section, item]);
  const removals: { readonly key: string; readonly line: string }[] = [];
  for (const file of files) {
    // If planning fails, the error is not reported here, because applying the file will fail as
    // well and report it.
    const { changes } = await planFile(db, file, flags).catch(() => ({ changes: [] }));
    for (const change of changes.filter(({ action }) => action === 'remove'))
      removals.push({ key: keyOf(file, change), line: `${file.environment}: ${lineOf(change)}` });
  }
  const keys = new Set(removals.map(({ key }) => key));
  if (
    keys.size === 0 ||
    (await confirm(
      terminal,
      removals.map(({ line }) => line),
    ))
  )
    return (file) => (removal) => keys.has(keyOf(file, removal));
  throw new CommandFailed('Nothing was applied.');
}

async function confirm(terminal: Terminal, lines: readonly string[]): Promise<boolean> {
  for (const line of lines) terminal.inform(line);
  if (!terminal.live || process.stdin.isTTY !== true)
    throw new UsageError('There is no terminal to confirm these removals on: add --yes.');
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(
      `Remove ${plural(lines.length, 'item')}? This cannot be undone. [y/N] `,
    );
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    asking.close();
  }
}

type Result = EnvironmentFile & ({ readonly plan: EnvironmentPlan } | { readonly error: string });

async function resultOf(
  file: EnvironmentFile,
  { optionTable }: Cli,
  work: () => Promise<EnvironmentPlan>,
): Promise<Result> {
  try {
    return { ...file, plan: await work() };
  } catch (error) {
    return { ...file, error: explainError(error, optionTable).message };
  }
}

function exitCodeOf(results: readonly Result[], { dryRun }: Flags): number {
  if (results.some((result) => 'error' in result)) return exitCodes.failed;
  const isChanged = results.some((result) => 'plan' in result && isChange(result.plan));
  return dryRun && isChanged ? wouldChange : exitCodes.ok;
}

function renderResults(results: readonly Result[], { dryRun }: Flags): object {
  return {
    dry_run: dryRun,
    environments: results.map((result) => {
      const { environment, path: file } = result;
      if ('error' in result)
        return { environment, file, created: false, written: false, error: result.error, changes: [] };
      const { isNew, changes } = result.plan;
      const written = !dryRun && isChange(result.plan);
      return { environment, file, created: isNew, written, error: null, changes };
    }),
  };
}

const signs = { add: '+', change: '~', remove: '-' } as const;
const colours = { add: 'green', change: 'yellow', remove: 'red' } as const;

function printResult(terminal: Terminal, result: Result): void {
  const heading = `${result.environment} (${printable(result.path, 400)})`;
  if ('error' in result) {
    terminal.print(`${heading}: failed`);
    terminal.inform(`sluice: ${result.environment}: ${result.error}`);
    return;
  }
  terminal.print(isChange(result.plan) ? heading : `${heading}: no changes`);
  if (result.plan.isNew) terminal.print(terminal.style('green', '+ environment'));
  for (const change of result.plan.changes) {
    terminal.print(terminal.style(colours[change.action], lineOf(change)));
    for (const { field, before, after } of change.fields)
      terminal.print(`    ${printable(field, 200)}: ${shownValue(before)} → ${shownValue(after)}`);
  }
}

const lineOf = ({ action, section, item }: SectionChange): string =>
  `${signs[action]} ${section}  ${printable(item, 200)}`;

function shownValue(value: FieldChange['before']): string {
  return value === undefined ? 'none' : printable(JSON.stringify(value), 200);
}

function summarise(results: readonly Result[], { dryRun }: Flags): string {
  const plans = results.flatMap((result) => ('plan' in result && isChange(result.plan) ? result.plan : []));
  const failed = results.filter((result) => 'error' in result).length;
  const count = plans.reduce((sum, { isNew, changes }) => sum + changes.length + (isNew ? 1 : 0), 0);
  const what = `${plural(count, 'change')} in ${plural(plans.length, 'environment')}`;
  const done = dryRun ? `Dry run: ${what}; nothing was written.` : `Applied ${what}.`;
  return failed === 0 ? done : `${done} Failed: ${plural(failed, 'environment')}.`;
}
