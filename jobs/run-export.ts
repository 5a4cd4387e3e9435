import type { ExportContext } from '../src/export/context.ts';
import { type ExportWriter, runNextExport } from '../src/export/run-export.ts';
import type { JobHandlers } from '../src/queue/contract.ts';
import { Turns } from '../src/tasks/turns.ts';

/** The export that is next, whichever the job names. */
export function runExportJob(
  context: ExportContext,
  write: ExportWriter,
  stopping: AbortSignal,
): JobHandlers['run-export'] {
  const turns = new Turns();
  return () => runNextExport(context, turns, write, stopping);
}
