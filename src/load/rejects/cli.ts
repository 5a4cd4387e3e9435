import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { MAX_PAGE_SIZE } from '../../base/limits.ts';
import { walkPages } from '../../base/pages.ts';
import { formatCount } from '../../base/wording.ts';
import { choice, defineCommand, flag, jobIdArgument, parsed } from '../../cli/define-command.ts';
import { UsageError } from '../../cli/errors.ts';
import type { EnvironmentSession } from '../../cli/session.ts';
import { type Columns, printable, printTable, type Terminal } from '../../cli/terminal.ts';
import { type Reject, readCauseId, writeCauseId } from '../../domain/reject.ts';
import { recordRowsDownload } from '../../http/job-rows.ts';
import { type Load, requireLoad } from '../read-store.ts';
import { renderReject } from '../render-load.ts';
import { type ListedCause, listCauses, renderCauses } from './list-causes.ts';
import { exportRejects, listRejects, type RejectsFormat } from './rejects.ts';
import { readRejectsSource } from './store.ts';

type Context = Pick<EnvironmentSession, 'system' | 'environmentId'>;

export const rejects = defineCommand({
  name: 'rejects',
  summary: 'the refused records of a load',
  description:
    'Prints the refused records with their reasons: as csv or ndjson in the shape of their file, to be corrected and\n' +
    'loaded as a file of its own, or as json with the place of each and long records cut. With --by-cause: the causes, and\n' +
    'how many records each has.',
  argument: jobIdArgument,
  options: {
    format: choice('--format <format>', 'default: that of the file', ['csv', 'ndjson', 'json']),
    byCause: flag('--by-cause', 'causes instead of records, the most frequent first'),
    cause: parsed('--cause <id>', 'only the records of this cause, from --by-cause', parseCause),
  },
  json: 'the same as --format json',
  examples: [
    'sluice jobs rejects 0195… > correct-me.csv',
    'sluice jobs rejects 0195… --by-cause',
    'sluice jobs rejects 0195… --format json | jq .[].message',
  ],
  inEnvironment: async (call) => {
    const { argument: jobId, flags, terminal, json, system, environmentId } = call;
    const load = await requireLoad(system, environmentId, jobId);
    const requested = json ? 'json' : flags.format;
    if (flags.byCause) return printCauses(call, jobId, terminal, requested === 'json');
    const { cause = null } = flags;
    const format = requested ?? (await formatOfRejects(call, jobId));
    const bytes =
      format === 'json'
        ? rejectsAsJson(call, jobId, cause)
        : exportRejects(system, environmentId, jobId, format, cause);
    await recordRowsDownload(system, environmentId, load.jobId, 'rejects');
    for await (const piece of bytes) {
      if (terminal.closed) return;
      await terminal.write(piece);
    }
  },
});

function parseCause(text: string): number {
  const cause = readCauseId(text);
  if (cause === null) throw new UsageError('--cause takes the id of a cause, as --by-cause prints it.');
  return cause;
}

async function formatOfRejects({ system, environmentId }: Context, jobId: string): Promise<RejectsFormat> {
  const source = await readRejectsSource(system.db, environmentId, jobId);
  return source !== null && source.header === null ? 'ndjson' : 'csv';
}

async function* rejectsAsJson(
  { system, environmentId }: Context,
  jobId: string,
  cause: number | null,
): AsyncGenerator<string> {
  let before = '[';
  const read = (after: number) =>
    listRejects(system, environmentId, jobId, { limit: MAX_PAGE_SIZE, after, cause });
  for await (const { rejects } of walkPages(0, read)) {
    for (const reject of rejects) {
      yield `${before}\n${JSON.stringify(renderReject(reject))}`;
      before = ',';
    }
  }
  yield before === '[' ? '[]\n' : '\n]\n';
}

async function printCauses(
  { system, environmentId }: Context,
  jobId: string,
  terminal: Terminal,
  json: boolean,
): Promise<void> {
  const list = await listCauses(system, environmentId, jobId);
  if (json) return terminal.json(renderCauses(list));
  const [example] = list.causes;
  if (example === undefined) return terminal.inform('No record is refused.');
  printTable(terminal, causeColumns, list.causes);
  const others = list.total - list.causes.length;
  const listed = list.causes.reduce((sum, { count }) => sum + count, 0);
  if (others > 0)
    terminal.inform(`${formatCount(list.records - listed)} more, of ${formatCount(others)} causes.`);
  terminal.inform(`The records of one: sluice jobs rejects ${jobId} --cause ${writeCauseId(example.cause)}`);
}

const longestSample = 32;

const causeColumns: Columns<ListedCause> = {
  Cause: ({ cause }) => writeCauseId(cause),
  '>Records': ({ count }) => count,
  Reason: ({ code, column }) => `${code} ${printable(column ?? '', longestSample)}`.trim(),
  Shape: ({ shape }) => shape,
  'For example': ({ samples: [sample] }) =>
    printable(sample?.value ?? sample?.reject.raw.toString() ?? '', longestSample),
};

export interface RejectsReport {
  readonly count: number;
  readonly first: readonly Reject[];
  /** Path of the written file. `null` if the file could not be written. */
  readonly path: string | null;
  readonly problem: string | null;
}

const shown = 5;
const mostFiles = 1_000;

/**
 * Writes all rejects to `<file>.rejects.<format>`. An existing file may be partly corrected, so a
 * number is added: `<file>.rejects-2.<format>`. A dry run overwrites its own file.
 */
export async function reportRejects(
  context: Context,
  load: Load,
  folder: string,
): Promise<RejectsReport | null> {
  const { system, environmentId } = context;
  const { jobId } = load;
  const { rejects, total } = await listRejects(system, environmentId, jobId, { limit: shown, after: 0 });
  if (rejects.length === 0) return null;
  const report = { count: total, first: rejects };
  try {
    const format = await formatOfRejects(context, jobId);
    const name = load.filename.replace(/\.gz$/i, '').replace(/\.[a-z]+$/i, '');
    const stem = join(folder, `${name}.rejects`);
    const dryPath = `${stem}.dry-run.${format}`;
    const { path, file } = load.dryRun
      ? { path: dryPath, file: await open(dryPath, 'w') }
      : await openNew(stem, format);
    try {
      for await (const bytes of exportRejects(system, environmentId, jobId, format))
        await file.appendFile(bytes);
    } finally {
      await file.close();
    }
    return { ...report, path, problem: null };
  } catch (error) {
    // An unwritable folder is not a failure: the rejects are in the database.
    return { ...report, path: null, problem: messageOf(error) };
  }
}

async function openNew(stem: string, extension: string): Promise<{ path: string; file: FileHandle }> {
  for (let number = 1; ; number++) {
    const path = `${stem}${number === 1 ? '' : `-${number}`}.${extension}`;
    try {
      return { path, file: await open(path, 'wx') };
    } catch (error) {
      const isTaken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
      if (!isTaken || number >= mostFiles) throw error;
    }
  }
}
