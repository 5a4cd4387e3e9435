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
  /**
   * Size of the stored file in bytes: unpacked, in UTF-8, and with arrays and Parquet converted to
   * NDJSON.
   */
  readonly storedBytes: number;
  /** Hash of the bytes that were sent, in hexadecimal digits. */
  readonly sha256: string;
  /**
   * Number of data records. If only the beginning of the file was received, the last record may be
   * incomplete.
   */
  readonly totalRows: number;
  readonly isWhole: boolean;
  /**
   * Chunks in file order. Together, they cover the whole file except blank lines, the header, and
   * lines that the options skip.
   */
  readonly chunks: readonly ChunkRange[];
  readonly chunkBytes: number;
  /**
   * Beginning of the text that was sent, if the stored file begins differently. Otherwise, `null`.
   */
  readonly head: Buffer | null;
}
