import type { Compression, ExportFormat, FileDataset } from '../../domain/export.ts';
import type { AttemptFiles, StoredFileWriter } from './attempt-files.ts';
import type { RowBlock } from './row-blocks.ts';

interface SplitOptions {
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
function filenameOf(
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

/** Held in memory until it is complete, and encoding it holds up everything else in the process. */
export const groupRows = 2_500;
const maxGroupBytes = 512 * 1024;

/** A file of groups of rows: row groups of Parquet, blocks of Avro. */
export interface GroupFile {
  /** A row as COPY sent it, line end and all. */
  addRow(bytes: Buffer, start: number, end: number): void;
  /** After at most `groupRows` rows, and at least one. */
  endGroup(): Promise<void>;
  /** To be called once, after the last group; there may be none. */
  end(): Promise<void>;
}

export type GroupFileClass = new (
  dataset: FileDataset,
  stored: StoredFileWriter,
  groupRows: number,
) => GroupFile;

interface GroupOptions {
  readonly format: ExportFormat;
  readonly file: GroupFileClass;
  readonly dataset: FileDataset;
  readonly splitBytes: number;
}

interface OpenFile {
  readonly stored: StoredFileWriter;
  readonly file: GroupFile;
  rows: number;
}

/** Rows (as `selectValues` gives them) into groups, and those into one file after another. */
export class GroupFiles implements DatasetSink {
  readonly takesValues = true;
  readonly #files: AttemptFiles;
  readonly #options: GroupOptions;
  /** Before it is encoded. */
  readonly #groupBytes: number;
  #rows = 0;
  #bytes = 0;
  #file: OpenFile | null = null;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, options: GroupOptions) {
    this.#files = files;
    this.#options = options;
    this.#groupBytes = Math.min(maxGroupBytes, options.splitBytes);
  }

  get bytes(): number {
    return this.#finishedBytes + (this.#file?.stored.bytes ?? 0);
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (const end of ends) {
      const { file } = this.#file ?? (await this.#current());
      file.addRow(bytes, start, end);
      this.#rows++;
      this.#bytes += end - start;
      start = end;
      if (this.#rows === groupRows || this.#bytes >= this.#groupBytes) await this.#endGroup();
    }
  }

  async end(): Promise<void> {
    if (this.#rows > 0) await this.#endGroup();
    if (this.#file !== null || this.#finished === 0) await this.#finish(await this.#current());
  }

  async #endGroup(): Promise<void> {
    const open = await this.#current();
    await open.file.endGroup();
    open.rows += this.#rows;
    this.#rows = 0;
    this.#bytes = 0;
    if (open.stored.bytes >= this.#options.splitBytes) await this.#finish(open);
  }

  async #current(): Promise<OpenFile> {
    if (this.#file !== null) return this.#file;
    const stored = await this.#files.create('none');
    const file = new this.#options.file(this.#options.dataset, stored, groupRows);
    this.#file = { stored, file, rows: 0 };
    return this.#file;
  }

  async #finish({ stored, file, rows }: OpenFile): Promise<void> {
    await file.end();
    const { dataset, format } = this.#options;
    const filename = filenameOf({ dataset, format, compression: 'none' }, ++this.#finished);
    const { bytes } = await this.#files.finish(stored, { filename, dataset, rows });
    this.#finishedBytes += bytes;
    this.#file = null;
  }
}
