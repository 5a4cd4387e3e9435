import { createReadStream } from 'node:fs';
import { InputError } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { formatBytes, formatCount, formatDuration, summaries } from '../base/wording.ts';
import { exitCodeOf, exitCodes, explainError } from '../cli/errors.ts';
import { createProgress } from '../cli/follow.ts';
import type { Input } from '../cli/input-files.ts';
import type { EnvironmentSession } from '../cli/session.ts';
import { printable, renderTable, type Terminal } from '../cli/terminal.ts';
import type { Workers } from '../cli/workers.ts';
import {
  ALL_RECORDS_REFUSED,
  countedKinds,
  FIRST_RECORDS_REFUSED,
  type LoadOptions,
  type Tally,
} from '../domain/load.ts';
import type { OptionTable } from '../domain/option-table.ts';
import type { CsvReadAs, ReadAs, SourceFormat } from '../domain/source.ts';
import { countLiveWorkers } from '../tasks/worker-store.ts';
import { acceptLoad } from './accept.ts';
import { isLoadTakenBack } from './end-store.ts';
import { describeHold, followLoad } from './follow.ts';
import { printPlan } from './plans/cli.ts';
import { type ShownPlan, showPlan } from './plans/plans.ts';
import { type Load, type LoadResult, readLoadResult, readShown, type Shown } from './read-store.ts';
import { receiveLocal } from './receive/receive.ts';
import type { ReceivedFile } from './receive/received-file.ts';
import { receivingStore } from './received.ts';
import { type RejectsReport, reportRejects } from './rejects/cli.ts';
import { renderLoadDetail, rowsPerSecond } from './render-load.ts';

/** Receives a file, or standard input, in the same way as an upload over HTTP. */
async function readInput(
  { system }: ImportSession,
  { path }: Input,
  { format, source: sourceOptions, map, signal }: ImportOptions,
  onBytes: (bytes: number) => void,
): Promise<ReceivedFile> {
  const source = path === null ? process.stdin : createReadStream(path, { highWaterMark: READ_BYTES });
  const counted = async function* (): AsyncGenerator<Buffer> {
    let total = 0;
    for await (const bytes of source as AsyncIterable<Buffer>) {
      total += bytes.length;
      onBytes(total);
      yield bytes;
    }
  };
  const hints = { format: format ?? undefined, filename: path ?? undefined, source: sourceOptions, map };
  try {
    return await receiveLocal(counted(), receivingStore(system), hints, system.config, signal);
  } finally {
    source.destroy();
  }
}

export interface ImportOptions extends Omit<LoadOptions, 'preset'> {
  readonly preset: LoadOptions['preset'] | undefined;
  readonly format: SourceFormat | null;
  readonly rejectsDir: string;
  readonly wait: boolean;
  readonly quiet: boolean;
  readonly json: boolean;
  readonly workers: Workers | null;
  readonly signal: AbortSignal;
}

export interface Imported {
  readonly name: string;
  readonly exitCode: number;
  readonly load: Load | null;
  readonly shown: Shown | null;
  readonly result: LoadResult | null;
  readonly rejects: RejectsReport | null;
  readonly plan: ShownPlan | null;
  readonly remark: string | null;
  /** The reason why the file was refused. `null` if it was accepted. */
  readonly error: InputError | null;
}

export type ImportSession = Pick<EnvironmentSession, 'system' | 'environmentId' | 'baseUrl'>;

