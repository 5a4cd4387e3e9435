import { plural } from '../../base/wording.ts';
import type { LoadStatus } from '../../domain/load.ts';
import type { LatestUndo } from '../undo/undo.ts';
import type { OnFailureField, State } from './api.ts';

export interface Facts {
  readonly status: LoadStatus;
  readonly hasWritten: boolean;
  readonly undo: LatestUndo | null;
}

export function stateOf({ status, hasWritten, undo }: Facts): State {
  if (status === 'queued' || status === 'processing' || status === 'held') return 'ready';
  if (status === 'completed' || !hasWritten) return 'not_needed';
  switch (undo?.status) {
    // The record of an undo is kept at least as long as that of the load. If there is no such
    // record, the load was not undone.
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

export function renderOnFailure(facts: Facts): OnFailureField {
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
