import type { RowBlock } from './row-blocks.ts';

/** Where the rows of a dataset go: one file, or several. */
export interface DatasetSink {
  /** Stored so far. */
  readonly bytes: number;
  /** Resolves when more may be added. */
  add(block: RowBlock): Promise<void>;
  /** To be called once, after the last row. */
  end(): Promise<void>;
}
