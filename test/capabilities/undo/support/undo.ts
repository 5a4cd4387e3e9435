import { acceptUndo, type UndoRequest } from '../../../../src/capabilities/undo/accept.ts';
import type { LoadContext } from '../../../../src/load/context.ts';
import type { Load } from '../../../../src/load/read-store.ts';
import { runJob, withoutQueue } from '../../../support/files/load-file.ts';

const withoutCaller = { idempotencyKey: null, requestId: null, origin: null };

export function askToUndo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<string> {
  const bounds = { plan: false, maxErrors: null, maxChanged: null, maxRemovedValues: null };
  return acceptUndo(
    withoutQueue(context),
    { ...bounds, jobIds, ...request },
    { environmentId, ...withoutCaller },
  );
}

export async function undo(
  context: LoadContext,
  environmentId: number,
  jobIds: readonly string[],
  request: Partial<UndoRequest> = {},
): Promise<Load> {
  return runJob(context, environmentId, await askToUndo(context, environmentId, jobIds, request));
}
