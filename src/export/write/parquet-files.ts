import type { Dataset } from '../../domain/export.ts';
import type { AttemptFiles } from './attempt-files.ts';
import type { DatasetSink } from './dataset-sink.ts';
import { type ParquetColumn, parquetColumns } from './parquet-columns.ts';
import { type Columns, ParquetFile } from './parquet-file.ts';
import type { RowBlock } from './row-blocks.ts';
import { filenameOf } from './split-files.ts';
import type { StoredFileWriter } from './stored-file.ts';

/** A row group is held in memory until it is complete, and encoding it holds up everything else in the process. */
const groupRows = 2_500;
const maxGroupBytes = 512 * 1024;

interface OpenFile {
  readonly stored: StoredFileWriter;
  readonly parquet: ParquetFile;
  rows: number;
}

/** Rows (as `selectForParquet` gives them) into row groups, and those into one file after another. */
export class ParquetFiles implements DatasetSink {
  readonly #files: AttemptFiles;
  readonly #dataset: Dataset;
  readonly #splitBytes: number;
  /** Before it is encoded. */
  readonly #groupBytes: number;
  readonly #columns: readonly ParquetColumn[];
  #group: Columns;
  #rows = 0;
  #bytes = 0;
  #file: OpenFile | null = null;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, dataset: Dataset, splitBytes: number) {
    this.#files = files;
    this.#dataset = dataset;
    this.#splitBytes = splitBytes;
    this.#groupBytes = Math.min(maxGroupBytes, splitBytes);
    this.#columns = parquetColumns(dataset);
    this.#group = this.#columns.map(() => []);
  }

  get bytes(): number {
    return this.#finishedBytes + (this.#file?.stored.bytes ?? 0);
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (const end of ends) {
      this.#addRow(bytes.toString('utf8', start, end - 1));
      this.#bytes += end - start;
      start = end;
      if (this.#rows === groupRows || this.#bytes >= this.#groupBytes) await this.#endGroup();
    }
  }

  async end(): Promise<void> {
    if (this.#rows > 0) await this.#endGroup();
    if (this.#file !== null || this.#finished === 0) await this.#finish(await this.#current());
  }

  #addRow(line: string): void {
    const values = line.split('\u0002');
    for (const [index, column] of this.#columns.entries()) {
      this.#group[index]?.push(parquetValue(column, values[index] ?? ''));
    }
    this.#rows++;
  }

  async #endGroup(): Promise<void> {
    const file = await this.#current();
    await file.parquet.addGroup(this.#group, this.#rows);
    file.rows += this.#rows;
    this.#group = this.#columns.map(() => []);
    this.#rows = 0;
    this.#bytes = 0;
    if (file.stored.bytes >= this.#splitBytes) await this.#finish(file);
  }

  async #current(): Promise<OpenFile> {
    if (this.#file !== null) return this.#file;
    const stored = await this.#files.create('none');
    this.#file = { stored, parquet: new ParquetFile(this.#columns, stored), rows: 0 };
    return this.#file;
  }

  async #finish({ stored, parquet, rows }: OpenFile): Promise<void> {
    await parquet.end();
    const dataset = this.#dataset;
    const filename = filenameOf({ dataset, format: 'parquet', compression: 'none' }, ++this.#finished);
    const { bytes } = await this.#files.finish(stored, { filename, dataset, rows });
    this.#finishedBytes += bytes;
    this.#file = null;
  }
}

/** Nothing at all is a null: even an empty text comes with its quotes. */
function parquetValue({ kind }: ParquetColumn, value: string): string | bigint | null {
  if (value === '') return null;
  if (kind === 'instant') return BigInt(value);
  return kind === 'json' ? value : (JSON.parse(value) as string);
}
