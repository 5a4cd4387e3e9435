import { exportJob } from '../../jobs/export.ts';
import type { System } from '../../src/context.ts';
import type { ExportContext, ExportWriter } from '../../src/export/context.ts';
import { requireExport } from '../../src/export/inspect-exports.ts';
import { requestExport } from '../../src/export/request-export.ts';
import type { Export } from '../../src/export/store.ts';
import { writeExport } from '../../src/export/write/write-export.ts';
import { runTaskOf } from './load-file.ts';

export interface ManualExport {
  readonly exportId: number;
  readonly jobId: string;
  look(): Promise<Export>;
}

/** An export that no worker touches. */
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

/** Does an export, if it has not ended: claims its task, even where another would leave it alone. */
export async function runExportTask(
  context: System,
  exportId: number,
  write: ExportWriter = writeExport,
  stopping: AbortSignal = new AbortController().signal,
): Promise<void> {
  const signals = { stopping, deadline: new AbortController().signal };
  await runTaskOf({ ...context, writeExport: write }, exportJob, exportId, 0, signals);
}

interface Gate {
  readonly write: ExportWriter;
  /** Resolves once a worker stands at the gate, with one file written and another begun. */
  readonly arrived: Promise<AbortSignal>;
  open(): void;
}

/** Files that a dead process would have open: held, so that Node does not close and lament them. */
const heldOpen: unknown[] = [];

/** A writer that stops in the middle, deaf to its signal if it is told so: a paused or dead process. */
export function gatedWriter(then: ExportWriter, options: { readonly deaf: boolean }): Gate {
  let arrive: (signal: AbortSignal) => void = () => undefined;
  let open: () => void = () => undefined;
  const arrived = new Promise<AbortSignal>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    arrived,
    open: () => open(),
    write: async (context, given) => {
      const done = await context.files.create();
      await done.write(Buffer.from('done'));
      await done.commit();
      const begun = await context.files.create();
      await begun.write(Buffer.from('begun'));
      heldOpen.push(begun);
      arrive(given.signal);
      const stopped = new Promise<void>((resolve) => given.signal.addEventListener('abort', () => resolve()));
      await (options.deaf ? opened : Promise.race([opened, stopped]));
      if (!options.deaf) given.signal.throwIfAborted();
      return then(context, given);
    },
  };
}
