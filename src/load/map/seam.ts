import type { PropertyEntity } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import type { JudgeStage } from '../../ingest/judge-seam.ts';
import type { Database } from '../../postgres/database.ts';
import type { RecordCells } from './cells.ts';

/** Judge of a load's records before they become rows, with a count of findings per chunk. */
export interface RecordStage extends JudgeStage {
  /** Part of the key of digests: if it changes, no record counts as unchanged. */
  readonly key: unknown;
  /** Begins a chunk. */
  reset(): void;
  /**
   * Judges the property cells of a record, the cells with roles of `shape`, once. Later passes find
   * the cells as stored. Returns why the record is refused, or `null`.
   */
  judgeCells(
    entity: PropertyEntity,
    cells: RecordCells,
    shape: Uint8Array,
    eventName: (() => string) | null,
  ): Reason | null;
  count(cells: RecordCells): void;
  /** Stores the counts, in the transaction of the chunk. */
  keep(db: Database, loadId: number): Promise<void>;
}
