import { sql } from 'kysely';
import type { LoadStatus } from '../../domain/load.ts';
import { type Database, hasRows } from '../../postgres/database.ts';
import { type LatestUndo, lastUndo } from '../undo/undo.ts';

export interface Facts {
  readonly status: LoadStatus;
  readonly hasWritten: boolean;
  readonly undo: LatestUndo | null;
}

/**
 * True if the load may have written records. A dry run writes nothing. If the load will start over,
 * its counts come from an earlier pass, so they are ignored.
 */
const isWritten = sql<boolean>`(
  not loads.dry_run and not loads.begins_anew and loads.rows_read > loads.rows_rejected
)`;

export function hasWritten(db: Database, loadId: number): Promise<boolean> {
  return hasRows(db)`select 1 from loads where load_id = ${loadId} and ${isWritten}`;
}

export const facts = sql<Facts>`json_build_object(
  'status', loads.status, 'hasWritten', ${isWritten}, 'undo', ${lastUndo}
)`;