/** Loads one file. Returns errors that the file has caused, and throws all others. */
export async function importFile(
  terminal: Terminal,
  session: ImportSession,
  input: Input,
  options: ImportOptions,
): Promise<Imported> {
  const { system, environmentId } = session;
  const { name } = input;
  const { signal, wait } = options;
  const progress = createProgress(terminal, name, options.quiet || options.json);
  try {
    const received = await readInput(session, input, options, (bytes) => {
      const { bytes: total } = input;
      const of = total === null ? '' : ` of ${formatBytes(total)}`;
      const share = total === null ? null : Math.min(1, bytes / Math.max(total, 1));
      progress.show(share, () => `receiving ${formatBytes(bytes)}${of}`);
    });
    const { jobId, created } = await acceptLoad(system, {
      environmentId,
      type: 'import',
      filename: name,
      received,
      options: loadOptions(options),
      idempotencyKey: null,
      origin: { kind: 'command_line', name: null },
    });
    const followed = { environmentId, jobId, signal: wait ? signal : AbortSignal.abort() };
    const load = await followLoad(system, followed, progress);
    const rejects = load.endedAt === null ? null : await reportRejects(session, load, options.rejectsDir);
    const remark = await remarkOn(load, created, session, options.workers);
    const shown = await readShown(system, environmentId, load);
    const result = await readLoadResult(system.db, environmentId, load);
    const plan = options.plan && load.plan !== null ? await showPlan(system, environmentId, jobId) : null;
    return {
      name,
      exitCode: wait || load.endedAt !== null ? exitCodeOf(load) : exitCodes.ok,
      load,
      shown,
      result,
      plan,
      rejects,
      remark,
      error: null,
    };
  } catch (error) {
    progress.end();
    const refused = { name, load: null, shown: null, result: null, plan: null, rejects: null };
    if (signal.aborted) {
      const remark = 'Stopped; nothing of this file was accepted.';
      return { ...refused, exitCode: exitCodes.interrupted, remark, error: null };
    }
    if (!(error instanceof InputError)) throw error;
    const { message, exitCode } = explainError(error, system.optionTable);
    return { ...refused, exitCode, remark: message, error };
  }
}

function loadOptions(options: ImportOptions): LoadOptions {
  const { entity, map, optionsOf, dryRun, plan, guard, ifDuplicate, source } = options;
  const { maxErrors, maxChanged, maxRemovedValues, preset = null } = options;
  const limits = { maxErrors, maxChanged, maxRemovedValues };
  return { entity, map, preset, optionsOf, dryRun, plan, ...limits, guard, ifDuplicate, source };
}

async function remarkOn(
  load: Load,
  created: boolean,
  { system, environmentId }: ImportSession,
  workers: Workers | null,
): Promise<string | null> {
  const code = load.failure?.code;
  if (!created) return `The same bytes are those of job ${load.jobId}: skipped.`;
  // If the load failed because its records were refused, the message of the failure already
  // explains how to correct the file.
  if (code === ALL_RECORDS_REFUSED || code === FIRST_RECORDS_REFUSED) return null;
  if (load.status === 'failed')
    return (await isLoadTakenBack(system.db, system.loads, environmentId, load.jobId))
      ? 'Once the cause is removed, import the file again: what this job wrote is undone.'
      : `Once the cause is removed: sluice jobs retry ${load.jobId}`;
  if (load.endedAt !== null) return null;
  if (load.status === 'held') return describeHold(load);
  if (workers?.whose === 'running' || (workers === null && (await countLiveWorkers(system.db)) > 0)) {
    return `The running workers continue it. To follow it: sluice jobs show ${load.jobId} --watch`;
  }
  return (
    'It continues, losing nothing, as soon as workers run: `sluice start` (or `sluice work`, or the next `sluice import`).\n' +
    `To give it up: sluice jobs cancel ${load.jobId}`
  );
}

export function printImported(
  terminal: Terminal,
  table: OptionTable,
  { name, load, shown, plan, rejects, remark, exitCode }: Imported,
): void {
  if (load === null) {
    terminal.inform(`sluice: ${name}: ${remark ?? ''}`);
    return;
  }
  const colour = colourOf(exitCode);
  const status = terminal.style(colour, exitCode === exitCodes.interrupted ? 'stopped' : load.status);
  const dry = load.dryRun ? ' (dry run: nothing was written)' : '';
  terminal.print(`${name}: ${status}${dry}  job ${load.jobId}`);
  const [readAs, ...notes] = describeReading(load);
  if (readAs !== undefined) terminal.print(`  read as: ${readAs}`);
  const isStopped = load.failure?.code === 'too_many_rejects';
  // A load that failed with `too_many_rejects` has counted only a part of its file.
  for (const line of [...notes, ...(isStopped ? [] : summarise(load))]) terminal.print(`  ${line}`);
  for (const [name, summary] of summaries(shown?.fields ?? {}))
    terminal.print(`  ${name}: ${printable(summary, 500)}`);
  if (load.failure !== null) terminal.print(`  Failed: ${table.withFlags(load.failure.message)}`);
  if (plan !== null) printPlan(terminal, plan);
  if (rejects !== null) printRejects(terminal, table, load, rejects);
  if (remark !== null) for (const line of remark.split('\n')) terminal.print(`  ${line}`);
}

