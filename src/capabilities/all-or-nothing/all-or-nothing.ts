/*
 * All or nothing: a load with `on_failure=undo` is undone if it fails or is cancelled. The undo is
 * queued and started in the transaction that ends the load, so it precedes the environment's next
 * job. If the undo fails, the next job starts, the load reports the failure, and the undo can be
 * retried.
 */
import { inputError } from '../../base/errors.ts';
import { named, say } from '../../base/sentence.ts';
import type { Capability } from '../../capability.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { StopContext } from '../../load/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { canUndo, undoStoppedLoad } from '../undo/undo.ts';
import { onFailureField } from './api.ts';
import { onFailureOptions } from './options.ts';
import { type Facts, renderOnFailure, stateOf } from './outcome.ts';
import { facts, hasWritten } from './store.ts';

/** @throws InputError `invalid_field` if changes are not logged */
async function requireLog(db: Database, _options: LoadOptions): Promise<void> {
  if (await canUndo(db)) return;
  const message = say`${named('on_failure', 'undo')} needs the log of changes: set CHANGES_DAYS above 0`;
  throw inputError('invalid_field', message, 'on_failure');
}

async function undoWritten(context: StopContext, loadId: number) {
  return (await hasWritten(context.db, loadId)) ? undoStoppedLoad(context, loadId) : [];
}

export const allOrNothing: Capability = {
  name: 'all-or-nothing',
  needs: ['undo'],
  loads: {
    ...onFailureOptions,
    fields: [
      {
        name: 'on_failure',
        schema: onFailureField,
        absent: null,
        isOf: ({ source }) => source['onFailure'] !== undefined,
        select: facts,
        render: (_, value) => renderOnFailure(value as Facts),
        isOpen: (value) => stateOf(value as Facts) === 'undoing',
      },
    ],
    hooks: { option: 'on_failure', accept: requireLog, stopped: undoWritten },
  },
};
