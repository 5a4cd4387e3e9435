/** Prints jobs as a person reads them. */
import type { Job } from '../background-jobs/jobs.ts';
import type { Deletion } from '../domain/deletion.ts';
import type { Export, ExportFile, ExportRequest } from '../domain/export.ts';
import { countedKinds, type Load, type Tally } from '../domain/load.ts';
import type { CsvReadAs, ReadAs, SourceFormat } from '../domain/source.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../domain/wording.ts';
import { rowsPerSecond } from '../load/render-load.ts';
import type { Database } from '../postgres/database.ts';
import { readExportRequest } from '../postgres/stores/exports.ts';
import { countRejects } from '../postgres/stores/read-loads.ts';
import { printable, printFields, renderTable, type Terminal } from './terminal.ts';

/** Prints a job of any kind in full. */
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

function printLoad(terminal: Terminal, load: Load, rejectsByCode: Readonly<Record<string, number>>): void {
  const { jobId, status, dryRun, filename, fileSize, totalRows, type, entity } = load;
  const { acceptedAt, duplicateOf, amends, amendments } = load;
  printFields(terminal, {
    job: jobId,
    status: terminal.style('bold', status) + (dryRun ? ' (dry run: nothing is written)' : ''),
    file: `${printable(filename, 80)}, ${formatBytes(fileSize)}, ${plural(totalRows, 'row')}`,
    what: `${type}, ${entity}`,
    ...describeTimes(load, acceptedAt, 'load'),
    'same as': duplicateOf && `job ${duplicateOf}`,
    mends: amends && `refused records of job ${amends}`,
  });
  for (const { jobId: id, status } of amendments)
    printFields(terminal, { 'mended by': `job ${id}, ${status}` });
  for (const text of describeReading(load)) printFields(terminal, { 'read as': text });
  printFields(terminal, describeErrors(load));
  terminal.print('');
  for (const row of summarise(load)) terminal.print(row);
  const codes = Object.entries(rejectsByCode);
  if (codes.length === 0) return;
  terminal.print('');
  for (const [code, count] of codes) printFields(terminal, { [formatCount(count).padStart(10)]: code });
  terminal.print(`The refused records: sluice jobs rejects ${jobId}`);
}

const formatWords: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'Parquet',
  avro: 'Avro',
  xlsx: 'Excel workbook',
};

/** Returns a line that says how the file was read, then a line for each thing that a person should know. */
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

/** Returns the counts of a load as a table: one line, and one for each kind of record where there are several. */
export function summarise(load: Load): string[] {
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
      '>superseded': count('superseded'),
      '>rejected': count('rejected'),
      '>amended': count('amended'),
      '>time': ({ time }) => time,
      '>rows/s': ({ rate }) => rate,
    },
    [...kinds, all],
  );
}

function printExportJob(terminal: Terminal, found: Export, request: ExportRequest): void {
  const { jobId, status, rowsWritten, bytesWritten, progress, files, filesExpired, requestedAt } = found;
  const { datasets, layout, format, from, to } = request;
  printFields(terminal, {
    job: jobId,
    status:
      terminal.style('bold', status) + (status === 'processing' ? `, ${Math.floor(progress * 100)} %` : ''),
    what: `export of ${datasets.join(', ')} as ${layout === 'stream' ? 'a stream in ' : ''}${format}`,
    period: `${from ?? 'the beginning'} to ${to}`,
    written: `${plural(rowsWritten, 'row')}, ${formatBytes(bytesWritten)}`,
    ...describeTimes(found, requestedAt),
    ...describeErrors(found),
    files: filesExpired && 'expired',
  });
  if (files.length === 0) return;
  terminal.print('');
  for (const row of tableOfFiles(files)) terminal.print(row);
}

export function tableOfFiles(files: readonly ExportFile[]): string[] {
  return renderTable(
    {
      file: ({ filename }) => filename,
      '>rows': ({ dataset, rows }) => (dataset === 'manifest' ? '' : rows),
      '>size': ({ bytes }) => formatBytes(bytes),
    },
    files,
  );
}

function printDeletionJob(terminal: Terminal, found: Deletion): void {
  const { jobId, entity, status, counts, removed, acceptedAt } = found;
  const others = `${plural(removed.rejects, 'refused record')}, ${plural(removed.files, 'received file')}, files of ${plural(removed.exports, 'export')}`;
  printFields(terminal, {
    job: jobId,
    status: terminal.style('bold', status),
    what: `deletion of ${formatCount(counts.requested)} ${entity}`,
    ...describeTimes(found, acceptedAt, 'job'),
    ids: `${formatCount(counts.deleted)} deleted, ${formatCount(counts.not_found)} not found`,
    removed: `${plural(removed.events, 'event')}, ${others}`,
    ...describeErrors(found),
  });
}

type Timed = Pick<Load, 'endedAt' | 'attempts' | 'status'> & { readonly queuePosition?: number | null };

/** `before` names what stands before it in the queue. */
function describeTimes({ endedAt, attempts, status, queuePosition }: Timed, accepted: Date, before?: string) {
  return {
    accepted,
    ended: endedAt,
    'waits for':
      status === 'queued' && before !== undefined && `${plural(queuePosition ?? 0, before)} before it`,
    attempts: attempts > 1 && String(attempts),
  };
}

function describeErrors({ failure, lastError }: Pick<Load | Export | Deletion, 'failure' | 'lastError'>) {
  return { failed: failure && `${failure.message} [${failure.code}]`, 'last error': lastError };
}
