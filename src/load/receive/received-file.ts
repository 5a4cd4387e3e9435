import type { ChunkRange, StoredFormat } from '../../domain/load.ts';
import type { ReadAs } from '../../domain/source.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { SniffedJson } from '../../formats/json-sniff.ts';

export interface ReceivedFile {
  readonly ref: FileRef;
  readonly format: StoredFormat;
  /** `null` unless the file is CSV. */
  readonly header: CsvHeader | null;
  readonly object: SniffedJson['object'];
  readonly readAs: ReadAs;
  readonly receivedBytes: number;
  /** Number of stored bytes: unpacked, in UTF-8, with arrays and Parquet as NDJSON. */
  readonly storedBytes: number;
  /** Hash of the sent bytes, in hexadecimal digits. */
  readonly sha256: string;
  /** Number of data records. The last may be cut if only a beginning was received. */
  readonly totalRows: number;
  readonly isWhole: boolean;
  /** Chunks in file order. They exclude only blank lines, the header and skipped parts. */
  readonly chunks: readonly ChunkRange[];
  readonly chunkBytes: number;
  /** Original beginning of the text. `null` if the stored file has it. */
  readonly head: Buffer | null;
}
