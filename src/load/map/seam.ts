import type { PropertyEntity } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import type { JudgeStage } from '../../ingest/judge-seam.ts';
import type { Database } from '../../postgres/database.ts';
import type { RecordCells } from './cells.ts';

/** Records of a load pass it before they are rows. It counts what it finds in those of one chunk. */
export interface RecordStage extends JudgeStage {
  /** Decides what becomes of a record, as JSON: with another key, none is known to be unchanged. */
  readonly key: unknown;
  /** A chunk begins. */
  reset(): void;
  /**
   * Judges the cells of a record that are properties by the `shape`, once: other passes over the same cells find them as they are to be
   * stored. Returns why the record is refused, or null.
   */
  judgeCells(
    entity: PropertyEntity,
    cells: RecordCells,
    shape: Uint8Array,
    eventName: (() => string) | null,
  ): Reason | null;
  /** The record became a row. */
  count(cells: RecordCells): void;
  /** Keeps the counts, in the transaction of the chunk. */
  keep(db: Database, loadId: number): Promise<void>;
}
