/* Inspects an uploaded file in a sandbox. Commands inspect files in their own process instead. */

import { InputError, type Problem } from '../../base/errors.ts';
import { runTask } from '../../base/sandbox/sandboxes.ts';
import type { System } from '../../context.ts';
import type { ReceivedFile, RewriteSeam } from '../../load/receive/received-file.ts';
import type { Stretch } from '../../load/receive/unpack.ts';
import { only } from '../../load/sandbox-tasks.ts';
import {
  type InspectionBase,
  type Inspector,
  type InspectorOptions,
  inspectReceived,
  renderContent,
} from './inspect-file.ts';

interface InspectorInput {
  readonly received: ReceivedFile;
  readonly options: InspectorOptions;
}

/** Messages cannot contain class instances, so an error is sent as its problems. */
interface Rendered extends Pick<RenderedInspection, 'json' | 'column_names'> {
  readonly problems: readonly [Problem, ...Problem[]] | null;
}

/** The sandbox renders the result, because rendering ten thousand columns takes half a second. */
export interface RenderedInspection extends InspectionBase {
  /** JSON of the members that `renderContent` returns. */
  readonly json: Uint8Array;
}

export async function* inspectInSandbox(
  rewriter: RewriteSeam | null,
  { received, options }: InspectorInput,
  read: (stretch: Stretch) => Promise<Buffer>,
): AsyncGenerator<Rendered> {
  const store = { readRange: (_: unknown, start: number, end: number) => read([start, end]) };
  const inspection = await inspectReceived(store, received, options, rewriter);
  const json = Buffer.from(JSON.stringify(renderContent(inspection)));
  yield { json, column_names: inspection.column_names, problems: inspection.problem?.problems ?? null };
}

export function sandboxInspector(
  { sandboxes, rewriter }: System,
  owner: number,
): Inspector<RenderedInspection> {
  return async (store, received, options, signal) => {
    const ask = ([start, end]: Stretch) => store.readRange(received.ref, start, end);
    const work = { owner, isLong: false, input: { received, options }, ask, signal };
    const { problems, ...inspection } = await only(
      runTask(sandboxes, 'inspect', inspectInSandbox.bind(null, rewriter), work),
    );
    return { ...inspection, problem: problems === null ? null : new InputError(...problems) };
  };
}
