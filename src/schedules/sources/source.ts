import type { ReceiveHints } from '../../load/receive/receive.ts';

/** Where a load comes from, open for one run. */
export interface Source {
  /** What there is to load now, in the order in which it is to be loaded. @throws SourceFailure */
  list(signal: AbortSignal): Promise<readonly SourceItem[]>;
  close(): Promise<void>;
}

/** A file, an object, a page, the rows of a query. */
export interface SourceItem {
  /** Tells it from the other items; holds no secret. */
  readonly key: string;
  /** As the job is to be called. */
  readonly filename: string;
  /** Another one means other content; null: not known before it is opened. */
  readonly version: string | null;
  /** `known`: the version that was loaded last. @throws SourceFailure */
  open(known: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Null: nothing tells whether it will have changed. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  /** Throws if what was read is no whole item. Called when all has been read. */
  check(): Promise<void>;
  /** Whether or not it was read to its end. */
  close(): Promise<void>;
}
