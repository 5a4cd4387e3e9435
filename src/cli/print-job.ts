/** Jobs as a person reads them. */
import { type Job, renderJob } from '../background-jobs/jobs.ts';
import type { Deletion } from '../domain/deletion.ts';
import type { Export, ExportFile, ExportRequest } from '../domain/export.ts';
import { countedKinds, type Load, type Tally } from '../domain/load.ts';
import type { CsvReadAs, ReadAs, SourceFormat } from '../domain/source.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../domain/wording.ts';
import { rowsPerSecond } from '../load/render-load.ts';
import type { Database } from '../postgres/database.ts';
import { readExportRequest } from '../postgres/stores/exports.ts';
import { countRejects } from '../postgres/stores/read-loads.ts';
import { columnsOf, formatTime, printable, renderTable } from './format.ts';
import type { Terminal } from './terminal.ts';

export const jobColumns = columnsOf('job', 'type', 'status', 'file', 'accepted', '>rows', '>rejected');

/** A line of the list. Rows of an export are those written, of a deletion the ids. */
export function jobCells(job: Job): string[] {
  const { job_id, type, status, filename, start_time, total_rows } = renderJob(job, '');
  const rejected = job.kind === 'load' ? formatCount(job.load.tally.rejected) : '';
  const accepted = formatTime(new Date(start_time));
  return [job_id, type, status, printable(filename, 36), accepted, formatCount(total_rows), rejected];
}

/** A job of any kind in full. */
export async function printJob(
  terminal: Terminal,
  context: { readonly db: Database },
  environmentId: number,
  job: Job,
): Promise<void> {
  if (job.kind === 'export')
    printExportJob(terminal, job.export, await readExportRequest(context.db, job.export.exportId));
  else if (job.kind === 'deletion') printDeletionJob(terminal, job.deletion);
  else printLoad(terminal, job.load, await countRejects(context, environmentId, job.jobId));
}

type Line = (title: string, text: string) => void;

function linesTo(terminal: Terminal): Line {
  return (title, text) => terminal.print(`${title.padEnd(10)}  ${text}`);
}

function printLoad(terminal: Terminal, load: Load, rejectsByCode: Readonly<Record<string, number>>): void {
  const line = linesTo(terminal);
  line('job', load.jobId);
  line('status', terminal.style('bold', load.status) + (load.dryRun ? ' (dry run: nothing is written)' : ''));
  const file = printable(load.filename, 80);
  line('file', `${file}, ${formatBytes(load.fileSize)}, ${plural(load.totalRows, 'row')}`);
  line('what', `${load.type}, ${load.entity}`);
  line('accepted', load.acceptedAt.toISOString());
  if (load.endedAt !== null) line('ended', load.endedAt.toISOString());
  if (load.status === 'queued') line('waits for', `${plural(load.queuePosition ?? 0, 'load')} before it`);
  if (load.attempts > 1) line('attempts', String(load.attempts));
  if (load.duplicateOf !== null) line('same as', `job ${load.duplicateOf}`);
  if (load.amends !== null) line('mends', `refused records of job ${load.amends}`);
  for (const { jobId, status } of load.amendments) line('mended by', `job ${jobId}, ${status}`);
  for (const text of describeReading(load)) line('read as', text);
  printErrors(line, load);
  terminal.print('');
  for (const row of summarise(load)) terminal.print(row);
  const codes = Object.entries(rejectsByCode);
  if (codes.length === 0) return;
  terminal.print('');
  for (const [code, count] of codes) line(formatCount(count).padStart(10), code);
  terminal.print(`The refused records: sluice jobs rejects ${load.jobId}`);
}

const formatWords: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'Parquet',
  avro: 'Avro',
  xlsx: 'Excel workbook',
};

/** How the file was read, in a line; then a line for each thing that a person should know. */
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
  const said = [`${delimiterWords[delimiter] ?? printable(delimiter, 20)} between cells`];
  if (quote !== '"') said.push(quote === '' ? 'no quotes' : `quotes ${quote}`);
  if (csv.escape === '\\') said.push('backslash before quotes');
  if (comment !== '') said.push(`no records in lines that start with ${printable(comment, 20)}`);
  if (nulls.length > 0) said.push(`empty where ${nulls.map((each) => printable(each, 40)).join(' or ')}`);
  if (ragged === 'pad') said.push('short records padded');
  return [...said, headerLine === null ? 'no header' : `header on line ${headerLine}`];
}

