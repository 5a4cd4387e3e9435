import { acceptUndo, type UndoRequest } from '../../../../src/capabilities/undo/accept.ts';
import type { LoadContext } from '../../../../src/load/context.ts';
import type { Load } from '../../../../src/load/read-store.ts';
import { runJob, withoutQueue } from '../../../support/load-file.ts';

const byNobody = { idempotencyKey: null, requestId: null, origin: null };

/** Accepts an undo, which no worker touches. */
export function askToUndo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<string> {
  const whole = { plan: false, maxErrors: null, maxChanged: null, maxRemovedValues: null };
  return acceptUndo(withoutQueue(context), { ...whole, jobIds, ...request }, { environmentId, ...byNobody });
}

/** Undoes loads, in this process; returns the undo as it ended. */
export async function undo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<Load> {
  return runJob(context, environmentId, await askToUndo(context, environmentId, jobIds, request));
}
