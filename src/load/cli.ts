import { InvalidArgumentError } from 'commander';
import {
  choice,
  defineCommand,
  flag,
  type Invocation,
  parsed,
  several,
  text,
} from '../cli/define-command.ts';
import { exitCodes, UsageError } from '../cli/errors.ts';
import { findInputs, type Input } from '../cli/input-files.ts';
import { listenForStop } from '../cli/processes.ts';
import { type EnvironmentSession, withEnvironment } from '../cli/session.ts';
import type { Terminal } from '../cli/terminal.ts';
import { type Workers, withWorkers } from '../cli/workers.ts';
import {
  type GuardLimit,
  guardPattern,
  guardRule,
  readLimit,
  readVolumeGuard,
  type VolumeGuard,
  volumeGuardRule,
} from '../domain/guards.ts';
import { flagOf } from '../domain/option-table.ts';
import type { SourceOptions } from '../domain/source.ts';
import { type ImportOptions, importFile, printImported, renderImported } from './import-file.ts';
import { SMALL_LOAD_BYTES } from './limits.ts';
import { withOptionsOf } from './options-of.ts';
import { fileFlags, optionsOfFlag, readSourceFlags } from './source-flags.ts';

/** Workers are started if this process has not finished a small load after this time. */
const SMALL_LOAD_MS = 1_000;

const guard = (flags: string, description: string) =>
  parsed<GuardLimit | null>(flags, description, parseGuard, null);

interface ExportFolders {
  find(names: readonly string[]): Promise<string | null>;
  load(
    terminal: Terminal,
    session: EnvironmentSession,
    folder: string,
    options: ImportOptions,
  ): Promise<{ readonly exitCode: number; readonly json: object }>;
}

export const importFiles = (folders: ExportFolders) =>
  defineCommand({
    name: 'import',
    summary: 'load files of users, companies and events',
    description:
      'Loads CSV, NDJSON, JSON, Excel or Parquet files, also gzipped or in a ZIP archive, through the same route\n' +
      'as the HTTP interface. A server need not run; if one does, its workers do the work. Several files are loaded one\n' +
      'after another, in this order. A folder that `sluice export` wrote comes back as a whole: users, companies, events, and\n' +
      'what was defined if it was exported.',
    argument: several(
      '<files...>',
      'files, patterns in quotes such as "data/*.csv", - for standard input, or the folder of an export',
    ),
    options: ({ optionTable }) => ({
      dryRun: flag('--dry-run', 'check everything, write nothing but the report'),
      plan: flag('--plan', 'a dry run that keeps what would change, prints it, and can be applied'),
      maxErrors: guard('--max-errors <n>', 'fail once more records than this are refused: 100, or 5%'),
      maxChanged: guard('--max-changed <n>', 'fail if more profiles than this would be changed: 100, or 5%'),
      maxRemovedValues: guard(
        '--max-removed-values <n>',
        'fail if more values than this would be removed: 100, or 5%',
      ),
      guard: parsed<VolumeGuard | null>(
        '--guard <figures>',
        'hold a file that differs from the usual, or from figures such as "rows=900..1100 max_rejected=2%"',
        (text) => {
          const volumeGuard = readVolumeGuard(text);
          if (volumeGuard === undefined) throw new InvalidArgumentError(`It ${volumeGuardRule}.`);
          return volumeGuard;
        },
        null,
      ),
      ifDuplicate: choice(
        '--if-duplicate <action>',
        'when the same bytes were loaded before',
        ['load', 'skip', 'reject'],
        'load',
      ),
      rejectsDir: text('--rejects-dir <folder>', 'where to write the refused records', '.'),
      wait: flag('--no-wait', 'return once the files are accepted; a running server loads them'),
      quiet: flag('-q, --quiet', 'no progress'),
      ...fileFlags(optionTable),
      optionsOf: optionsOfFlag,
    }),
    environment: 'environment to load into',
    json: 'print the result as JSON',
    details: `Exit code: 0 loaded (refused records within --max-errors do not matter); 1
failed, or held by --guard; 2 wrong options or a file that cannot be loaded as
it is; 130 stopped by Ctrl-C: what was accepted continues when workers run
again.`,
    examples: [
      'sluice import users.csv',
      'sluice import "exports/2026-*.csv.gz" --map "Customer ID=user_id"',
      'sluice import kunden-2026-12.csv --options-of 0195…',
      'sluice import companies.ndjson --dry-run',
      'sluice import events.json.gz --preset mixpanel',
      'zcat users.csv.gz | sluice import - --format csv --max-errors 1%',
      'sluice import kunden.csv --encoding windows-1252 --null NULL',
      'sluice import users.txt --header none --map 1=user_id --map 2=email',
      'sluice import takeout --env copy',
      'sluice import users.csv --json | jq .loads[0].job.counts',
    ],
    run: async (invocation) => {
      const { cli, argument, flags, terminal, json } = invocation;
      const folder = await folders.find(argument);
      const inputs = folder === null ? await findInputs(argument) : [];
      const { optionTable } = cli;
      const source = readSourceFlags(optionTable, flags);
      if (folder !== null) requireUnchanged(flags, source);
      const stop = listenForStop();
      stop.signal.addEventListener('abort', () => {
        if (!flags.quiet)
          terminal.inform('Stopping; the chunks under way are finished first. Ctrl-C again exits at once.');
      });
      const load = async (session: EnvironmentSession) => {
        const { system, environmentId } = session;
        const { entity = 'auto' as const, preset = null, format = null, optionsOf = null } = flags;
        const request = { ...flags, entity, preset, format, optionsOf, source };
        const options = await withOptionsOf(system, environmentId, request);
        const single = optionTable.ofOneFile(options.source);
        if (inputs.length > 1 && single !== undefined)
          throw new UsageError(`${flagOf(single)} is about one file: give one file.`);
        const all = async (workers: Workers | null) => {
          const all = { ...options, json, workers, signal: stop.signal };
          if (folder !== null) return [await folders.load(terminal, session, folder, all)];
          return importAll(invocation, session, inputs, all);
        };
        if (!flags.wait) return all(null);
        const few = folder === null && isOneChunk(inputs) ? { tasks: 1, afterMs: SMALL_LOAD_MS } : {};
        return withWorkers(session, { entry: cli.entry, stop, ...few }, all);
      };
      const results = await withEnvironment(invocation, load, {
        mayCreate: true,
        // With --no-wait, workers that are already running merge all loads.
        mergesSmallLoads: flags.wait,
      });
      if (json)
        terminal.json(folder === null ? { loads: results.map((each) => each.json) } : results[0]?.json);
      process.exitCode = Math.max(exitCodes.ok, ...results.map(({ exitCode }) => exitCode));
    },
  });