const countHeads = ['>read', '>inserted', '>updated', '>unchanged', '>superseded', '>rejected', '>amended'];

/** The counts of a load as a table, under its heads: in one line, and by kind of record where there are several. */
export function summarise(load: Load): string[] {
  const rate = rowsPerSecond(load, new Date());
  const ms = (load.endedAt?.getTime() ?? Date.now()) - load.acceptedAt.getTime();
  const speed = [formatDuration(ms / 1000), rate === null ? '–' : formatCount(rate)];
  const all = [...countCells(load.tally), ...speed];
  const { tallyByKind } = load;
  if (tallyByKind === null) return renderTable(columnsOf(...countHeads, '>time', '>rows/s'), [all]);
  const kinds = countedKinds.filter((kind) => tallyByKind[kind].read > 0);
  const rows = kinds.map((kind) => [kind, ...countCells(tallyByKind[kind]), '', '']);
  return renderTable(columnsOf('kind', ...countHeads, '>time', '>rows/s'), [...rows, ['all', ...all]]);
}

function countCells({ read, inserted, updated, unchanged, superseded, rejected, amended }: Tally): string[] {
  return [read, inserted, updated, unchanged, superseded, rejected, amended].map(formatCount);
}

function printExportJob(terminal: Terminal, found: Export, request: ExportRequest): void {
  const { status, rowsWritten, bytesWritten, progress, files, filesExpired } = found;
  const line = linesTo(terminal);
  line('job', found.jobId);
  const howFar = status === 'processing' ? `, ${Math.floor(progress * 100)} %` : '';
  line('status', terminal.style('bold', status) + howFar);
  line(
    'what',
    `export of ${request.datasets.join(', ')} as ${request.layout === 'stream' ? 'a stream in ' : ''}${request.format}`,
  );
  line('period', `${request.from ?? 'the beginning'} to ${request.to}`);
  line('written', `${plural(rowsWritten, 'row')}, ${formatBytes(bytesWritten)}`);
  printTimes(line, found.requestedAt, found);
  printErrors(line, found);
  if (filesExpired) line('files', 'expired');
  if (files.length === 0) return;
  terminal.print('');
  for (const row of tableOfFiles(files)) terminal.print(row);
}

export function tableOfFiles(files: readonly ExportFile[]): string[] {
  // The manifest has no rows.
  const rows = files.map(({ filename, dataset, rows, bytes }) => [
    filename,
    dataset === 'manifest' ? '' : formatCount(rows),
    formatBytes(bytes),
  ]);
  return renderTable(columnsOf('file', '>rows', '>size'), rows);
}

function printDeletionJob(terminal: Terminal, found: Deletion): void {
  const { entity, status, counts, removed, queuePosition } = found;
  const line = linesTo(terminal);
  line('job', found.jobId);
  line('status', terminal.style('bold', status));
  line('what', `deletion of ${formatCount(counts.requested)} ${entity}`);
  if (status === 'queued') line('waits for', `${plural(queuePosition ?? 0, 'job')} before it`);
  line('ids', `${formatCount(counts.deleted)} deleted, ${formatCount(counts.not_found)} not found`);
  const others = `${plural(removed.rejects, 'refused record')}, ${plural(removed.files, 'received file')}, files of ${plural(removed.exports, 'export')}`;
  line('removed', `${plural(removed.events, 'event')}, ${others}`);
  printTimes(line, found.acceptedAt, found);
  printErrors(line, found);
}

type Ending = Pick<Deletion, 'endedAt' | 'attempts'>;

function printTimes(line: Line, acceptedAt: Date, { endedAt, attempts }: Ending): void {
  line('accepted', acceptedAt.toISOString());
  if (endedAt !== null) line('ended', endedAt.toISOString());
  if (attempts > 1) line('attempts', String(attempts));
}

function printErrors(
  line: Line,
  { failure, lastError }: Pick<Load | Export | Deletion, 'failure' | 'lastError'>,
): void {
  if (failure !== null) line('failed', `${failure.message} [${failure.code}]`);
  if (lastError !== null) line('last error', lastError);
}
