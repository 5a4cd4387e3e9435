import type { ChunkRange, LoadOptions, StoredFormat } from '../../domain/load.ts';
import type { Preset, ReadAs, SourceOptions } from '../../domain/source.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { SniffedJson } from '../../formats/json-sniff.ts';
import type { Recognise } from '../map/foreign.ts';

export interface ReceivedFile {
  readonly ref: FileRef;
  readonly format: StoredFormat;
  /** Header of a CSV file. `null` for other formats. */
  readonly header: CsvHeader | null;
  readonly object: SniffedJson['object'];
  readonly readAs: ReadAs;
  readonly receivedBytes: number;
  /** Size of the stored file: unpacked, in UTF-8, arrays and Parquet converted to NDJSON. */
  readonly storedBytes: number;
  /** Hash of the sent bytes, in hexadecimal digits. */
  readonly sha256: string;
  /** Number of records. Unless the file `isWhole`, the last record may be incomplete. */
  readonly totalRows: number;
  readonly isWhole: boolean;
  /**
   * The chunks of the file, in file order. They contain all lines except blank lines, the header,
   * and lines that options skip.
   */
  readonly chunks: readonly ChunkRange[];
  readonly chunkBytes: number;
  /** Beginning of the text that was sent. `null` if the stored file begins with the same text. */
  readonly head: Buffer | null;
}

export interface RewriteSeam {
  readonly recognise: Recognise;
  /**
   * Checks whether the source options fit the preset. Is called for loads with and without a
   * preset.
   * @throws InputError
   */
  requireFitting(options: Pick<LoadOptions, 'preset' | 'source'>): void;
  /**
   * Yields the records as NDJSON in our format, some lines at a time. Each record keeps its row and
   * line. A record can also contain the profiles that the preset derived, or the reason why it is
   * refused.
   */
  rewrite(
    files: Pick<FileStore, 'readRange'>,
    received: ReceivedFile,
    preset: Preset,
    source: SourceOptions,
  ): AsyncIterable<Buffer>;
}
