import type { PropertyEntity } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import type { JudgeStage } from '../../ingest/records.ts';
import type { Database } from '../../postgres/database.ts';
import type { RecordCells } from './cells.ts';

/** Judges the records of a load before they become rows. Counts its findings in each chunk. */
export interface RecordStage extends JudgeStage {
  /**
   * Part of the key for digests. If it differs from that of an earlier load, no record counts as
   * unchanged.
   */
  readonly key: unknown;
  reset(): void;
  /**
   * Judges the properties of a record. `shape` specifies which of its cells are properties. May
   * change the cells, so that later steps see them as they will be stored. Does nothing if the
   * record has already been judged. Returns the reason for refusing the record, or `null`.
   */
  judgeCells(
    entity: PropertyEntity,
    cells: RecordCells,
    shape: Uint8Array,
    eventName: (() => string) | null,
  ): Reason | null;
  count(cells: RecordCells): void;
  /** Stores the counts of the chunk, in the transaction of the chunk. */
  keep(db: Database, loadId: number): Promise<void>;
}
