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
   * When the stored part of a file reaches this size, in bytes, the rows continue in another file.
   * A compressed file can be slightly larger.
   */
  readonly splitBytes: number;
}

export interface DatasetSink {
  readonly takesValues: boolean;
  readonly bytes: number;
  /** Adds rows. Resolves when more rows may be added. */
  add(block: RowBlock): Promise<void>;
  /** Ends the last file. Must be called once, after the last row. */
  end(): Promise<void>;
}

/** Writes `users.ndjson.gz`, then `users-0002.ndjson.gz` and so on. Writes at least one file. */
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

/** Writes rows of text. Each file begins with the header. */
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

/**
 * Maximum number of rows, and maximum size, of a row group. A group is kept in memory, and encoding
 * it blocks the process.
 */
export const groupRows = 2_500;
const maxGroupBytes = 512 * 1024;

export interface FileRows {
  readonly dataset: FileDataset;
  readonly request: RowShape;
  /** The capability for which the files are written. Missing for the files of an export. */
  readonly owner?: FileOwner;
}

/**
 * Capability for which files are written outside an export. It defines additional columns, collects
 * ids and receives each file.
 */
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
  /** Result of `IdSink.bytes`. */
  readonly filter: Buffer;
  /**
   * Time of the first event, in microseconds since 1970. `lastMicros` is the time of the last
   * event.
   */
  readonly firstMicros: number;
  readonly lastMicros: number;
}

export interface GroupFile {
  /** Adds a row in the form in which COPY sent it, including its line break. */
  addRow(bytes: Buffer, start: number, end: number): void;
  /** Writes the added rows as a row group. Must be called after 1 to `groupRows` rows. */
  endGroup(): Promise<void>;
  /**
   * Ends the file. Must be called once, after the last group, even if the file has no groups.
   * Returns the facts to pass to `FileOwner.onFile`, or `null` if the file has no owner.
   */
  end(): Promise<FileFacts | null>;
}

export type GroupFileClass = new (rows: FileRows, stored: StoredFileWriter, groupRows: number) => GroupFile;

/**
 * Writes rows of `selectValues` to a format that consists of row groups. Such a format compresses
 * each group, so the file as a whole is not compressed.
 */
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
