import type { Config } from '../../config.ts';
import type { Export } from '../../domain/export.ts';
import { renderExportDetail } from '../../export/render-export.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import { linkBase } from '../link-base.ts';
import { renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const columns = [
  { title: 'file' },
  { title: 'rows', align: 'right' },
  { title: 'size', align: 'right' },
] as const;

/** `folder`: where the files are; null if there are none. */
export function printExport(
  terminal: Terminal,
  done: Export,
  folder: string | null,
  config: Config,
  json: boolean,
): void {
  const files = folder === null ? [] : done.files;
  if (json) {
    terminal.json({
      job: renderExportDetail(done, linkBase(config)),
      folder,
      files: files.map(({ filename, rows, bytes, sha256 }) => ({ filename, rows, bytes, sha256 })),
    });
    return;
  }
  if (folder === null) {
    terminal.note(`sluice: the export is ${done.status}; nothing was written. Job ${done.jobId}`);
    if (done.failure !== null) terminal.note(`Failed: ${done.failure.message} [${done.failure.code}]`);
    return;
  }
  terminal.print(`${folder}: ${terminal.style('green', 'complete and verified')}  job ${done.jobId}`);
  const rows = files.map(({ filename, rows: count, bytes }) => [
    filename,
    formatCount(count),
    formatBytes(bytes),
  ]);
  for (const line of renderTable(columns, rows)) terminal.print(`  ${line}`);
}
