import type { Job } from '../../background-jobs/find-jobs.ts';
import type { Deletion } from '../../domain/deletion.ts';
import type { Export, ExportRequest } from '../../domain/export.ts';
import { countRejects } from '../../load/inspect-load.ts';
import type { Database } from '../../postgres/database.ts';
import { readExportRequest } from '../../postgres/ledger/read-exports.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import { printLoad } from '../print-load.ts';
import { renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

/** A job of any kind in full, for a person. */
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

function printExportJob(terminal: Terminal, found: Export, request: ExportRequest): void {
  const { status, rowsWritten, bytesWritten, progress, files, filesExpired } = found;
  const say = sayTo(terminal);
  say('job', found.jobId);
  const howFar = status === 'processing' ? `, ${Math.floor(progress * 100)} %` : '';
  say('status', terminal.style('bold', status) + howFar);
  say('what', `export of ${request.datasets.join(', ')} as ${request.format}`);
  say('period', `${request.from ?? 'the beginning'} to ${request.to}`);
  say('written', `${formatCount(rowsWritten)} rows, ${formatBytes(bytesWritten)}`);
  sayTimes(say, found.requestedAt, found.endedAt, found.attempts);
  if (found.failure !== null) say('failed', `${found.failure.message} [${found.failure.code}]`);
  if (found.lastError !== null) say('last error', found.lastError);
  if (filesExpired) say('files', 'expired');
  if (files.length === 0) return;
  terminal.print('');
  const rows = files.map(({ filename, rows, bytes }) => [filename, formatCount(rows), formatBytes(bytes)]);
  const columns = [
    { title: 'file' },
    { title: 'rows', align: 'right' },
    { title: 'size', align: 'right' },
  ] as const;
  for (const line of renderTable(columns, rows)) terminal.print(line);
}

function printDeletionJob(terminal: Terminal, found: Deletion): void {
  const { entity, status, counts, removed, queuePosition } = found;
  const say = sayTo(terminal);
  say('job', found.jobId);
  say('status', terminal.style('bold', status));
  say('what', `deletion of ${formatCount(counts.requested)} ${entity}`);
  if (status === 'queued') say('waits for', `${queuePosition ?? 0} jobs before it`);
  say('ids', `${formatCount(counts.deleted)} deleted, ${formatCount(counts.not_found)} not found`);
  const others = `${formatCount(removed.rejects)} refused records, ${formatCount(removed.files)} received files, files of ${formatCount(removed.exports)} exports`;
  say('removed', `${formatCount(removed.events)} events, ${others}`);
  sayTimes(say, found.acceptedAt, found.endedAt, found.attempts);
  if (found.failure !== null) say('failed', `${found.failure.message} [${found.failure.code}]`);
  if (found.lastError !== null) say('last error', found.lastError);
}

type Say = (title: string, text: string) => void;

function sayTo(terminal: Terminal): Say {
  return (title, text) => terminal.print(`${title.padEnd(10)}  ${text}`);
}

function sayTimes(say: Say, acceptedAt: Date, endedAt: Date | null, attempts: number): void {
  say('accepted', acceptedAt.toISOString());
  if (endedAt !== null) say('ended', endedAt.toISOString());
  if (attempts > 1) say('attempts', String(attempts));
}
