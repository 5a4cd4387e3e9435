import { exportJob } from '../../../jobs/kinds.ts';
import type { System } from '../../../src/context.ts';
import type { ExportContext, ExportWriter } from '../../../src/export/context.ts';
import { requireExport } from '../../../src/export/inspect-exports.ts';
import { requestExport } from '../../../src/export/request-export.ts';
import type { Export } from '../../../src/export/store.ts';
import { writeExport } from '../../../src/export/write/write-export.ts';
import { runTaskOf } from '../files/load-file.ts';
import { closedGate, type Gate } from './gate.ts';

export interface ManualExport {
  readonly exportId: number;
  readonly jobId: string;
  look(): Promise<Export>;
}

/** Accepts an export that only the test runs. */
export async function acceptExport(
  context: ExportContext,
  environmentId: number,
  body: Readonly<Record<string, unknown>> = {},
): Promise<ManualExport> {
  const jobId = await requestExport(
    { ...context, queue: { notify: async () => undefined } },
    environmentId,
    body,
  );
  const look = () => requireExport(context, environmentId, jobId);
  return { jobId, exportId: (await look()).exportId, look };
}

/** Runs an export unless it has ended, even if its task is not due yet. */
export async function runExportTask(
  context: System,
  exportId: number,
  write: ExportWriter = writeExport,
  stopping: AbortSignal = new AbortController().signal,
): Promise<void> {
  const signals = { stopping, deadline: new AbortController().signal };
  await runTaskOf({ ...context, writeExport: write }, exportJob, exportId, 0, signals);
}

interface GatedWriter extends Pick<Gate<AbortSignal>, 'arrived' | 'open'> {
  readonly write: ExportWriter;
}

/**
 * Keeps references to the unfinished files of processes that a test treats as dead. Otherwise, Node
 * would close these files with a warning.
 */
const heldOpen: unknown[] = [];

/**
 * Returns a writer that stores one complete and one unfinished file, and then waits at a gate, as
 * if its process were paused. A deaf writer also ignores its stop signal, as if its process were
 * dead.
 */
export function gatedWriter(then: ExportWriter, options: { readonly deaf: boolean }): GatedWriter {
  const { arrived, pass, open } = closedGate<AbortSignal>();
  return {
    arrived,
    open,
    write: async (context, exportOptions) => {
      const complete = await context.files.create();
      await complete.write(Buffer.from('done'));
      await complete.commit();
      const unfinished = await context.files.create();
      await unfinished.write(Buffer.from('begun'));
      heldOpen.push(unfinished);
      const { signal } = exportOptions;
      const opened = pass(signal);
      const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      await (options.deaf ? opened : Promise.race([opened, stopped]));
      if (!options.deaf) signal.throwIfAborted();
      return then(context, exportOptions);
    },
  };
}
