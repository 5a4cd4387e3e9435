import type { ChunkRange, StoredFormat } from '../../domain/load.ts';
import type { ReadAs } from '../../domain/source.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { SniffedJson } from '../../formats/json-sniff.ts';

export interface ReceivedFile {
  readonly ref: FileRef;
  readonly format: StoredFormat;
  /** The header of a CSV; null for other formats. */
  readonly header: CsvHeader | null;
  readonly object: SniffedJson['object'];
  readonly readAs: ReadAs;
  readonly receivedBytes: number;
  /** Bytes as stored: unpacked, in UTF-8, arrays and Parquet as NDJSON. */
  readonly storedBytes: number;
  /** Hex, of the bytes as sent. */
  readonly sha256: string;
  /** Data records in the file; of a beginning, the last may be cut. */
  readonly totalRows: number;
  readonly isWhole: boolean;
  /** In file order; only blank lines, the header, and what is passed over before and after, lie outside them. */
  readonly chunks: readonly ChunkRange[];
  /** The target length of a chunk. */
  readonly chunkBytes: number;
  /** The beginning of the text as it came; `null` if the stored file begins so. */
  readonly head: Buffer | null;
}