/**
 * Refuses options for a folder with an export, because an export is loaded unchanged.
 * @throws UsageError
 */
function requireUnchanged(flags: object, source: SourceOptions): void {
  const values = flags as Readonly<Record<string, unknown>>;
  const isSet = (name: string): boolean => {
    const value = values[name];
    return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  };
  const names = [
    'dryRun',
    'plan',
    'maxErrors',
    'maxChanged',
    'maxRemovedValues',
    'guard',
    'mirror',
    'existing',
    'map',
    'optionsOf',
    'preset',
    'entity',
    'format',
  ];
  const isUsual = values['wait'] === true && values['ifDuplicate'] === 'load';
  if (isUsual && !names.some(isSet) && Object.keys(source).length === 0) return;
  throw new UsageError(
    'A folder with an export takes no option of how files are loaded: name its files instead.',
  );
}

/**
 * True if each file is one chunk. A second worker would then be idle, because files are loaded one
 * after another.
 */
function isOneChunk(inputs: readonly Input[]): boolean {
  return inputs.every(({ bytes }) => bytes !== null && bytes <= SMALL_LOAD_BYTES);
}

/** Stops after the first file that fails, because later files may depend on that file. */
async function importAll(
  { terminal }: Invocation,
  session: EnvironmentSession,
  inputs: readonly Input[],
  options: ImportOptions,
): Promise<{ readonly exitCode: number; readonly json: object }[]> {
  const results: { readonly exitCode: number; readonly json: object }[] = [];
  for (const [index, input] of inputs.entries()) {
    const result = await importFile(terminal, session, input, options);
    results.push({ exitCode: result.exitCode, json: renderImported(result, session.baseUrl) });
    if (!options.json) printImported(terminal, session.system.optionTable, result);
    if (result.exitCode === exitCodes.ok) continue;
    const remaining = inputs.slice(index + 1).map(({ path }) => path ?? 'standard input');
    if (remaining.length > 0) terminal.inform(`Not loaded, because of this: ${remaining.join(', ')}`);
    break;
  }
  return results;
}

function parseGuard(text: string): GuardLimit | null {
  if (new RegExp(guardPattern).test(text)) return readLimit(text);
  throw new InvalidArgumentError(`It ${guardRule}.`);
}
