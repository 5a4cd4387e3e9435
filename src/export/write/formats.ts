// The writers of exported files: one for each format in `src/domain/export.ts`.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { READ_BYTES } from '../../base/limits.ts';
import {
  columnsOf,
  type Dataset,
  type ExportFormat,
  type ExportRequest,
  type FileDataset,
} from '../../domain/export.ts';
import { gunzip } from '../../formats/decompress.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import type { CopyFormat } from '../../postgres/copy-out.ts';
import type { Database } from '../../postgres/database.ts';
import type { Filter } from '../filter.ts';
import type { AttemptFiles } from './attempt-files.ts';
import { csvWriter, planCsv, streamCsvHeader } from './csv.ts';
import { type DatasetSelect, selectValues } from './page.ts';
import { ParquetFile } from './parquet.ts';
import { csvText, ndjsonText, ndjsonWriter, type RowBlock, type RowText } from './rows.ts';
import { type DatasetSink, type FileOwner, GroupFiles, SplitFiles } from './split-files.ts';

interface SinkOptions {
  readonly dataset: FileDataset;
  readonly header: Buffer;
  readonly request: ExportRequest;
  readonly splitBytes: number;
  readonly owner?: FileOwner;
}

export interface FormatWriter {
  /**
   * Format in which COPY sends rows. `text.findEnds` must also find the row ends of this format.
   */
  readonly copied: CopyFormat;
  selectDataset(db: Database, dataset: Dataset, filter: Filter): Promise<DatasetSelect>;
  /** Converts values to text. Used for every stream, and if `copied` is `values`. */
  toText(dataset: FileDataset, request: ExportRequest): (block: RowBlock) => RowBlock;
  streamHeader(request: ExportRequest): Buffer;
  /** Rows are counted and hashed in this format. */
  readonly text: RowText;
  createSink(files: AttemptFiles, options: SinkOptions): DatasetSink;
  /** Yields the rows of a written file in the format `text`. */
  readBack(path: string): AsyncIterable<Buffer>;
}

const noHeader = Buffer.alloc(0);

const csv: FormatWriter = {
  copied: 'csv',
  selectDataset: planCsv,
  toText: csvWriter,
  streamHeader: streamCsvHeader,
  text: csvText,
  createSink: splitInto('csv'),
  readBack: readPlain,
};

/**
 * NDJSON and Parquet. COPY sends separate values for both formats. The content hash is computed
 * from the rows as NDJSON, so it is the same for both formats.
 */
const valueFormat = {
  copied: 'values',
  selectDataset: async (_db, dataset) => ({
    header: noHeader,
    selectFrom: (filter) => selectValues(dataset, filter),
  }),
  toText: (dataset, request) => ndjsonWriter(columnsOf(dataset, request)),
  streamHeader: () => noHeader,
  text: ndjsonText,
} satisfies Partial<FormatWriter>;

const ndjson: FormatWriter = { ...valueFormat, createSink: splitInto('ndjson'), readBack: readPlain };

const parquet: FormatWriter = {
  ...valueFormat,
  createSink: (files, options) => new GroupFiles(files, { ...options, format: 'parquet' }, ParquetFile),
  readBack: readWhole(parquetToNdjson),
};

export const formatWriters: Readonly<Record<ExportFormat, FormatWriter>> = { ndjson, csv, parquet };

function splitInto(format: ExportFormat): FormatWriter['createSink'] {
  return (files, { request, ...options }) =>
    new SplitFiles(files, { ...options, format, compression: request.compression });
}

function openFile(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: READ_BYTES });
}

function readPlain(path: string): AsyncIterable<Buffer> {
  return path.endsWith('.gz') ? gunzip(openFile(path), () => undefined) : openFile(path);
}

function readWhole(toNdjson: typeof parquetToNdjson): FormatWriter['readBack'] {
  return async function* (path) {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      yield* toNdjson({
        bytes: size,
        read: async (start, end) => {
          const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
          return buffer.subarray(0, bytesRead);
        },
      });
    } finally {
      await file.close();
    }
  };
}
