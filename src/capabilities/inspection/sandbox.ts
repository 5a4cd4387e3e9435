/* Inspects an uploaded file in a sandbox. Commands inspect files in their own process instead. */

import { InputError, type Problem } from '../../base/errors.ts';
import { runTask } from '../../base/sandbox/sandboxes.ts';
import type { System } from '../../context.ts';
import type { ReceivedFile } from '../../load/receive/received-file.ts';
import type { RewriteSeam } from '../../load/receive/seam.ts';
import type { Stretch } from '../../load/receive/unpack.ts';
import { only } from '../../load/sandbox-tasks.ts';
import { type InspectionBase, type Look, type LookOptions, look, renderContent } from './inspect-file.ts';

interface LookInput {
  readonly received: ReceivedFile;
  readonly options: LookOptions;
}

/** An inspection as the sandbox sends it. Messages cannot contain class instances. */
interface Rendered extends Pick<RenderedInspection, 'json' | 'column_names'> {
  readonly problems: readonly [Problem, ...Problem[]] | null;
}

/**
 * An inspection is rendered in the sandbox, because rendering ten thousand columns takes half a
 * second.
 */
export interface RenderedInspection extends InspectionBase {
  /** JSON of the members that `renderContent` returns. */
  readonly json: Uint8Array;
}

export async function* lookAt(
  rewriter: RewriteSeam | null,
  { received, options }: LookInput,
  read: (stretch: Stretch) => Promise<Buffer>,
): AsyncGenerator<Rendered> {
  const store = { readRange: (_: unknown, start: number, end: number) => read([start, end]) };
  const inspection = await look(store, received, options, rewriter);
  const json = Buffer.from(JSON.stringify(renderContent(inspection)));
  yield { json, column_names: inspection.column_names, problems: inspection.problem?.problems ?? null };
}

export function lookIn({ sandboxes, rewriter }: System, owner: number): Look<RenderedInspection> {
  return async (store, received, options, signal) => {
    const ask = ([start, end]: Stretch) => store.readRange(received.ref, start, end);
    const work = { owner, isLong: false, input: { received, options }, ask, signal };
    const { problems, ...inspection } = await only(
      runTask(sandboxes, 'look', lookAt.bind(null, rewriter), work),
    );
    return { ...inspection, problem: problems === null ? null : new InputError(...problems) };
  };
}
