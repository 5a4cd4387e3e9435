import type { PropertyField } from '../../domain/definitions.ts';
import type { Entity } from '../../domain/entity.ts';
import type { Compression, ExportFile, ExportFormat, FileDataset, RowShape } from '../../domain/export.ts';
import type { AttemptFiles, StoredFileWriter } from './attempt-files.ts';
import type { RowBlock } from './rows.ts';

interface FileOptions {
  readonly dataset: FileDataset;
  readonly format: ExportFormat;
  readonly compression: Compression;
  /**
   * Once a file has this stored size, the next rows go to another file. A compressed file can be
   * slightly larger.
   */
  readonly splitBytes: number;
}

export interface DatasetSink {
  readonly takesValues: boolean;
  readonly bytes: number;
  /** Resolves when more rows may be added. */
  add(block: RowBlock): Promise<void>;
  /** Completes the files. Must be called once, after the last row. */
  end(): Promise<void>;
}

/** Writes at least one file: `users.ndjson.gz`, then `users-0002.ndjson.gz` and so on. */
abstract class FileSeries {
  protected stored: StoredFileWriter | null = null;
  protected rowsInFile = 0;
  readonly #files: AttemptFiles;
  readonly #options: FileOptions;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, options: FileOptions) {
    this.#files = files;
    this.#options = options;
  }

  get bytes(): number {
    return this.#finishedBytes + (this.stored?.bytes ?? 0);
  }

  async end(): Promise<void> {
    if (this.stored !== null || this.#finished === 0) await this.finish(await this.current());
  }

  protected async current(): Promise<StoredFileWriter> {
    if (this.stored !== null) return this.stored;
    const { compression, splitBytes } = this.#options;
    const stored = await this.#files.create(compression, splitBytes);
    this.stored = stored;
    this.rowsInFile = 0;
    await this.begin(stored);
    return stored;
  }

  protected abstract begin(stored: StoredFileWriter): Promise<void>;

  protected async finish(stored: StoredFileWriter): Promise<ExportFile> {
    const { dataset, format, compression } = this.#options;
    const part = ++this.#finished === 1 ? '' : `-${String(this.#finished).padStart(4, '0')}`;
    const filename = `${dataset}${part}.${format}${compression === 'gzip' ? '.gz' : ''}`;
    const file = await this.#files.finish(stored, { filename, dataset, rows: this.rowsInFile });
    this.#finishedBytes += file.bytes;
    this.stored = null;
    return file;
  }

  protected async finishIfLong(stored: StoredFileWriter): Promise<void> {
    if (stored.bytes >= this.#options.splitBytes) await this.finish(stored);
  }
}

/** Writes rows of text to files. Each file begins with the header. */
export class SplitFiles extends FileSeries implements DatasetSink {
  readonly takesValues = false;
  readonly #header: Buffer;
  readonly #splitBytes: number;

  constructor(files: AttemptFiles, options: FileOptions & { readonly header: Buffer }) {
    super(files, options);
    this.#header = options.header;
    this.#splitBytes = options.splitBytes;
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    let row = 0;
    while (row < ends.length) {
      const stored = await this.current();
      const room = this.#splitBytes - stored.bytes;
      const first = row;
      let end = start;
      while (row < ends.length && end - start < room) end = ends[row++] ?? bytes.length;
      await stored.write(bytes.subarray(start, end));
      this.rowsInFile += row - first;
      start = end;
      await this.finishIfLong(stored);
    }
  }

  protected async begin(stored: StoredFileWriter): Promise<void> {
    if (this.#header.length > 0) await stored.write(this.#header);
  }
}

/** A row group is kept in memory, and encoding it blocks the process. */
export const groupRows = 2_500;
const maxGroupBytes = 512 * 1024;

export interface FileRows {
  readonly dataset: FileDataset;
  readonly request: RowShape;
  /** Capability that writes the files. Missing for the files of an export. */
  readonly owner?: FileOwner;
}

/** A capability that writes files outside an export. */
export interface FileOwner {
  readonly fields: readonly PropertyField[];
  openIds(): IdSink;
  onFile(file: ExportFile, facts: FileFacts): Promise<void>;
}

export interface IdSink {
  add(entity: Entity, bytes: Uint8Array, start?: number, end?: number): void;
  bytes(): Buffer;
}

export interface FileFacts {
  /** From `IdSink.bytes`. */
  readonly filter: Buffer;
  /** Times of the first and the last event, in microseconds since 1970. */
  readonly firstMicros: number;
  readonly lastMicros: number;
}

export interface GroupFile {
  /** Adds a row. It has the form that COPY writes, including the line break. */
  addRow(bytes: Buffer, start: number, end: number): void;
  /** Ends a row group. Must be called after 1 to `groupRows` rows. */
  endGroup(): Promise<void>;
  /**
   * Completes the file. Must be called once, after the last group, even if there are no groups.
   * Returns `null` if the file has no owner.
   */
  end(): Promise<FileFacts | null>;
}

export type GroupFileClass = new (rows: FileRows, stored: StoredFileWriter, groupRows: number) => GroupFile;

/** Writes files whose format compresses each row group, so the whole file is not compressed. */
export class GroupFiles extends FileSeries implements DatasetSink {
  readonly takesValues = true;
  readonly #open: (stored: StoredFileWriter) => GroupFile;
  readonly #groupBytes: number;
  readonly #owner: FileOwner | undefined;
  #rows = 0;
  #bytes = 0;
  #file: GroupFile | null = null;

  constructor(
    files: AttemptFiles,
    options: Omit<FileOptions, 'compression'> & FileRows,
    File: GroupFileClass,
  ) {
    super(files, { ...options, compression: 'none' });
    this.#open = (stored) => new File(options, stored, groupRows);
    this.#groupBytes = Math.min(maxGroupBytes, options.splitBytes);
    this.#owner = options.owner;
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (const end of ends) {
      if (this.#file === null) await this.current();
      this.#file?.addRow(bytes, start, end);
      this.#rows++;
      this.#bytes += end - start;
      start = end;
      if (this.#rows >= groupRows || this.#bytes >= this.#groupBytes) await this.#endGroup();
    }
  }

  override async end(): Promise<void> {
    if (this.#rows > 0) await this.#endGroup();
    await super.end();
  }

  protected async begin(stored: StoredFileWriter): Promise<void> {
    this.#file = this.#open(stored);
  }

  async #endGroup(): Promise<void> {
    await this.#file?.endGroup();
    this.rowsInFile += this.#rows;
    this.#rows = 0;
    this.#bytes = 0;
    await this.finishIfLong(await this.current());
  }

  protected override async finish(stored: StoredFileWriter): Promise<ExportFile> {
    const facts = (await this.#file?.end()) ?? null;
    this.#file = null;
    const file = await super.finish(stored);
    if (facts !== null) await this.#owner?.onFile(file, facts);
    return file;
  }
}
