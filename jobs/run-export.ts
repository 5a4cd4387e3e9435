import type { ExportContext } from '../src/export/context.ts';
import { type ExportWriter, runExport } from '../src/export/run-export.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function runExportJob(
  context: ExportContext,
  write: ExportWriter,
  stopping: AbortSignal,
): JobHandlers['run-export'] {
  return ({ exportId }) => runExport(context, exportId, write, stopping);
}