function colourOf(exitCode: number): 'green' | 'red' | 'yellow' {
  if (exitCode === exitCodes.ok) return 'green';
  return exitCode === exitCodes.failed ? 'red' : 'yellow';
}

function printRejects(terminal: Terminal, table: OptionTable, load: Load, rejects: RejectsReport): void {
  terminal.print('');
  for (const { row, line, column, code, message } of rejects.first) {
    const where = column === null ? '' : `, ${printable(column, 40)}`;
    terminal.print(
      `  row ${row} (line ${line}${where}): ${printable(table.withFlags(message), 160)} [${code}]`,
    );
  }
  const more = rejects.count - rejects.first.length;
  if (more > 0) terminal.print(`  … and ${formatCount(more)} more`);
  if (rejects.path !== null) {
    const purpose = load.dryRun ? '' : ', to correct and import again';
    terminal.print(`  Refused records${purpose}: ${rejects.path}`);
  } else {
    const why = rejects.problem === null ? '' : ` (${rejects.problem})`;
    terminal.print(`  The refused records: sluice jobs rejects ${load.jobId}${why}`);
  }
}

export function renderImported(
  { name, load, shown, result, rejects, remark, error }: Imported,
  baseUrl: string,
): object {
  return {
    file: name,
    job:
      load === null || shown === null || result === null
        ? null
        : renderLoadDetail(load, shown, result, baseUrl),
    rejects_file: rejects?.path ?? null,
    // These errors have the same format as in the HTTP API.
    errors: (error?.problems ?? []).map(({ code, message, details }) => ({
      error_code: code,
      message,
      details,
    })),
    remark,
  };
}

const formatWords: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'Parquet',
  xlsx: 'Excel workbook',
};

/** The detected format in one line, followed by a line for each note. */
export function describeReading({ readAs }: { readonly readAs: ReadAs | null }): string[] {
  if (readAs === null) return [];
  const { format, encoding, csv, sheet, member, notes } = readAs;
  const parts = [
    formatWords[format],
    member === null ? null : `${printable(member, 80)} of the archive`,
    sheet === null ? null : `sheet ${printable(sheet, 40)}`,
    encoding,
    ...(csv === null ? [] : describeCsv(csv)),
  ];
  return [parts.filter((part) => part !== null).join(', '), ...notes.map((each) => printable(each, 300))];
}

const delimiterWords: Readonly<Record<string, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'pipes',
  ' ': 'single blanks',
  blanks: 'any number of blanks',
};

function describeCsv(csv: CsvReadAs): string[] {
  const { delimiter, quote, comment, nulls, ragged, headerLine } = csv;
  const phrases = [`${delimiterWords[delimiter] ?? printable(delimiter, 20)} between cells`];
  if (quote !== '"') phrases.push(quote === '' ? 'no quotes' : `quotes ${quote}`);
  if (csv.escape === '\\') phrases.push('backslash before quotes');
  if (comment !== '') phrases.push(`no records in lines that start with ${printable(comment, 20)}`);
  if (nulls.length > 0) phrases.push(`empty where ${nulls.map((each) => printable(each, 40)).join(' or ')}`);
  if (ragged === 'pad') phrases.push('short records padded');
  return [...phrases, headerLine === null ? 'no header' : `header on line ${headerLine}`];
}

function summarise(load: Load): string[] {
  const { tally, tallyByKind, acceptedAt, endedAt } = load;
  const rate = rowsPerSecond(load, new Date());
  const seconds = ((endedAt?.getTime() ?? Date.now()) - acceptedAt.getTime()) / 1000;
  const all = { kind: 'all', tally, time: formatDuration(seconds), rate };
  const kinds = countedKinds.flatMap((kind) => {
    const counts = tallyByKind?.[kind];
    return counts === undefined || counts.read === 0 ? [] : [{ kind, tally: counts, time: '', rate: '' }];
  });
  const count = (name: keyof Tally) => (row: { readonly tally: Tally }) => row.tally[name];
  return renderTable(
    {
      ...(tallyByKind !== null && { kind: ({ kind }: { readonly kind: string }) => kind }),
      '>read': count('read'),
      '>inserted': count('inserted'),
      '>updated': count('updated'),
      '>unchanged': count('unchanged'),
      ...(tally.removed > 0 && { '>removed': count('removed') }),
      '>superseded': count('superseded'),
      '>rejected': count('rejected'),
      '>time': ({ time }) => time,
      '>rows/s': ({ rate }) => rate,
    },
    [...kinds, all],
  );
}
