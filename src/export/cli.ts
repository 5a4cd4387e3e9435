import { createWriteStream } from 'node:fs';
import { access, constants, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { InputError, messageOf } from '../base/errors.ts';
import { formatBytes, plural } from '../base/wording.ts';
import {
  choice,
  defineCommand,
  type Flags,
  flag,
  type Invocation,
  type OptionOf,
  repeated,
  required,
  text,
} from '../cli/define-command.ts';
import { CommandFailed, exitCodes, UsageError } from '../cli/errors.ts';
import { createProgress, type Followed, follow, type Progress } from '../cli/follow.ts';
import { listenForStop } from '../cli/processes.ts';
import { type EnvironmentSession, withEnvironment } from '../cli/session.ts';
import { printable, printRecords } from '../cli/terminal.ts';
import { withWorkers } from '../cli/workers.ts';
import type { System } from '../context.ts';
import {
  compressions,
  exportFormatFacts,
  exportFormats,
  exportLayouts,
  lossyFormats,
  spreadsheetFormats,
} from '../domain/export.ts';
import { type FileRef, MissingFileError } from '../files/file-store.ts';
import { readJobHistory } from '../tasks/job-store.ts';
import { recordDownload } from './file-links.ts';
import { writeSetup } from './import-folder.ts';
import { renderExportDetail, requireExport } from './inspect-exports.ts';
import { manifestName, verifyExport } from './manifest.ts';
import type { ExportOptions } from './options.ts';
import { requestExport } from './request-export.ts';
import { cancelExport } from './run-export.ts';
import type { Export } from './store.ts';

const verify = defineCommand({
  name: 'verify',
  summary: 'compare the files of an export with its manifest',
  description:
    'Compares the files in a folder with its manifest.json: length, SHA-256, missing and additional files. Needs no database.',
  argument: required('<folder>'),
  details: 'Exit code: 0 all is as it was written; 1 something is not; 2 no manifest.',
  examples: ['sluice export verify backup', 'sluice export verify backup --json | jq .differences'],
  // `sluice export` parses `--json` at any position, so it is not a flag of this command.
  run: async ({ argument: folder, terminal, json }) => {
    const verification = await verifyExport(folder);
    const { files, rows, bytes, differences } = verification;
    if (differences.length > 0) process.exitCode = exitCodes.failed;
    if (json) return terminal.json(verification);
    for (const { filename, problem } of differences) {
      terminal.print(`${printable(filename, 100)}: ${printable(problem, 200)}`);
    }
    const summary = `${plural(files, 'file')}, ${plural(rows, 'row')}, ${formatBytes(bytes)}`;
    terminal.print(
      differences.length === 0
        ? `${folder}: ${terminal.style('green', 'all is as it was written')}: ${summary}`
        : `${folder}: ${terminal.style('red', plural(differences.length, 'difference'))}: ${summary}`,
    );
  },
});

const ownOptions = {
  out: text('--out <folder>', 'a folder for the files, new or empty'),
  from: text('--from <date>', 'a day such as 2026-11-20, or an ISO 8601 instant; default: the beginning'),
  to: text('--to <date>', 'a day, which is included, or an instant, which is not; default: no end'),
  since: text(
    '--since <cursor>',
    'only what was written since an earlier export, of which this is the cursor',
  ),
  includeRemoved: flag('--include-removed', 'with --since: also profiles and properties that were removed'),
  waitForLoads: flag('--wait-for-loads', 'begin once the loads that were accepted before have ended'),
  eventType: repeated(
    '--event-type <type>',
    'users, companies, events, a kind of events such as page_view, or the key of an event; repeatable',
  ),
  user: repeated('--user <id>', 'only this user; repeatable'),
  company: repeated('--company <id>', 'only this company; repeatable'),
  exclude: repeated(
    '--exclude <term>',
    'leave out user:ID, company:ID, event:KEY, segment:ID or property:KEY, with * for any text; repeatable',
  ),
  layout: choice(
    '--layout <layout>',
    'a file of each kind, or one of rows of all kinds in order of time; default: `sluice env layout`',
    exportLayouts,
  ),
  format: choice('--format <format>', 'of the files', exportFormats, 'ndjson'),
  compression: choice('--compression <compression>', 'default: gzip, none for parquet', compressions),
  escapeFormulas: flag(
    '--no-escape-formulas',
    `do not escape cells that a spreadsheet would run (${spreadsheetFormats})`,
  ),
  everything: flag(
    '--everything',
    'all data, and definitions beside it: `sluice import FOLDER` brings it back',
  ),
  quiet: flag('-q, --quiet', 'no progress'),
};

export const exportData = defineCommand({
  name: 'export',
  summary: 'write users, companies and events to files',
  description:
    'Writes users, companies and events, as they are at one moment, to files in a folder: all of them, verified, or none.\n' +
    'A server need not run; if one does, its workers do the work.',
  options: ({ exportOptions }) => ({ ...ownOptions, ...optionFlags(exportOptions) }),
  environment: 'environment to export',
  json: 'print the result as JSON',
  details: `Exit code: 0 written and verified; 1 failed; 2 wrong options; 130 stopped by
Ctrl-C, which cancels the export.`,
  examples: [
    'sluice export --out backup',
    'sluice export --out takeout --everything && sluice import takeout --env copy',
    'sluice export --out november --from 2026-11-01 --to 2026-11-30 --format csv',
    'sluice export --out customers --event-type users --exclude "user:test-*"',
    'sluice export --out backup --json | jq .files',
    'sluice export --out new --since "$(jq -r .cursor backup/manifest.json)"',
    'sluice export verify backup',
  ],
  commands: [verify],
  run: async (invocation) => {
    const { cli, flags, terminal, json } = invocation;
    const { out, quiet, everything, ...wish } = flags;
    if (out === undefined) throw new UsageError('Name a folder for the files: --out FOLDER.');
    if (everything) requireAll(wish);
    const body = toBody(cli.exportOptions, everything ? { ...wish, layout: 'datasets' } : wish);
    await requireEmpty(out);
    const stop = listenForStop();
    await withEnvironment(invocation, async (session) => {
      const { system, environmentId } = session;
      const jobId = await requestExport(system, environmentId, body, null, {
        origin: { kind: 'command_line', name: null },
      });
      try {
        await withWorkers(session, { entry: cli.entry, stop, tasks: 1 }, async () => {
          const target = { environmentId, jobId, signal: stop.signal };
          const progress = createProgress(terminal, 'export', quiet || json);
          const outcome = await followExport(system, target, progress);
          if (outcome.endedAt === null) await giveUp(session, jobId);
          const result = outcome.endedAt === null ? { ...outcome, status: 'cancelled' as const } : outcome;
          const isSaved =
            result.status === 'completed' && (await save(session, result, out, everything, stop.signal));
          await print(invocation, session, result, isSaved ? out : null);
          if (isSaved) process.exitCode = exitCodes.ok;
          else process.exitCode = stop.signal.aborted ? exitCodes.interrupted : exitCodes.failed;
        });
      } catch (error) {
        await giveUp(session, jobId);
        throw error;
      }
    });
  },
});

/**
 * Refuses a folder with files, because exported files would be mixed with them.
 * @throws UsageError
 */
async function requireEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${folder} cannot be written to: ${error.message}`);
  });
  if (names.length > 0) throw new UsageError(`${folder} is not empty. Name a new or an empty folder.`);
  await requireWritable(dirname(resolve(folder)));
}

/**
 * Checks before the export begins that the folder can be created.
 * @throws UsageError if the folder is not writable
 */
async function requireWritable(parent: string): Promise<void> {
  try {
    await mkdir(parent, { recursive: true });
    await access(parent, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UsageError(`${parent} cannot be written to: ${messageOf(error)}`);
  }
}

function optionFlags(options: ExportOptions): Readonly<Record<never, OptionOf<unknown>>> {
  return Object.fromEntries(
    options.entries.map(([name, { flag, description }]) => [name, text(flag, description)]),
  );
}

/** Flags that are part of the request. `optionFlags` adds more flags at run time. */
type Wish = Omit<Flags<typeof ownOptions>, 'out' | 'quiet' | 'everything'>;

/**
 * Checks the flags for `--everything`.
 * @throws UsageError if the export would be incomplete, or could not be imported unchanged
 */
function requireAll({
  layout,
  format,
  compression,
  escapeFormulas,
  includeRemoved,
  waitForLoads: _,
  ...filters
}: Wish): void {
  const isFiltered = Object.values(filters).some((value) => value !== undefined && value.length > 0);
  if (!isFiltered && layout !== 'stream' && exportFormatFacts[format].isLossless) return;
  throw new UsageError(
    `--everything takes no filter, and neither ${lossyFormats} nor a stream: they say less than what is stored.`,
  );
}

function toBody(options: ExportOptions, request: Wish): Readonly<Record<string, unknown>> {
  const values: Readonly<Record<string, unknown>> = request;
  return {
    ...Object.fromEntries(options.entries.map(([name]) => [name, values[name]])),
    from: request.from,
    to: request.to,
    since: request.since,
    include_removed: request.includeRemoved,
    wait_for_loads: request.waitForLoads,
    event_type: request.eventType,
    user_id: request.user,
    company_id: request.company,
    exclusions: request.exclude.join(','),
    layout: request.layout,
    format: request.format,
    compression: request.compression,
    escape_formulas: request.escapeFormulas,
  };
}

async function giveUp({ system, environmentId }: EnvironmentSession, jobId: string): Promise<void> {
  await cancelExport(system, environmentId, jobId).catch((error: unknown) => {
    // The export may have ended before the cancellation.
    if (!(error instanceof InputError)) system.log.warn({ err: error }, 'the export could not be cancelled');
  });
}

async function print(
  { terminal, json }: Invocation,
  { system, environmentId, baseUrl }: EnvironmentSession,
  result: Export,
  folder: string | null,
): Promise<void> {
  const files = folder === null ? [] : result.files;
  if (json) {
    const entries = files.map(({ filename, rows, bytes, sha256 }) => ({ filename, rows, bytes, sha256 }));
    const { rows: _, ...manifest } = entries.find(({ filename }) => filename === manifestName) ?? {};
    const history = await readJobHistory(system.db, environmentId, result.jobId);
    terminal.json({
      job: renderExportDetail(result, history, baseUrl),
      folder,
      files: entries.filter(({ filename }) => filename !== manifestName),
      manifest: folder === null ? null : manifest,
    });
    return;
  }
  if (folder === null) {
    terminal.inform(`sluice: the export is ${result.status}; nothing was written. Job ${result.jobId}`);
    if (result.failure !== null)
      terminal.inform(`Failed: ${result.failure.message} [${result.failure.code}]`);
    return;
  }
  terminal.print(`${folder}: ${terminal.style('green', 'complete and verified')}  job ${result.jobId}`);
  printRecords(terminal, files, ['filename', 'rows', 'bytes']);
  for (const { message, details } of result.warnings) {
    terminal.inform(`Warning: ${printable(message, 300)} (${printable(details, 300)})`);
  }
  terminal.print(`Next increment: --since ${result.cursor}`);
}

/**
 * Saves the files in `folder`. Leaves no partial folder if this fails. Returns false if `signal`
 * was aborted.
 */
async function save(
  { system, environmentId }: EnvironmentSession,
  result: Export,
  folder: string,
  everything: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const target = resolve(folder);
  const partial = `${target}.partial-${result.jobId}`;
  try {
    await mkdir(dirname(target), { recursive: true });
    await mkdir(partial);
    for (const { ref, filename } of result.files) {
      await recordDownload(system, environmentId, result.jobId, filename);
      const copy = createWriteStream(join(partial, filename), { flags: 'wx', flush: true });
      await pipeline(system.files.open(ref as FileRef), copy, { signal });
    }
    if (everything) await writeSetup(system, environmentId, partial);
    const [first] = (await verifyExport(partial)).differences;
    if (first !== undefined)
      throw new CommandFailed(`The files came out damaged: ${first.filename} ${first.problem}.`);
    // On some systems, `rename` fails if the target is an empty folder.
    await rmdir(target).catch(() => undefined);
    await rename(partial, target);
    return true;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (signal.aborted) return false;
    if (!(error instanceof MissingFileError)) throw error;
    throw new CommandFailed(
      `The files of export ${result.jobId} are not here: the workers that run keep theirs elsewhere (DATA_DIR, STORAGE_URL).`,
    );
  }
}

export function followExport({ db }: System, target: Followed, progress: Progress): Promise<Export> {
  return follow(target, {
    read: () => requireExport({ db }, target.environmentId, target.jobId),
    show: ({ status, progress: share, rowsWritten, bytesWritten }) =>
      progress.show(share, () =>
        status === 'queued'
          ? 'waits for a worker'
          : `${plural(rowsWritten, 'row')} · ${formatBytes(bytesWritten)}`,
      ),
    whenGone: `Export ${target.jobId} continues when database and workers run again; nothing was written here.`,
  }).finally(() => progress.end());
}
