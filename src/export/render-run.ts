import { datasets, type ExportFile } from '../domain/export.ts';
import { noRejects, type RunFacts, renderRun } from '../http/render.ts';
import type { ExportCounts } from '../http/run.ts';
import type { JobHistory } from '../tasks/job-store.ts';
import type { Export } from './store.ts';

/** The files may already have expired. */
type ExportFacts = Pick<Export, 'written'> &
  Pick<RunFacts<ExportCounts>, 'jobId' | 'type' | 'status' | 'cursor' | 'failure'>;

export function renderExportRun({ written, ...job }: ExportFacts, history: JobHistory) {
  // The document has its own order of files.
  const files = [...datasets, 'stream'].flatMap((dataset) =>
    written.filter((file) => file.dataset === dataset),
  );
  const rowsOf = (dataset: ExportFile['dataset']) =>
    files.reduce((sum, file) => sum + (file.dataset === dataset ? file.rows : 0), 0);
  const counts = {
    written: files.reduce((sum, { rows }) => sum + rows, 0),
    users: rowsOf('users'),
    companies: rowsOf('companies'),
    events: rowsOf('events'),
    stream: rowsOf('stream'),
  };
  return renderRun({ ...job, ...history, sources: [], files, counts, rejects: noRejects });
}
