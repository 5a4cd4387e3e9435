/*
 * All or nothing: a load with `on_failure=undo` is undone if it fails or is cancelled. The undo is
 * queued and started in the transaction that ends the load, so it precedes the environment's next
 * job. If the undo fails, the next job starts, the load reports the failure, and the undo can be
 * retried.
 */
import { inputError } from '../../base/errors.ts';
import { named, say } from '../../base/sentence.ts';
import { plural } from '../../base/wording.ts';
import type { Capability } from '../../capability.ts';
import type { StopContext } from '../../load/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { canUndo, undoStoppedLoad } from '../undo/undo.ts';
import { type OnFailureField, onFailureField, type State } from './api.ts';
import { type Facts, facts, hasWritten } from './store.ts';

/** @throws InputError `invalid_field` if changes are not logged */
async function requireLog(db: Database): Promise<void> {
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
    options: {
      on_failure: {
        type: 'string',
        argument: 'action',
        description:
          'undoes what the load wrote if it fails or is cancelled, before the next job of the environment starts. Values that others changed since stay',
        choices: ['undo'],
        rule: 'must be undo. Without it, a failed load keeps what it wrote',
        examples: ['undo'],
        read: (text) => (text === 'undo' ? text : undefined),
      },
    },
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

function stateOf({ status, hasWritten, undo }: Facts): State {
  if (status === 'queued' || status === 'processing' || status === 'held') return 'ready';
  if (status === 'completed' || !hasWritten) return 'not_needed';
  switch (undo?.status) {
    // The record of an undo is kept at least as long as that of the load. If there is no record of
    // an undo, the load was not undone.
    case undefined:
    case 'failed':
      return 'undo_failed';
    case 'cancelled':
      return 'undo_cancelled';
    case 'completed':
      return 'undone';
    default:
      return 'undoing';
  }
}

function renderOnFailure(facts: Facts): OnFailureField {
  const state = stateOf(facts);
  const undo = state === 'ready' || state === 'not_needed' ? null : facts.undo;
  return { action: 'undo', state, job_id: undo?.jobId ?? null, summary: describe(state, facts) };
}

function describe(state: State, { status, undo }: Facts): string | null {
  const job = `job ${undo?.jobId}`;
  const retry = `Retry ${job} to undo the rest`;
  switch (state) {
    case 'ready':
      return null;
    case 'not_needed':
      return status === 'completed' ? null : 'the load wrote nothing, so there is nothing to undo';
    case 'undoing':
      return `the load is being undone by ${job}`;
    case 'undone':
      return `the load is undone by ${job}${exceptFor(undo?.kept ?? 0)}`;
    case 'undo_failed':
      return `the undo of the load failed, and a part of the load remains: ${undo?.failure}. ${retry}`;
    case 'undo_cancelled':
      return `the undo of the load was cancelled, and a part of the load remains. ${retry}`;
  }
}

function exceptFor(kept: number): string {
  return kept === 0 ? '' : `, except for ${plural(kept, 'profile')} that others changed since`;
}
