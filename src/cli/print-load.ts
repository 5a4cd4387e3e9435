import type { Load } from '../domain/load.ts';
import { formatBytes, formatCount } from './format-numbers.ts';
import { summarise } from './import/summary.ts';
import { printable } from './table.ts';
import type { Terminal } from './terminal.ts';

/** A load in full, for a person. */
export function printLoad(
  terminal: Terminal,
  load: Load,
  rejectsByCode: Readonly<Record<string, number>>,
): void {
  const say = (title: string, text: string): void => terminal.print(`${title.padEnd(10)}  ${text}`);
  say('job', load.jobId);
  say('status', terminal.style('bold', load.status) + (load.dryRun ? ' (dry run: nothing is written)' : ''));
  say(
    'file',
    `${printable(load.filename, 80)}, ${formatBytes(load.fileSize)}, ${formatCount(load.totalRows)} rows`,
  );
  say('what', `${load.type}, ${load.entity}`);
  say('accepted', load.acceptedAt.toISOString());
  if (load.endedAt !== null) say('ended', load.endedAt.toISOString());
  if (load.status === 'queued') say('waits for', `${load.queuePosition ?? 0} loads before it`);
  if (load.attempts > 1) say('attempts', String(load.attempts));
  if (load.duplicateOf !== null) say('same as', `job ${load.duplicateOf}`);
  if (load.failure !== null) say('failed', `${load.failure.message} [${load.failure.code}]`);
  if (load.lastError !== null) say('last error', load.lastError);
  terminal.print('');
  for (const line of summarise(load)) terminal.print(line);
  const codes = Object.entries(rejectsByCode);
  if (codes.length === 0) return;
  terminal.print('');
  for (const [code, count] of codes) say(formatCount(count).padStart(10), code);
  terminal.print(`The refused records: sluice jobs rejects ${load.jobId}`);
}
