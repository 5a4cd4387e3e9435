import type { Compression, ExportFormat, FileDataset } from '../../domain/export.ts';
import type { AttemptFiles, StoredFileWriter } from './attempt-files.ts';
import type { RowBlock } from './row-blocks.ts';

export interface SplitOptions {
  readonly dataset: FileDataset;
  readonly format: ExportFormat;
  readonly compression: Compression;
  /** A file that has come to this length is the last to get a row; a packed one is somewhat longer. */
  readonly splitBytes: number;
  /** The beginning of every file. */
  readonly header: Buffer;
}

/** Rows into one file after another. There is always one, rows or not. */
export class SplitFiles implements DatasetSink {
  readonly takesValues = false;
  readonly #files: AttemptFiles;
  readonly #options: SplitOptions;
  #writer: StoredFileWriter | null = null;
  #rowsInFile = 0;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, options: SplitOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Stored so far. */
  get bytes(): number {
    return this.#finishedBytes + (this.#writer?.bytes ?? 0);
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (let row = 0; row < ends.length; ) {
      const writer = await this.#current();
      const room = this.#options.splitBytes - writer.bytes;
      const first = row;
      let end = start;
      while (row < ends.length && end - start < room) end = ends[row++] ?? bytes.length;
      await writer.write(bytes.subarray(start, end));
      this.#rowsInFile += row - first;
      start = end;
      if (writer.bytes >= this.#options.splitBytes) await this.#finish(writer);
    }
  }

  async end(): Promise<void> {
    if (this.#writer !== null || this.#finished === 0) await this.#finish(await this.#current());
  }

  async #current(): Promise<StoredFileWriter> {
    if (this.#writer !== null) return this.#writer;
    const writer = await this.#files.create(this.#options.compression, this.#options.splitBytes);
    this.#writer = writer;
    this.#rowsInFile = 0;
    if (this.#options.header.length > 0) await writer.write(this.#options.header);
    return writer;
  }

  async #finish(writer: StoredFileWriter): Promise<void> {
    const { dataset } = this.#options;
    const filename = filenameOf(this.#options, ++this.#finished);
    const { bytes } = await this.#files.finish(writer, { filename, dataset, rows: this.#rowsInFile });
    this.#finishedBytes += bytes;
    this.#writer = null;
  }
}

/** `users.ndjson.gz`, then `users-0002.ndjson.gz`. */
export function filenameOf(
  { dataset, format, compression }: Pick<SplitOptions, 'dataset' | 'format' | 'compression'>,
  number: number,
): string {
  const part = number === 1 ? '' : `-${String(number).padStart(4, '0')}`;
  return `${dataset}${part}.${format}${compression === 'gzip' ? '.gz' : ''}`;
}

export interface DatasetSink {
  /** It wants values, not text. */
  readonly takesValues: boolean;
  /** Stored so far. */
  readonly bytes: number;
  /** Resolves when more may be added. */
  add(block: RowBlock): Promise<void>;
  /** To be called once, after the last row. */
  end(): Promise<void>;
}
